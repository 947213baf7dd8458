"""``Forest``: many trees as their distinct windows, and how often each program has each.

What a tree convolution says of a node depends on the node's window alone: what the node shows (its
kind, and of a leaf perhaps its text) and what those below it show, down to the window's depth.
Programs repeat themselves, so a forest keeps each distinct window once and a program as a list of
windows with their counts. Nothing is lost: a sum over all nodes is the sum over distinct windows
times their counts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.chunks import chunked
from treecaps.data.bags import Bags, BagTable, Bools, Feature
from treecaps.data.distinct import Longs, compact, mix, number_distinct
from treecaps.data.graphs import Graphs, GraphTable
from treecaps.data.subtrees import Cut, Subtrees, SubtreeTable
from treecaps.data.symbols import Symbols, SymbolTable, select_runs
from treecaps.data.vocabulary import Vocabulary
from treecaps.syntax.tree import Ints, Tree

Floats = NDArray[np.float32]
Table = SubtreeTable | GraphTable | BagTable
"""What gathers programs in another form beside their windows."""

_CHUNK_NODES = 1 << 20
_TOP = 0.6
_REGIONS = 3


@dataclass(frozen=True)
class Windows:
    """The distinct windows of one convolution layer, W of them with M members in all.

    A window's members are a node and what lies below it down to the layer's depth, in pre-order,
    so the first is the node itself. Each is a distinct window of the layer below (of the first
    layer: a symbol) with its weights in the convolution: for a member at depth
    d_i of a window of depth d (the top has d_i = d, the bottom 1), at place p of k siblings,

        top   = (d_i - 1) / (d - 1)
        right = (1 - top) (p - 1) / (k - 1), or (1 - top) / 2 for an only child
        left  = (1 - top) (1 - right)

    Args:
        offsets: ``[W + 1]``, where each window's members begin.
        member: ``[M]``, windows of the layer below.
        top: ``[M]``, weights of the members.
        left: ``[M]``, likewise.
        right: ``[M]``, likewise.
    """

    offsets: Longs
    member: Longs
    top: Floats
    left: Floats
    right: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def select(self, windows: Longs) -> "Windows":
        """Return some of the windows, in the order given."""
        offsets, rows = select_runs(self.offsets, windows)
        return Windows(
            offsets, self.member[rows], self.top[rows], self.left[rows], self.right[rows]
        )

    def over(self, member: Longs) -> "Windows":
        """Return the same windows with other numbers for their members."""
        return Windows(self.offsets, member, self.top, self.left, self.right)


@dataclass(frozen=True)
class Forest:
    """B programs as distinct windows.

    Args:
        symbols: What nodes show.
        layers: The windows of each convolution layer, the first over symbols.
        offsets: ``[B + 1]``, where each program's windows begin.
        window: ``[P]``, distinct windows of the last layer.
        count: ``[P]``, how many nodes of the program have that window.
        region: ``[P]``, the part of the program that those nodes are in: 0 the top, 1 the lower
            left, 2 the lower right. All 0 where regions are not told apart.
        languages: The language of each program.
        share: ``[P]``, the share of those nodes that a row stands for, where a program has several
            rows for one window; 1 where there is none.
        subtrees: The programs as distinct subtrees, where these are asked for.
        graphs: The programs as nodes and edges, where these are asked for.
        bags: The programs as features with counts, where these are asked for.
    """

    symbols: Symbols
    layers: tuple[Windows, ...]
    offsets: Longs
    window: Longs
    count: Longs
    region: Longs
    languages: tuple[str, ...]
    share: Floats | None = None
    subtrees: Subtrees | None = None
    graphs: Graphs | None = None
    bags: Bags | None = None

    @classmethod
    def of(
        cls,
        trees: Iterable[Tree],
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        *,
        regions: bool = False,
        subtrees: Cut | None = None,
        graphs: bool = False,
        bags: Feature | None = None,
    ) -> "Forest":
        """Share the windows of trees.

        Args:
            trees: The trees; some at a time are looked at, so a corpus may be large.
            vocabulary: Numbers of the kinds and sub-tokens.
            depths: The window depth of each convolution layer; without layers, windows are the
                symbols of single nodes.
            regions: Whether to tell apart in which part of a program a window occurs.
            subtrees: Whether to keep programs as subtrees too, and how they are cut.
            graphs: Whether to keep programs as nodes and edges too.
            bags: Whether to keep programs as features with counts too, and which.
        """
        tables: list[Table] = []
        if subtrees:
            tables.append(SubtreeTable(subtrees))
        if graphs:
            tables.append(GraphTable())
        if bags:
            tables.append(BagTable(bags))
        builder = _Builder(vocabulary, depths, regions, tables)
        for chunk in chunked(trees, max_weight=_CHUNK_NODES, weigh=len):
            builder.add(chunk)
        return builder.forest()

    @classmethod
    def with_rows(
        cls,
        tree: Tree,
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        *,
        bags: Feature | None = None,
    ) -> tuple["Forest", Longs]:
        """Share the windows of one tree, and tell of each node which row of the forest is its."""
        builder = _Builder(vocabulary, depths, False, [BagTable(bags)] if bags else [])
        rows = builder.add([tree])
        return builder.forest(), rows

    @classmethod
    def node_by_node(
        cls,
        tree: Tree,
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        *,
        bags: Feature | None = None,
    ) -> "Forest":
        """Give every node of a tree a symbol and windows of its own, in the order of the nodes.

        Networks say the same of it as of the shared windows, and what they say of it can be led
        back to each node.
        """
        table = SymbolTable(vocabulary)
        nodes = _Nodes([tree], table)
        every = np.arange(len(tree))
        subtree, layers = nodes.symbol, []
        for depth in depths:
            for _ in range(depth - 1):
                subtree, _ = nodes.number_subtrees(subtree)
            layers.append(nodes.windows_of(every, depth, every)[0])
        count = np.bincount(subtree)[subtree]
        counted = BagTable(bags) if bags else None
        if counted:
            counted.add(tree, nodes.symbol)
        return cls(
            table.symbols().select(nodes.symbol),
            tuple(layers),
            np.array([0, len(tree)]),
            every,
            count,
            np.zeros(len(tree), np.int64),
            (tree.language,),
            (1 / count).astype(np.float32),
            bags=counted.bags() if counted else None,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def node_counts(self) -> Longs:
        """``[B]``, how many nodes each tree has."""
        if not len(self):
            return np.zeros(0, np.int64)
        return np.add.reduceat(self.count, self.offsets[:-1])

    @property
    def programs(self) -> Longs:
        """``[P]``, the program that each window belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def select(
        self,
        programs: Sequence[int] | Longs,
        leave: Callable[[int], Bools] | None = None,
        bare: Bools | None = None,
    ) -> "Forest":
        """Return some of the programs, with the windows they need and no others.

        Args:
            programs: Which, in the order wanted.
            leave: Says of so many windows of the programs, one after the other, which to leave
                out, and then the same of the features of bags. A program never loses all windows:
                its first then stays. Without layers, nothing goes.
            bare: ``[B]``, which of the programs lose all features of bags.
        """
        programs = np.asarray(programs, np.int64)
        offsets, rows = select_runs(self.offsets, programs)
        leave = leave if self.layers else None
        if leave:
            kept = ~leave(len(rows))
            empty = np.add.reduceat(kept, offsets[:-1], dtype=np.int64) == 0
            kept[offsets[:-1][empty]] = True
            offsets, rows = np.concatenate([[0], np.cumsum(kept)])[offsets], rows[kept]
        sizes = [len(self.symbols), *map(len, self.layers)]
        used, window = compact(self.window[rows], sizes[-1])
        layers: list[Windows] = []
        for number in range(len(self.layers) - 1, -1, -1):
            windows = self.layers[number].select(used)
            used, member = compact(windows.member, sizes[number])
            layers.insert(0, windows.over(member))
        return Forest(
            self.symbols.select(used),
            tuple(layers),
            offsets,
            window,
            self.count[rows],
            self.region[rows],
            tuple(self.languages[program] for program in programs),
            None if self.share is None else self.share[rows],
            self.subtrees.select(programs, used) if self.subtrees else None,
            self.graphs.select(programs, used) if self.graphs else None,
            self.bags.select(programs, leave, bare) if self.bags else None,
        )


