"""``Windows``: programs as distinct windows, and how often each program has each.

What a tree convolution computes for a node depends on the node's window alone: what the node shows
(its kind, and of a leaf perhaps its text) and what those below it show, down to the window's depth.
Programs repeat themselves, so each distinct window is kept once, and a program as a list of windows
with their counts. Nothing is lost: a sum over all nodes is the sum over distinct windows times
their counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Array, Convert, Floats, InputDropout, Programs, select_runs
from treecaps.inputs.distinct import Longs, compact, number_distinct
from treecaps.inputs.node_windows import LayerTensors, NodeArrays, Weights, WindowLayer
from treecaps.inputs.symbols import Symbols, SymbolTable, SymbolTensors
from treecaps.syntax.joined import JoinedTrees, join_trees
from treecaps.syntax.tree import Ints, Tree

_TOP = 0.6
_REGIONS = 3


@dataclass(frozen=True)
class WindowTensors(Generic[Array]):
    """``Windows`` as a network takes them.

    Args:
        symbols: What nodes show.
        layers: The distinct windows of each convolution layer.
        bounds: ``B + 1`` numbers, where each program's windows begin.
        window: ``[P]``, distinct windows of the last layer.
        program: ``[P]``, the program that each window belongs to.
        count: ``[P]``, how many nodes of the program have that window.
        region: ``[P]``, the part of the program that those nodes are in.
        share: ``[P]``, the share of those nodes that a row stands for; all of them if ``None``.
    """

    symbols: SymbolTensors[Array]
    layers: tuple[LayerTensors[Array], ...]
    bounds: list[int]
    window: Array
    program: Array
    count: Array
    region: Array
    share: Array | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1


@dataclass(frozen=True)
class Windows:
    """B programs as distinct windows.

    Args:
        symbols: What nodes show.
        layers: The windows of each convolution layer, the first over symbols.
        offsets: ``[B + 1]``, where each program's windows begin.
        window: ``[P]``, distinct windows of the last layer.
        count: ``[P]``, how many nodes of the program have that window.
        region: ``[P]``, the part of the program that those nodes are in: 0 the top, 1 the lower
            left, 2 the lower right. All 0 where regions are not told apart.
        share: ``[P]``, the share of those nodes that a row stands for, where a program has several
            rows for one window; ``None`` where there is one row for each.
    """

    symbols: Symbols
    layers: tuple[WindowLayer, ...]
    offsets: Longs
    window: Longs
    count: Longs
    region: Longs
    share: Floats | None = None

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[Tree],
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        *,
        regions: bool = False,
    ) -> "Windows":
        """Share the windows of trees.

        Args:
            trees: The trees; some at a time are looked at, so a corpus may be large.
            vocabulary: Numbers of the kinds and sub-tokens.
            depths: The window depth of each convolution layer; without layers, windows are the
                symbols of single nodes.
            regions: Whether to tell apart in which part of a program a window occurs.
        """
        table = WindowTable(vocabulary, depths, regions=regions)
        for joined in join_trees(trees):
            table.add(joined)
        return table.windows()

    @classmethod
    def with_rows(
        cls, tree: Tree, vocabulary: Vocabulary, depths: Sequence[int] = (2,)
    ) -> tuple["Windows", Longs]:
        """Share the windows of one tree, and tell of each node which row is its."""
        table = WindowTable(vocabulary, depths)
        rows = table.add(JoinedTrees([tree]))
        return table.windows(), rows

    @classmethod
    def node_by_node(
        cls, tree: Tree, vocabulary: Vocabulary, depths: Sequence[int] = (2,)
    ) -> "Windows":
        """Give every node of a tree a symbol and windows of its own, in the order of the nodes.

        Networks compute the same of it as of the shared windows, and what they compute of it can
        be led back to each node.
        """
        table = SymbolTable(vocabulary)
        nodes = NodeArrays(JoinedTrees([tree]), table)
        every = np.arange(len(tree))
        subtree, layers = nodes.symbol, []
        for depth in depths:
            for _ in range(depth - 1):
                subtree, _ = nodes.number_subtrees(subtree)
            layers.append(nodes.windows_of(every, depth, every)[0])
        count = np.bincount(subtree)[subtree]
        return cls(
            table.symbols().select(nodes.symbol),
            tuple(layers),
            np.array([0, len(tree)]),
            every,
            count,
            np.zeros(len(tree), np.int64),
            (1 / count).astype(np.float32),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Longs:
        """``[B]``, how many distinct windows each program has."""
        return np.diff(self.offsets)

    @property
    def node_counts(self) -> Longs:
        """``[B]``, how many nodes each tree has."""
        if not len(self):
            return np.zeros(0, np.int64)
        return np.add.reduceat(self.count, self.offsets[:-1])

    @property
    def programs(self) -> Longs:
        """``[P]``, the program that each window belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> "Windows":
        """Return some of the programs, with the windows they need and no others.

        Args:
            programs: Which, in the order wanted.
            dropout: Leaves out windows. A program never loses all windows: its first then stays.
                Without layers, nothing goes.
        """
        offsets, rows = select_runs(self.offsets, np.asarray(programs, np.int64))
        kept = dropout.keep_windows(np.diff(offsets)) if dropout and self.layers else None
        if kept is not None:
            empty = np.add.reduceat(kept, offsets[:-1], dtype=np.int64) == 0
            kept[offsets[:-1][empty]] = True
            offsets, rows = np.concatenate([[0], np.cumsum(kept)])[offsets], rows[kept]
        below: list[Symbols | WindowLayer] = [self.symbols, *self.layers]
        used, window = _share(self.window[rows], below[-1])
        layers: list[WindowLayer] = []
        for number in range(len(self.layers) - 1, -1, -1):
            windows = self.layers[number].select(used)
            used, member = _share(windows.member, below[number])
            layers.insert(0, windows.over(member))
        return Windows(
            self.symbols.select(used),
            tuple(layers),
            offsets,
            window,
            self.count[rows],
            self.region[rows],
            None if self.share is None else self.share[rows],
        )

    def to_tensors(self, convert: Convert[Array]) -> WindowTensors[Array]:
        """Convert the arrays."""
        return WindowTensors(
            self.symbols.to_tensors(convert),
            tuple(layer.to_tensors(convert) for layer in self.layers),
            self.offsets.tolist(),
            convert(self.window),
            convert(self.programs),
            convert(self.count.astype(np.float32)),
            convert(self.region),
            None if self.share is None else convert(self.share),
        )


