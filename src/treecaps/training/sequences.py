"""Sequences of trees that are taken from others when they are asked for: a corpus may be large."""

from collections.abc import Sequence
from typing import overload

import numpy as np

from treecaps.data.corpus import Corpus
from treecaps.hashing import digest
from treecaps.inputs.distinct import Longs
from treecaps.syntax.tree import Tree


class Selection(Sequence[Tree]):
    """Some of the trees of a sequence."""

    def __init__(self, trees: Sequence[Tree], rows: Longs) -> None:
        self.trees, self.rows = trees, rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Tree: ...
    @overload
    def __getitem__(self, index: slice) -> "Selection": ...
    def __getitem__(self, index: int | slice) -> "Tree | Selection":
        if isinstance(index, slice):
            return Selection(self.trees, self.rows[index])
        return self.trees[int(self.rows[index])]


class Joined(Sequence[Tree]):
    """The trees of several sequences, one after the other."""

    def __init__(self, parts: Sequence[Sequence[Tree]]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, index: int) -> Tree: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tree]: ...
    def __getitem__(self, index: int | slice) -> Tree | list[Tree]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        index = index + len(self) if index < 0 else index
        for part in self.parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError


def count_nodes(trees: Sequence[Tree]) -> Longs:
    """Return how many nodes each tree has; those of a corpus need not be read for it."""
    if isinstance(trees, Corpus):
        return trees.node_counts
    if isinstance(trees, Selection):
        return count_nodes(trees.trees)[trees.rows]
    if isinstance(trees, Joined):
        return np.concatenate([np.zeros(0, np.int64), *map(count_nodes, trees.parts)])
    return np.array([len(tree) for tree in trees], np.int64)


def corpora_of(trees: Sequence[Tree]) -> list[Corpus]:
    """Return the corpora that trees are taken from; none where some are from elsewhere."""
    if isinstance(trees, Corpus):
        return [trees]
    if isinstance(trees, Selection):
        return corpora_of(trees.trees)
    if isinstance(trees, Joined):
        found = list(map(corpora_of, trees.parts))
        return [corpus for some in found for corpus in some] if all(found) else []
    return []


def spell(trees: Sequence[Tree]) -> list[object]:
    """Return which trees of which corpora these are, for JSON."""
    if isinstance(trees, Corpus):
        return [trees.folder.name]
    if isinstance(trees, Selection):
        return [spell(trees.trees), digest(trees.rows.astype(np.int64).tobytes())]
    assert isinstance(trees, Joined)
    return [spell(part) for part in trees.parts]