class _Nodes:
    """All nodes of some trees in one row of numbers, with their children as runs of another."""

    def __init__(self, trees: Sequence[Tree], table: SymbolTable) -> None:
        sizes = np.array([len(tree) for tree in trees], np.int64)
        firsts = np.cumsum(sizes) - sizes
        self.trees = len(trees)
        self.program = np.repeat(np.arange(len(trees)), sizes)
        self.symbol = np.concatenate([table.encode(tree) for tree in trees])
        parent = np.concatenate([tree.parent for tree in trees]) + np.repeat(firsts, sizes)
        parent[firsts] = -1
        self.child = np.argsort(parent, kind="stable")[len(trees) :]  # the roots sort first
        self.parent = parent[self.child]
        size = len(parent)
        self.child_count = np.bincount(self.parent, minlength=size)
        self.child_offsets = np.concatenate([[0], np.cumsum(self.child_count)])
        self.position = np.zeros(size, np.int64)
        places = np.arange(len(self.child))
        self.position[self.child] = places - self.child_offsets[self.parent]
        # An only child lies in the middle.
        siblings = self.child_count[self.parent]
        self.place = np.full(size, 0.5, np.float32)
        self.place[self.child] = np.where(
            siblings > 1, self.position[self.child] / np.maximum(siblings - 1, 1), 0.5
        )

    def number_subtrees(self, classes: Longs) -> tuple[Longs, Longs]:
        """Give nodes numbers by their symbol and the classes of their children.

        Returns:
            The number of each node, and for each number the first node that has it.
        """
        salt = 0
        while True:
            hashed = mix(self.symbol, salt)
            if len(self.child):
                parts = mix(classes[self.child], mix(self.position[self.child], salt + 1))
                with_children = np.flatnonzero(self.child_count)
                begins = self.child_offsets[with_children]
                hashed[with_children] += np.add.reduceat(parts, begins)
            number, first = number_distinct(hashed)
            # A hash may deceive, so each node is compared with the first of its number.
            twin = first[number]
            same = bool(
                np.array_equal(self.symbol, self.symbol[twin])
                and np.array_equal(self.child_count, self.child_count[twin])
            )
            if same and len(self.child):
                others = self.child[
                    self.child_offsets[twin[self.parent]] + self.position[self.child]
                ]
                same = np.array_equal(classes[self.child], classes[others])
            if same:
                return number, first
            salt += 2

    def windows_of(self, nodes: Longs, depth: int, below: Longs) -> tuple[Windows, Ints]:
        """Return the windows of some nodes, and the depth of each member."""
        if depth == 2:
            # A node, then its children: nothing to sort.
            offsets = np.concatenate([[0], np.cumsum(self.child_count[nodes] + 1)])
            members = np.repeat(nodes, np.diff(offsets))
            depths = np.ones(len(members), np.int32)
            depths[offsets[:-1]] = 2
            members[depths == 1] = self.child[select_runs(self.child_offsets, nodes)[1]]
        else:
            offsets, members, depths = self._descend(nodes, depth)
        top = ((depths - 1) / (depth - 1)).astype(np.float32)
        right = np.where(depths < depth, (1 - top) * self.place[members], 0).astype(np.float32)
        left = ((1 - top) * (1 - right)).astype(np.float32)
        return Windows(offsets, below[members], top, left, right), depths

    def _descend(self, nodes: Longs, depth: int) -> tuple[Longs, Longs, Ints]:
        """Return where the windows of nodes begin, their members, and the depth of each."""
        node, window = nodes, np.arange(len(nodes))
        found = [(window, node, np.full(len(nodes), depth, np.int32))]
        for level in range(depth - 1, 0, -1):
            sizes = self.child_count[node]
            _, rows = select_runs(self.child_offsets, node)
            node, window = self.child[rows], np.repeat(window, sizes)
            found.append((window, node, np.full(len(node), level, np.int32)))
        windows, members, depths = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((members, windows))  # by node is in pre-order
        offsets = np.searchsorted(windows[order], np.arange(len(nodes) + 1))
        return offsets, members[order], depths[order]


