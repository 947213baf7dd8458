"""``Subtrees``: programs as rows of subtrees, each distinct subtree once.

What a recursive network says of a subtree depends on nothing outside of it, so a subtree that
occurs a thousand times is computed once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Literal

import numpy as np
from numpy.typing import NDArray

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Array, Convert, InputDropout, Programs, select_runs
from treecaps.inputs.distinct import Longs, compact
from treecaps.inputs.symbols import Symbols, SymbolTable, SymbolTensors
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.statements import begin_statements
from treecaps.syntax.tree import Tree

Cut = Literal["whole", "statements"]
"""Whether a program is one subtree, or one for each statement, without the statements inside."""


@dataclass(frozen=True)
class SubtreeTensors(Generic[Array]):
    """``Subtrees`` as a network takes them, with the subtrees of each height together.

    Args:
        symbols: What nodes show.
        symbol: ``[D]``, what the top node of each subtree shows.
        levels: For each height the subtrees' first number, the one after their last, and the
            families: ``[F]`` children and ``[F]`` their parents, counted from the first.
        counts: How many subtrees each of the B programs has.
        subtree: ``[Q]``, subtrees, program after program.
    """

    symbols: SymbolTensors[Array]
    symbol: Array
    levels: tuple[tuple[int, int, Array, Array], ...]
    counts: list[int]
    subtree: Array

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True)
class Subtrees:
    """D distinct subtrees, lower ones first, and B programs as rows of them.

    Args:
        symbols: What nodes show.
        symbol: ``[D]``, what the top node of each subtree shows.
        height: ``[D]``, from 0 for a leaf; never falls.
        child_offsets: ``[D + 1]``, where the children of each begin.
        child: ``[C]``, subtrees, in order.
        offsets: ``[B + 1]``, where each program's subtrees begin.
        subtree: ``[Q]``, subtrees.
        sizes: ``[B]``, how many nodes each program has.
    """

    symbols: Symbols
    symbol: Longs
    height: Longs
    child_offsets: Longs
    child: Longs
    offsets: Longs
    subtree: Longs
    sizes: Longs

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], vocabulary: Vocabulary, cut: Cut) -> "Subtrees":
        """Share the subtrees of trees."""
        table = SubtreeTable(vocabulary, cut)
        for tree in trees:
            table.add(tree)
        return table.subtrees()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> "Subtrees":
        """Return some of the programs, in the order given; nothing of them is left out."""
        programs = np.asarray(programs, np.int64)
        offsets, rows = select_runs(self.offsets, programs)
        needed = np.zeros(len(self.symbol), bool)
        new = np.unique(self.subtree[rows])
        while len(new):
            needed[new] = True
            _, below = select_runs(self.child_offsets, new)
            new = np.unique(self.child[below])
            new = new[~needed[new]]
        used = np.flatnonzero(needed)
        numbers = np.cumsum(needed) - 1
        child_offsets, below = select_runs(self.child_offsets, used)
        shown, symbol = compact(self.symbol[used], len(self.symbols))
        return Subtrees(
            self.symbols.select(shown),
            symbol,
            self.height[used],
            child_offsets,
            numbers[self.child[below]],
            offsets,
            numbers[self.subtree[rows]],
            self.sizes[programs],
        )

    def to_tensors(self, convert: Convert[Array]) -> SubtreeTensors[Array]:
        """Part the families by the height of the parent."""
        heights = int(self.height[-1]) + 1 if len(self.height) else 0
        bounds = np.searchsorted(self.height, np.arange(heights + 1)).tolist()
        parent = np.repeat(np.arange(len(self.symbol)), np.diff(self.child_offsets))
        levels = []
        for first, end in pairwise(bounds):
            rows = slice(*self.child_offsets[[first, end]].tolist())
            levels.append((first, end, convert(self.child[rows]), convert(parent[rows] - first)))
        return SubtreeTensors(
            self.symbols.to_tensors(convert),
            convert(self.symbol),
            tuple(levels),
            np.diff(self.offsets).tolist(),
            convert(self.subtree),
        )


class SubtreeTable:
    """Gathers the distinct subtrees of trees."""

    def __init__(self, vocabulary: Vocabulary, cut: Cut) -> None:
        self.cut = cut
        self._table = SymbolTable(vocabulary)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._heights: list[int] = []
        self._subtrees: list[int] = []
        self._counts: list[int] = []
        self._sizes: list[int] = []

    def add(self, tree: Tree) -> None:
        """Add a program."""
        starts: NDArray[np.bool_] | list[bool]
        if self.cut == "statements":
            starts = begin_statements(tree).tolist()
        else:
            starts = [True] + [False] * (len(tree) - 1)
        parent, shown = tree.parent.tolist(), self._table.encode(JoinedTrees([tree])).tolist()
        below: list[list[int]] = [[] for _ in parent]
        subtrees = []
        for node in range(len(parent) - 1, -1, -1):
            number = self._number(shown[node], below[node][::-1])
            if starts[node]:
                subtrees.append(number)
            else:
                below[parent[node]].append(number)
        self._subtrees += subtrees[::-1]
        self._counts.append(len(subtrees))
        self._sizes.append(len(tree))

    def subtrees(self) -> Subtrees:
        """Return all that was added."""
        height = np.array(self._heights, np.int64)
        order = np.argsort(height, kind="stable")
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        keys = list(self._numbers)
        sizes = np.array([len(keys[old]) - 1 for old in order.tolist()], np.int64)
        child = [old for number in order.tolist() for old in keys[number][1:]]
        return Subtrees(
            self._table.symbols(),
            np.array([keys[old][0] for old in order.tolist()], np.int64),
            height[order],
            np.concatenate([[0], np.cumsum(sizes)]),
            numbers[np.array(child, np.int64)],
            np.cumsum([0, *self._counts]),
            numbers[np.array(self._subtrees, np.int64)],
            np.array(self._sizes, np.int64),
        )

    def _number(self, symbol: int, below: list[int]) -> int:
        key = (symbol, *below)
        fresh = len(self._heights)
        number = self._numbers.setdefault(key, fresh)
        if number == fresh:
            heights = self._heights
            heights.append(1 + max(heights[one] for one in below) if below else 0)
        return number
