"""``Bags``: programs as features with counts, each feature known by its hash."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import xxhash
from numpy.typing import NDArray

from treecaps.data.distinct import Longs
from treecaps.data.symbols import select_runs
from treecaps.syntax.names import is_name
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree

Bools = NDArray[np.bool_]

Feature = Literal["tokens", "leaves", "windows"]
"""What is counted: single tokens of the text and pairs of neighbours; the same of leaves, by their
words; or nodes with the kinds of their children."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Bags:
    """B programs with P features in all.

    Args:
        offsets: ``[B + 1]``, where each program's features begin.
        feature: ``[P]``, hashes, sorted within a program.
        count: ``[P]``, how often the program has each.
    """

    offsets: Longs
    feature: Longs
    count: Longs

    def select(self, programs: Longs, leave: Callable[[int], Bools] | None = None) -> "Bags":
        """Return some of the programs, in the order given.

        Args:
            programs: Which.
            leave: Says of so many features of the programs which to leave out.
        """
        offsets, rows = select_runs(self.offsets, programs)
        if leave:
            kept = ~leave(len(rows))
            offsets, rows = np.concatenate([[0], np.cumsum(kept)])[offsets], rows[kept]
        return Bags(offsets, self.feature[rows], self.count[rows])


class BagTable:
    """Gathers the features of trees."""

    def __init__(self, feature: Feature) -> None:
        self._spell = _SPELLERS[feature]
        self._hashes: dict[tuple[str, ...], int] = {}
        self._found: list[tuple[Longs, Longs]] = []

    def add(self, tree: Tree, _: Longs) -> None:
        """Add a program."""
        counts = Counter(map(self._hash, self._spell(tree)))
        features = sorted(counts)
        numbers = [counts[feature] for feature in features]
        self._found.append((np.array(features, np.int64), np.array(numbers, np.int64)))

    def bags(self) -> Bags:
        """Return all that was added."""
        nothing = np.zeros(0, np.int64)
        features, counts = zip(*self._found, strict=True) if self._found else ((), ())
        return Bags(
            np.cumsum([0, *map(len, features)]),
            np.concatenate([nothing, *features]),
            np.concatenate([nothing, *counts]),
        )

    def _hash(self, words: tuple[str, ...]) -> int:
        found = self._hashes.get(words)
        if found is None:
            found = self._hashes[words] = _digest(words)
        return found


def _digest(words: tuple[str, ...]) -> int:
    digest = xxhash.xxh3_64_intdigest("\0".join(words).encode("utf-8", "surrogatepass"))
    return digest - (1 << 63)


def find_leaves(tree: Tree) -> list[tuple[int, tuple[int, ...]]]:
    """Return the features ``leaves`` of a tree as they occur, each with the leaves it is of."""
    leaves, words = leaf_words(tree)
    nodes = leaves.tolist()
    single = [(_digest((word,)), (node,)) for node, word in zip(nodes, words, strict=True)]
    pairs = zip(pairwise(words), pairwise(nodes), strict=True)
    return single + [(_digest(both), leaves_of_both) for both, leaves_of_both in pairs]


def _tokens(tree: Tree) -> Iterator[tuple[str, ...]]:
    words: Iterable[str] = _TOKEN.findall(tree.text.decode("utf-8", "replace"))
    words = list(words)
    for word in words:
        yield (word,)
    yield from pairwise(words)


def leaf_words(tree: Tree) -> tuple[Longs, list[str]]:
    """Return the leaves of a tree that have a text, in order, and the words of each.

    A name is its words in lower case, and a name that says nothing is ``UNKNOWN``, so that renaming
    in whatever way leaves the same; any other leaf is its text.
    """
    leaves = np.flatnonzero((tree.child_count == 0) & (tree.end > tree.start))
    starts, ends = tree.start[leaves].tolist(), tree.end[leaves].tolist()
    words = []
    for kind, start, end in zip(tree.kind[leaves].tolist(), starts, ends, strict=True):
        text = tree.text[start:end]
        if is_name(tree.kinds[kind]):
            words.append(" ".join(split_token(text, name=True)))
        else:
            words.append(text.decode("utf-8", "replace"))
    return leaves, words


def _leaves(tree: Tree) -> Iterator[tuple[str, ...]]:
    _, words = leaf_words(tree)
    for word in words:
        yield (word,)
    yield from pairwise(words)


def _windows(tree: Tree) -> Iterator[tuple[str, ...]]:
    kinds = tree.kind_names()
    windows = [[kind] for kind in kinds]
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            windows[parent].append(kinds[node])
    return map(tuple, windows)


_SPELLERS: dict[Feature, Callable[[Tree], Iterator[tuple[str, ...]]]] = {
    "tokens": _tokens,
    "leaves": _leaves,
    "windows": _windows,
}