class _Builder:
    """Gathers the windows of chunks of trees and gives equal ones one number."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        depths: Sequence[int],
        regions: bool,
        tables: Sequence[Table],
    ) -> None:
        self.table = SymbolTable(vocabulary)
        self.tables = tables
        self.depths = depths
        self.regions = regions
        self.numbers: list[dict[bytes, int]] = [{} for _ in depths]
        self.found: list[list[Windows]] = [[] for _ in depths]
        self.first: list[tuple[Windows, Ints]] = []
        self.programs: list[tuple[Longs, ...]] = []
        self.languages: list[str] = []

    def add(self, trees: Sequence[Tree]) -> Longs:
        """Add trees, and tell for each of their nodes which of the rows they add is its."""
        nodes = _Nodes(trees, self.table)
        self.languages += [tree.language for tree in trees]
        bounds = np.cumsum([0, *map(len, trees)]).tolist()
        for table in self.tables:
            for tree, (begin, end) in zip(trees, pairwise(bounds), strict=True):
                table.add(tree, nodes.symbol[begin:end])
        subtree = below = nodes.symbol
        for layer, depth in enumerate(self.depths):
            for _ in range(depth - 1):
                subtree, first = nodes.number_subtrees(subtree)
            windows, depths = nodes.windows_of(first, depth, below)
            below = self._merge(layer, windows, depths)[subtree]
        region = np.concatenate(
            [_regions(tree) if self.regions else np.zeros(len(tree), np.int64) for tree in trees]
        )
        place = _REGIONS * nodes.program + region
        row, first = number_distinct(place * (below.max() + 1) + below)
        sizes = np.bincount(nodes.program[first], minlength=nodes.trees)
        self.programs.append((sizes, below[first], np.bincount(row), region[first]))
        return row

    def _merge(self, layer: int, windows: Windows, depths: Ints) -> Longs:
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
    def _number(numbers: dict[bytes, int], windows: Windows, depths: Ints) -> Longs:
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

    def forest(self) -> Forest:
        sizes, windows, counts, regions = (
            np.concatenate([np.zeros(0, np.int64), *parts])
            for parts in (zip(*self.programs, strict=True) if self.programs else ((),) * 4)
        )
        layers = tuple(_join(found) for found in self.found)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        others: dict[str, Any] = {}
        for table in self.tables:
            if isinstance(table, SubtreeTable):
                others["subtrees"] = table.subtrees()
            elif isinstance(table, GraphTable):
                others["graphs"] = table.graphs()
            else:
                others["bags"] = table.bags()
        symbols = self.table.symbols()
        languages = tuple(self.languages)
        return Forest(symbols, layers, offsets, windows, counts, regions, languages, **others)


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


def _join(parts: list[Windows]) -> Windows:
    sizes = [np.diff(windows.offsets) for windows in parts]
    weights = (
        np.concatenate([np.zeros(0, np.float32), *(getattr(windows, name) for windows in parts)])
        for name in ("top", "left", "right")
    )
    return Windows(
        np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes])),
        np.concatenate([np.zeros(0, np.int64), *(windows.member for windows in parts)]),
        *weights,
    )
