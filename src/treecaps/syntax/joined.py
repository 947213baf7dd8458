"""``JoinedTrees``: the nodes of some trees in one row, and what their leaves say."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps import compiled
from treecaps.chunks import chunked
from treecaps.syntax.names import is_name
from treecaps.syntax.tree import Tree

Longs = NDArray[np.int64]
_CHUNK_NODES = 1 << 20


class LeafTexts(NamedTuple):
    """The leaves whose kind does not say their text, and what they say.

    Args:
        nodes: ``[L]``, their numbers.
        text: ``[L]``, the distinct text of each.
        names: Of each distinct text, whether it is a name.
        texts: The distinct texts. A name and another leaf with the same text are two.
    """

    nodes: Longs
    text: Longs
    names: list[bool]
    texts: list[bytes]


class JoinedTrees:
    """B trees with their n nodes in one row of numbers, tree after tree.

    Args:
        trees: The trees; those of one grammar share their table of kinds.

    Attributes:
        sizes: ``[B]``, how many nodes each tree has.
        firsts: ``[B]``, the root of each tree.
        parent: ``[n]``, the parent of each node; -1 for a root.
        child_count: ``[n]``, how many children each node has.
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.trees = trees
        self.sizes = np.array([len(tree) for tree in trees], np.int64)
        self.firsts = np.cumsum(self.sizes) - self.sizes
        self.parent = self._join([tree.parent for tree in trees], self.firsts)
        self.parent[self.firsts] = -1
        below = self.parent[self.parent >= 0]
        self.child_count = np.bincount(below, minlength=len(self.parent))
        # Kinds are numbered through all tables.
        begins: dict[int, int] = {}
        self._tables: list[tuple[str, ...]] = []
        for tree in trees:
            if id(tree.kinds) not in begins:
                begins[id(tree.kinds)] = sum(map(len, self._tables))
                self._tables.append(tree.kinds)
        self._kind = self._join(
            [tree.kind for tree in trees], [begins[id(tree.kinds)] for tree in trees]
        )

    def __len__(self) -> int:
        return len(self.parent)

    def look_up(self, table: Callable[[tuple[str, ...]], NDArray[Any]]) -> NDArray[Any]:
        """Return ``[n]``, what is known of the kind of each node.

        Args:
            table: Returns what is known of each kind of a table of kinds.
        """
        return np.concatenate([table(kinds) for kinds in self._tables])[self._kind]

    @cached_property
    def leaves(self) -> Longs:
        """The leaves that have a text."""
        has_text = np.concatenate([tree.end > tree.start for tree in self.trees])
        return np.flatnonzero((self.child_count == 0) & has_text)

    @cached_property
    def leaf_texts(self) -> LeafTexts:
        """The leaves whose kind does not say their text."""
        nodes = self.leaves[~self.look_up(_kinds_that_are_texts)[self.leaves]]
        is_named = self.look_up(_kinds_that_are_names)[nodes]
        lengths = [len(tree.text) for tree in self.trees]
        begins = np.cumsum(lengths) - lengths
        starts, ends = (
            self._join([getattr(tree, side) for tree in self.trees], begins)[nodes]
            for side in ("start", "end")
        )
        joined = b"".join(tree.text for tree in self.trees)
        text = np.empty(len(nodes), np.int64)
        names: list[bool] = []
        texts: list[bytes] = []
        for named in (True, False):
            some = is_named if named else ~is_named
            number, distinct = _number_texts(joined, starts[some], ends[some])
            text[some] = number + len(texts)
            names += [named] * len(distinct)
            texts += distinct
        return LeafTexts(nodes, text, names, texts)

    def _join(self, arrays: Sequence[NDArray[Any]], begins: Any) -> Longs:
        """Join arrays of all trees, each counted from another number on."""
        return np.concatenate(arrays) + np.repeat(np.asarray(begins, np.int64), self.sizes)


def _number_texts(text: bytes, starts: Longs, ends: Longs) -> tuple[Longs, list[bytes]]:
    """Give equal pieces of a text one number; return that of each, and the distinct pieces."""
    if loops := compiled.loops:
        numbers, first = compiled.number(loops.number_texts, len(starts), text, starts, ends)
        spans = zip(starts[first].tolist(), ends[first].tolist(), strict=True)
        return numbers, [text[start:end] for start, end in spans]
    known: dict[bytes, int] = {}
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    found = [known.setdefault(text[start:end], len(known)) for start, end in spans]
    return np.array(found, np.int64), list(known)


def join_trees(trees: Iterable[Tree]) -> Iterator[JoinedTrees]:
    """Join trees, some at a time, so there may be many."""
    return map(JoinedTrees, chunked(trees, max_weight=_CHUNK_NODES, weigh=len))


@cache
def _kinds_that_are_names(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return of each kind whether its leaves are names."""
    return np.array([is_name(kind) for kind in kinds], bool)


@cache
def _kinds_that_are_texts(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return of each kind whether it says the text of its leaves."""
    return np.array([kind.startswith('"') for kind in kinds], bool)
