"""The pieces of a program by which copies are recognised.

A program is taken apart in common kinds (``treecaps.syntax.common``), so that names, literals,
types and layout do not count. Each node gives up to three pieces:

- its *shape*: the node with its descendants down to depth 3, in any order. Inner nodes only.
- its *path*: the kinds of the node, of its parent and of its parent's parent.
- its *shape with words*: the same, with the values of literals, and with the names that are not
  the program's own, such as ``println``. Nobody can rename these.

Statements that move, loops written in another way and functions that are taken out leave most of
these as they are.
"""

import re
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.hashing import digest, hash_64
from treecaps.syntax.blind import is_template
from treecaps.syntax.common import CommonTree, are_kind, below, common_kind, remarks, to_common
from treecaps.syntax.names import is_name
from treecaps.syntax.node_hashes import Hashes, hash_kinds, hash_texts, mix
from treecaps.syntax.tree import Ints, Tree

DEPTH = 3
"""How deep shapes are."""

_SHAPE, _PATH, _WORDS = (np.uint64(seed) for seed in (0x51A9E, 0x9A74, 0x30D5))
_STEP = np.uint64(31)
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_LITERALS = ("number", "string", "truth")
_DECLARE = ("assign", "function", "class", "loop", "if", "catch", "program")
"""Common kinds whose children are names that the program declares, if they are names."""


class Pieces(NamedTuple):
    """The pieces of a program.

    Args:
        hashes: ``[p]``, equal for equal pieces; as often as the program has them.
        nodes: ``[p]``, the node of the tree that each belongs to.
    """

    hashes: Hashes
    nodes: Ints


def find_pieces(tree: Tree) -> Pieces:
    """Return the pieces of a program."""
    common = to_common(tree)
    inner = np.zeros(len(common), bool)
    inner[common.parent[1:]] = True
    hashes = (
        mix(hash_shapes(common.kind, common.parent) + _SHAPE)[inner],
        mix(_hash_paths(common) + _PATH),
        mix(hash_shapes(_with_words(tree, common), common.parent) + _WORDS)[inner],
    )
    nodes = (common.node[inner], common.node, common.node[inner])
    return Pieces(np.concatenate(hashes), np.concatenate(nodes))


def hash_shapes(kind: Hashes, parent: Ints, depth: int = DEPTH) -> Hashes:
    """Return a hash of each node and its descendants down to a depth, siblings in any order."""
    shapes = mix(kind)
    for _ in range(depth):
        sums = np.zeros(len(kind), np.uint64)
        np.add.at(sums, parent[1:], mix(shapes[1:]))
        shapes = mix(kind * _STEP + sums)
    return shapes


def _hash_paths(tree: CommonTree) -> Hashes:
    paths, node = tree.kind, np.arange(len(tree))
    for _ in range(2):
        node = np.where(node < 0, -1, tree.parent[node])
        paths = mix(paths * _STEP + np.where(node < 0, np.uint64(0), tree.kind[node]))
    return paths


def _with_words(tree: Tree, common: CommonTree) -> Hashes:
    """Return the kinds of nodes, with the text of literals and of names that are not declared."""
    text = hash_texts(tree)[common.node]
    name = common.kind == common_kind("name")
    declares = _are(common.kind, _DECLARE)[common.parent]
    own = np.isin(text, text[name & declares])
    word = (name & ~own) | _are(common.kind, _LITERALS)
    return np.where(word, mix(common.kind + text * _STEP), common.kind)


def _are(kind: Hashes, names: tuple[str, ...]) -> NDArray[np.bool_]:
    found = np.zeros(len(kind), bool)
    for name in names:
        found |= kind == common_kind(name)
    return found


def key_without_names(tree: Tree) -> str:
    """Return a digest that is the same for programs that differ in names and layout only.

    Names count by where they stand first, so both programs must have renamed them consistently.
    Within C's macros and Kotlin's strings, names do not count.
    """
    names = _names(tree.kinds)[tree.kind]
    up = tree.parent.clip(0)
    # A name that is a keyword elsewhere has that keyword below it.
    spelled = names[up] & (tree.start == tree.start[up]) & (tree.end == tree.end[up])
    spelled[0] = False
    leaf = (tree.child_count == 0) | np.isin(np.arange(len(tree)), tree.parent[spelled])
    text = hash_texts(tree)
    name = names & leaf
    _, first, which = np.unique(text[name], return_index=True, return_inverse=True)
    text[name] = first[which]
    text[~leaf] = 0
    for node in _find_opaque(tree):
        text[node] = hash_64(_WORD.sub(b"", tree.text[tree.start[node] : tree.end[node]]))
    kept = ~below(remarks(tree) | spelled, up)
    kept[0] = True
    parent = (np.cumsum(kept) - 1)[up]
    rows = (hash_kinds(tree.kinds)[tree.kind], text, parent.astype(np.uint64))
    return digest(b"".join([tree.language.encode(), *(row[kept].tobytes() for row in rows)]))


@cache
def _names(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([is_name(kind) for kind in kinds], bool)


def _find_opaque(tree: Tree) -> list[int]:
    """Return the leaves that hold names which the grammar does not look into."""
    macros = np.flatnonzero(are_kind(tree.kinds, "preproc_arg")[tree.kind]).tolist()
    if tree.language != "kotlin":
        return macros
    strings = np.flatnonzero(are_kind(tree.kinds, "string_content")[tree.kind]).tolist()
    return [node for node in strings if is_template(tree, node)]
