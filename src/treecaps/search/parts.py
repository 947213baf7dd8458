"""Which parts of two programs match, whatever their names, literals and layout."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treecaps.search.pieces import hash_shapes
from treecaps.syntax.common import CommonTree, to_common
from treecaps.syntax.tree import Tree

LEAST = 5
"""How many nodes in common kinds a part has at least."""


@dataclass(frozen=True)
class Part:
    """A part of one program that also stands in the other.

    Args:
        start: The first byte of both, left and right.
        end: The byte after the last of both.
        line: The first line of both, from 1.
        last_line: The last line of both.
        size: How many nodes in common kinds it has.
    """

    start: tuple[int, int]
    end: tuple[int, int]
    line: tuple[int, int]
    last_line: tuple[int, int]
    size: int


def matching_parts(one: Tree, other: Tree) -> list[Part]:
    """Return the parts that two programs have in common, in the order of the first.

    The largest equal subtrees are found first; siblings in them may stand in any order. Subtrees
    that follow each other in both programs are one part.
    """
    left, right = _Side(one), _Side(other)
    places: defaultdict[int, list[int]] = defaultdict(list)
    for node in range(len(right.size)):
        places[int(right.shape[node])].append(node)
    found: list[tuple[int, int]] = []
    for node in np.argsort(-left.size, kind="stable").tolist():
        if left.size[node] < LEAST:
            break
        if left.taken[node]:
            continue
        # A larger part that was taken holds all below it, so looking at the node itself is enough.
        free = [place for place in places[int(left.shape[node])] if not right.taken[place]]
        if free:
            match = min(free, key=lambda place: abs(place - node))
            left.take(node)
            right.take(match)
            found.append((node, match))
    return _join(left, right, sorted(found))


class _Side:
    """One of two programs: the hash and size of each subtree, and what is taken."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.common: CommonTree = to_common(tree)
        parent = self.common.parent
        self.size = np.ones(len(parent), np.int64)
        depth = np.zeros(len(parent), np.int64)
        for node in range(len(parent) - 1, 0, -1):
            self.size[parent[node]] += self.size[node]
            depth[parent[node]] = max(depth[parent[node]], depth[node] + 1)
        self.shape = hash_shapes(self.common.kind, parent, int(depth[0]) + 1)
        self.taken: NDArray[np.bool_] = np.zeros(len(parent), bool)

    def take(self, node: int) -> None:
        self.taken[node : node + self.size[node]] = True

    def span(self, nodes: list[int]) -> tuple[int, int]:
        places = self.common.node[nodes]
        return int(self.tree.start[places].min()), int(self.tree.end[places].max())

    def lines(self, span: tuple[int, int]) -> tuple[int, int]:
        start, end = span
        first = self.tree.text.count(b"\n", 0, start) + 1
        return first, first + self.tree.text[start:end].rstrip().count(b"\n")


def _join(left: _Side, right: _Side, found: list[tuple[int, int]]) -> list[Part]:
    """Return parts, with those that follow each other on both sides as one."""
    groups: list[list[tuple[int, int]]] = []
    for node, match in found:
        if groups:
            before, before_match = groups[-1][-1]
            if (
                before + left.size[before] == node
                and before_match + right.size[before_match] == match
                and left.common.parent[before] == left.common.parent[node]
                and right.common.parent[before_match] == right.common.parent[match]
            ):
                groups[-1].append((node, match))
                continue
        groups.append([(node, match)])
    parts = []
    for group in groups:
        nodes, matches = ([pair[side] for pair in group] for side in (0, 1))
        spans = left.span(nodes), right.span(matches)
        lines = left.lines(spans[0]), right.lines(spans[1])
        parts.append(
            Part(
                start=(spans[0][0], spans[1][0]),
                end=(spans[0][1], spans[1][1]),
                line=(lines[0][0], lines[1][0]),
                last_line=(lines[0][1], lines[1][1]),
                size=int(left.size[nodes].sum()),
            )
        )
    return parts