def _share(numbers: Longs, among: Symbols | WindowLayer) -> tuple[Longs, Longs]:
    """Return which symbols or windows are needed, each once, and for each number its place there.

    What has the same hash is the same.
    """
    used, place = compact(numbers, len(among))
    if among.hash is None:
        return used, place
    twin, first = number_distinct(among.hash[used])
    return used[first], twin[place]


class WindowTable:
    """Gathers the windows of chunks of trees and gives equal ones one number."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        depths: Sequence[int],
        *,
        regions: bool = False,
    ) -> None:
        self.table = SymbolTable(vocabulary)
        self.depths = depths
        self.regions = regions
        self.numbers: list[dict[bytes, int]] = [{} for _ in depths]
        self.found: list[list[WindowLayer]] = [[] for _ in depths]
        self.first: list[tuple[WindowLayer, Ints]] = []
        self.programs: list[tuple[Longs, ...]] = []

    def add(self, trees: JoinedTrees) -> Longs:
        """Add trees, and tell for each of their nodes which of the rows they add is its."""
        nodes = NodeArrays(trees, self.table)
        subtree = below = nodes.symbol
        for layer, depth in enumerate(self.depths):
            for _ in range(depth - 1):
                subtree, first = nodes.number_subtrees(subtree)
            windows, depths = nodes.windows_of(first, depth, below)
            below = self._merge(layer, windows, depths)[subtree]
        region = np.zeros(len(trees), np.int64)
        if self.regions:
            region = np.concatenate([_regions(tree) for tree in trees.trees])
        place = _REGIONS * nodes.program + region
        row, first = number_distinct(place * (below.max() + 1) + below)
        sizes = np.bincount(nodes.program[first], minlength=nodes.trees)
        self.programs.append((sizes, below[first], np.bincount(row), region[first]))
        return row

    def _merge(self, layer: int, windows: WindowLayer, depths: Ints) -> Longs:
        """Return the number for good of each of a chunk's windows, and keep the new ones.

        The windows of one chunk are distinct; those of the first are given numbers by what they
        hold only when there is a second.
        """
        if not self.found[layer]:
            self.first.append((windows, depths))
            self.found[layer].append(windows)
            return np.arange(len(windows))
        numbers = self.numbers[layer]
        if not numbers:
            self._number(numbers, *self.first[layer])
        known = len(numbers)
        number = self._number(numbers, windows, depths)
        self.found[layer].append(windows.select(np.flatnonzero(number >= known)))
        return number

    @staticmethod
    def _number(numbers: dict[bytes, int], windows: WindowLayer, depths: Ints) -> Longs:
        """Return the numbers of windows by what they hold; new ones get the next."""
        members, shape = windows.member.astype(np.int32).tobytes(), depths.tobytes()
        bounds = (4 * windows.offsets).tolist()
        return np.array(
            [
                numbers.setdefault(members[begin:end] + shape[begin:end], len(numbers))
                for begin, end in pairwise(bounds)
            ],
            np.int64,
        )

    def windows(self) -> Windows:
        """Return all that was added."""
        sizes, windows, counts, regions = (
            np.concatenate([np.zeros(0, np.int64), *parts])
            for parts in (zip(*self.programs, strict=True) if self.programs else ((),) * 4)
        )
        layers = tuple(_join(found) for found in self.found)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Windows(self.table.symbols(), layers, offsets, windows, counts, regions)


def _regions(tree: Tree) -> Longs:
    """Return for each node 0 in the top of the tree, 1 in the lower left, 2 in the lower right.

    The top is what lies less deep than 0.6 of the mean depth of leaves; below, the middle of the
    leaves of a node decides (Mou et al. 2016).
    """
    leaf = tree.child_count == 0
    before = np.concatenate([[0], np.cumsum(leaf)])
    last = np.arange(1, len(tree) + 1)
    for node in range(len(tree) - 1, 0, -1):  # a subtree ends where that of its last child does
        parent = tree.parent[node]
        last[parent] = max(last[parent], last[node])
    middle = (before[:-1] + before[last]) / 2
    lower = np.where(middle < before[-1] / 2, 1, 2)
    return np.where(tree.depth < _TOP * tree.depth[leaf].mean(), 0, lower)


def _join(parts: list[WindowLayer]) -> WindowLayer:
    sizes = [np.diff(windows.offsets) for windows in parts]
    given = [windows.given for windows in parts if windows.given]
    return WindowLayer(
        np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes])),
        np.concatenate([np.zeros(0, np.int64), *(windows.member for windows in parts)]),
        Weights(*map(np.concatenate, zip(*given, strict=True))) if given else None,
    )
