"""Sequences of trees that are taken from others when they are asked for: a corpus may be large."""

import gc
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from treecaps.chunks import chunked
from treecaps.data.corpus import Corpus
from treecaps.errors import DataError
from treecaps.hashing import digest
from treecaps.syntax.tree import Tree
from treecaps.workers import Timer, WorkerLostError, WorkerPool

_Result = TypeVar("_Result")
Longs = NDArray[np.int64]

TreeTransform = Callable[["Selection"], Sequence[Tree]]
"""Returns another view of the same programs: data augmentation."""

_CHUNK_TREES = 128
_CHUNK_NODES = 1 << 17
_WORTH_A_WORKER = 4
"""How many chunks of trees there are to be for each worker that is started."""


class Selection(Sequence[Tree]):
    """Some of the trees of a sequence."""

    def __init__(self, trees: Sequence[Tree], rows: Longs) -> None:
        within = trees if isinstance(trees, Selection) else None
        self.trees: Sequence[Tree] = within.trees if within else trees
        self.rows: Longs = within.rows[rows] if within else rows

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


class Subtrees(Sequence[Tree]):
    """Subtrees of trees, such as functions of programs.

    Args:
        trees: The trees.
        rows: In which of them each subtree is.
        nodes: The root of each, as a node there.
        sizes: How many nodes each has.
    """

    def __init__(self, trees: Sequence[Tree], rows: Longs, nodes: Longs, sizes: Longs) -> None:
        self.trees, self.rows, self.nodes, self.sizes = trees, rows, nodes, sizes

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Tree: ...
    @overload
    def __getitem__(self, index: slice) -> "Subtrees": ...
    def __getitem__(self, index: int | slice) -> "Tree | Subtrees":
        if isinstance(index, slice):
            parts = (part[index] for part in (self.rows, self.nodes, self.sizes))
            return Subtrees(self.trees, *parts)
        return self.trees[int(self.rows[index])].subtree(int(self.nodes[index]))


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
    if isinstance(trees, Subtrees):
        return trees.sizes
    if isinstance(trees, Joined):
        return np.concatenate([np.zeros(0, np.int64), *map(count_nodes, trees.parts)])
    return np.array([len(tree) for tree in trees], np.int64)


def corpora_of(trees: Sequence[Tree]) -> list[Corpus]:
    """Return the corpora that trees are taken from; none where some are from elsewhere."""
    if isinstance(trees, Corpus):
        return [trees]
    if isinstance(trees, Selection | Subtrees):
        return corpora_of(trees.trees)
    if isinstance(trees, Joined):
        found = list(map(corpora_of, trees.parts))
        return [corpus for some in found for corpus in some] if all(found) else []
    return []


def spell(trees: Sequence[Tree]) -> list[object]:
    """Return which trees of which corpora these are, for JSON."""
    if isinstance(trees, Corpus):
        return [trees.about["about_checksum"]]
    if isinstance(trees, Selection):
        return [spell(trees.trees), digest(trees.rows.astype(np.int64).tobytes())]
    if isinstance(trees, Subtrees):
        places = np.stack([trees.rows, trees.nodes]).astype(np.int64)
        return [spell(trees.trees), digest(places.tobytes())]
    assert isinstance(trees, Joined)
    return [spell(part) for part in trees.parts]


def map_trees(
    trees: Sequence[Tree], function: Callable[[list[Tree]], _Result]
) -> Generator[tuple[int, _Result]]:
    """Yield what a function makes of some trees at a time, in order, and how many these are.

    Trees of corpora are read, and the function is called, in as many processes as there are cores.
    """
    sizes = count_nodes(trees).tolist()
    chunks = list(chunked(range(len(trees)), _CHUNK_TREES, _CHUNK_NODES, sizes.__getitem__))

    def call(rows: list[int], timer: Timer | None = None) -> _Result:
        if timer:
            timer.pause()  # it takes as long as it does
        return function([trees[row] for row in rows])

    def setup() -> Callable[[list[int], Timer], _Result]:
        gc.freeze()  # what was inherited need not be looked through, and copied, again and again
        return call

    workers = min(os.cpu_count() or 1, len(chunks) // _WORTH_A_WORKER) if corpora_of(trees) else 1
    if workers < 2:
        yield from ((len(rows), call(rows)) for rows in chunks)
        return
    pool = WorkerPool[list[int], _Result](workers, setup)
    with closing(pool):
        for rows, future in pool.submit_all(chunks):
            try:
                yield len(rows), future.result()
            except WorkerLostError:
                raise DataError(
                    f"the process that read the trees of {len(rows):,} programs died, perhaps of"
                    " memory"
                ) from None
