"""Windows of nodes: a node and what lies below it, and which nodes have the same."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, NamedTuple

import numpy as np

from treecaps import compiled
from treecaps.inputs.base import Array, Convert, Floats, select_runs
from treecaps.inputs.distinct import Longs, find_twins, mix, number_twins
from treecaps.inputs.symbols import SymbolTable
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.tree import Ints


class Weights(NamedTuple):
    """``[M]`` each, how much members count for the three matrices of a convolution."""

    top: Floats
    left: Floats
    right: Floats


@dataclass(frozen=True)
class WindowLayer:
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
        given: The weights, unless windows have depth 2: then they follow from the sizes.
        hash: ``[W]``, where the same window may be there several times: equal for those.
    """

    offsets: Longs
    member: Longs
    given: Weights | None = None
    hash: Longs | None = None

    @cached_property
    def weights(self) -> Weights:
        """The weights of the members."""
        return self.given or _weights_of_pairs(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def select(self, windows: Longs) -> "WindowLayer":
        """Return some of the windows, in the order given."""
        offsets, rows = select_runs(self.offsets, windows)
        given = Weights(*(weight[rows] for weight in self.given)) if self.given else None
        hashes = None if self.hash is None else self.hash[windows]
        return WindowLayer(offsets, self.member[rows], given, hashes)

    def over(self, member: Longs) -> "WindowLayer":
        """Return the same windows with other numbers for their members."""
        return replace(self, member=member)

    def to_tensors(self, convert: Convert[Array]) -> "LayerTensors[Array]":
        """Convert the arrays."""
        return LayerTensors(
            convert(self.offsets), convert(self.member), *map(convert, self.weights)
        )


class LayerTensors(NamedTuple, Generic[Array]):
    """``WindowLayer`` as a tree convolution takes it."""

    offsets: Array
    member: Array
    top: Array
    left: Array
    right: Array


class NodeArrays:
    """All nodes of some trees in one row of numbers, with their children as runs of another."""

    def __init__(self, trees: JoinedTrees, table: SymbolTable) -> None:
        self.trees = len(trees.sizes)
        self.program = np.repeat(np.arange(self.trees), trees.sizes)
        self.symbol = table.encode(trees)
        self.child = np.argsort(trees.parent, kind="stable")[self.trees :]  # the roots sort first
        self.parent = trees.parent[self.child]
        self.child_count, size = trees.child_count, len(trees)
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
        # What ``number_subtrees`` looks at, and what it knows.
        self._deep, self._edges = np.arange(size), np.arange(len(self.child))
        self._twin = np.arange(size)

    def number_subtrees(self, classes: Longs) -> tuple[Longs, Longs]:
        """Give nodes numbers by their symbol and the classes of their children.

        The classes are symbols at first, and then the numbers of the last call: each call looks one
        level deeper. What has no nodes on that level stays as it was.

        Returns:
            The number of each node, and for each number the first node that has it.
        """
        if loops := compiled.loops:
            arrays = self.symbol, classes, self.child, self.child_offsets
            return compiled.number(loops.number_subtrees, len(classes), *arrays)
        salt = 0
        while not self._find_twins(classes, salt):
            salt += 2
        # In the next call, what matters are nodes with children that did matter in this one.
        matters = np.zeros(len(self.symbol), bool)
        matters[self._deep] = True
        matters = np.bincount(self.parent[matters[self.child]], minlength=len(matters)) > 0
        self._deep = np.flatnonzero(matters)
        self._edges = np.flatnonzero(matters[self.parent])
        return number_twins(self._twin)

    def _find_twins(self, classes: Longs, salt: int) -> bool:
        """Find the first node like each, by a hash, and tell whether it did not deceive."""
        deep, edges = self._deep, self._edges
        hashed = mix(self.symbol[deep], salt)
        below, above = self.child[edges], self.parent[edges]
        place = self.position[below]
        if len(edges):
            parts = mix(classes[below], mix(place, salt + 1))
            count = self.child_count[deep]
            begins = np.concatenate([[0], np.cumsum(count)[:-1]])[count > 0]
            hashed[count > 0] += np.add.reduceat(parts, begins)
        twin = self._twin
        twin[deep] = deep[find_twins(hashed)]
        mine = twin[deep]
        return bool(
            np.array_equal(self.symbol[deep], self.symbol[mine])
            and np.array_equal(self.child_count[deep], self.child_count[mine])
            and np.array_equal(
                classes[below], classes[self.child[self.child_offsets[twin[above]] + place]]
            )
        )

    def windows_of(self, nodes: Longs, depth: int, below: Longs) -> tuple[WindowLayer, Ints]:
        """Return the windows of some nodes, and the depth of each member."""
        if depth == 2:
            # A node, then its children: nothing to sort.
            offsets = np.concatenate([[0], np.cumsum(self.child_count[nodes] + 1)])
            members = np.repeat(nodes, np.diff(offsets))
            depths = np.ones(len(members), np.int32)
            depths[offsets[:-1]] = 2
            members[depths == 1] = self.child[select_runs(self.child_offsets, nodes)[1]]
            return WindowLayer(offsets, below[members]), depths
        offsets, members, depths = self._descend(nodes, depth)
        top = ((depths - 1) / (depth - 1)).astype(np.float32)
        right = np.where(depths < depth, (1 - top) * self.place[members], 0).astype(np.float32)
        left = ((1 - top) * (1 - right)).astype(np.float32)
        return WindowLayer(offsets, below[members], Weights(top, left, right)), depths

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


def _weights_of_pairs(offsets: Longs) -> Weights:
    """Return the weights of windows of depth 2: a node, then its children from left to right."""
    sizes = np.diff(offsets)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1] + 1, sizes)
    last = np.repeat(sizes - 2, sizes)  # the place of the last child
    right = np.where(last > 0, place / np.maximum(last, 1), 0.5).astype(np.float32)
    right[offsets[:-1]] = 0
    top = np.zeros(len(place), np.float32)
    top[offsets[:-1]] = 1
    return Weights(top, (1 - top) * (1 - right), right)
