"""``Subtrees``: programs as rows of subtrees, each distinct subtree once.

What a recursive network says of a subtree depends on nothing outside of it, so a subtree that
occurs a thousand times is computed once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from treecaps.data.distinct import Longs
from treecaps.data.symbols import select_runs
from treecaps.syntax.statements import begin_statements
from treecaps.syntax.tree import Tree

Cut = Literal["whole", "statements"]
"""Whether a program is one subtree, or one for each statement, without the statements inside."""


@dataclass(frozen=True)
class Subtrees:
    """D distinct subtrees, lower ones first, and B programs as rows of them.

    Args:
        symbol: ``[D]``, what the top node of each subtree shows.
        height: ``[D]``, from 0 for a leaf; never falls.
        child_offsets: ``[D + 1]``, where the children of each begin.
        child: ``[C]``, subtrees, in order.
        offsets: ``[B + 1]``, where each program's subtrees begin.
        subtree: ``[Q]``, subtrees.
    """

    symbol: Longs
    height: Longs
    child_offsets: Longs
    child: Longs
    offsets: Longs
    subtree: Longs

    def select(self, programs: Longs, symbols: Longs) -> "Subtrees":
        """Return some of the programs with the subtrees they need.

        Args:
            programs: Which, in the order wanted.
            symbols: The symbols that they show, sorted; they get the numbers of their places.
        """
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
        return Subtrees(
            np.searchsorted(symbols, self.symbol[used]),
            self.height[used],
            child_offsets,
            numbers[self.child[below]],
            offsets,
            numbers[self.subtree[rows]],
        )


class SubtreeTable:
    """Gathers the distinct subtrees of trees."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self._numbers: dict[tuple[int, ...], int] = {}
        self._heights: list[int] = []
        self._subtrees: list[int] = []
        self._sizes: list[int] = []

    def add(self, tree: Tree, symbol: Longs) -> None:
        """Add a program whose nodes show some symbols."""
        starts: NDArray[np.bool_] | list[bool]
        if self.cut == "statements":
            starts = begin_statements(tree).tolist()
        else:
            starts = [True] + [False] * (len(tree) - 1)
        parent, shown = tree.parent.tolist(), symbol.tolist()
        below: list[list[int]] = [[] for _ in parent]
        subtrees = []
        for node in range(len(parent) - 1, -1, -1):
            number = self._number(shown[node], below[node][::-1])
            if starts[node]:
                subtrees.append(number)
            else:
                below[parent[node]].append(number)
        self._subtrees += subtrees[::-1]
        self._sizes.append(len(subtrees))

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
            np.array([keys[old][0] for old in order.tolist()], np.int64),
            height[order],
            np.concatenate([[0], np.cumsum(sizes)]),
            numbers[np.array(child, np.int64)],
            np.cumsum([0, *self._sizes]),
            numbers[np.array(self._subtrees, np.int64)],
        )

    def _number(self, symbol: int, below: list[int]) -> int:
        key = (symbol, *below)
        fresh = len(self._heights)
        number = self._numbers.setdefault(key, fresh)
        if number == fresh:
            heights = self._heights
            heights.append(1 + max(heights[one] for one in below) if below else 0)
        return number
