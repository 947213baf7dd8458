"""Which parts of two works match, whatever their names, literals and layout."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treecaps.search.pieces import hash_shapes
from treecaps.syntax.common import CommonTree, to_common
from treecaps.syntax.tree import Tree

LEAST = 5
"""How many nodes in common kinds a part has at least."""
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Part:
    """A part of one work that also stands in the other.

    Args:
        start: The first byte of both, left and right.
        end: The byte after the last of both.
        line: The first line of both, from 1.
        last_line: The last line of both.
        size: How many nodes in common kinds it has.
        program: Which program of a work of several each stands in.
    """

    start: tuple[int, int]
    end: tuple[int, int]
    line: tuple[int, int]
    last_line: tuple[int, int]
    size: int
    program: tuple[int, int] = (0, 0)


def matching_parts(one: Tree, other: Tree) -> list[Part]:
    """Return the parts that two programs have in common, in the order of the first.

    The largest equal subtrees are found first; siblings in them may stand in any order. Subtrees
    that follow each other in both programs are one part.
    """
    return match_subtrees(Subtrees([one]), Subtrees([other]))


class Subtrees:
    """The subtrees in common kinds of the programs of a work, ready to be matched.

    Args:
        trees: The programs.
        template: Programs that everybody was given. Their subtrees match within larger ones only.
    """

    def __init__(self, trees: Sequence[Tree], template: "Subtrees | None" = None) -> None:
        self.trees = trees
        self.common = [to_common(tree) for tree in trees]
        self.program = np.repeat(np.arange(len(trees)), [len(one) for one in self.common])
        self.node = np.concatenate([_NONE, *(one.node for one in self.common)])
        self.parent = np.concatenate([_NONE, *_place(self.common)])
        measured = [_measure(one.parent.tolist()) for one in self.common]
        self.size = np.concatenate([_NONE, *(size for size, _ in measured)])
        shapes = (
            hash_shapes(one.kind, one.parent, depth + 1)
            for one, (_, depth) in zip(self.common, measured, strict=True)
        )
        self.shape = np.concatenate([_NONE.astype(np.uint64), *shapes])
        self.places: defaultdict[int, list[int]] = defaultdict(list)
        for place, shape in enumerate(self.shape.tolist()):
            self.places[shape].append(place)
        self.given: NDArray[np.bool_] = np.zeros(len(self), bool)
        if template:
            same = (self.size >= LEAST) & np.isin(self.shape, template.shape)
            for node in np.flatnonzero(same).tolist():
                self.given[node : node + self.size[node]] = True

    def __len__(self) -> int:
        return len(self.node)

    def span(self, nodes: list[int]) -> tuple[int, int]:
        """Return the first byte of some nodes of one program, and the one after the last."""
        tree = self.trees[self.program[nodes[0]]]
        places = self.node[nodes]
        return int(tree.start[places].min()), int(tree.end[places].max())

    def lines(self, program: int, span: tuple[int, int]) -> tuple[int, int]:
        """Return the first and the last line of some bytes of a program, from 1."""
        (start, end), text = span, self.trees[program].text
        first = text.count(b"\n", 0, start) + 1
        return first, first + text[start:end].rstrip().count(b"\n")


def _place(trees: Sequence[CommonTree]) -> Iterator[NDArray[np.int64]]:
    """Yield the parents in trees that stand one after the other."""
    first = 0
    for number, tree in enumerate(trees):
        # Roots of different programs are no siblings.
        yield np.where(tree.parent < 0, -1 - number, tree.parent + first)
        first += len(tree)


def _measure(parent: list[int]) -> tuple[NDArray[np.int64], int]:
    """Return how many nodes each subtree of a tree has, and how deep the tree is."""
    size, depth = [1] * len(parent), [0] * len(parent)
    for node in range(len(parent) - 1, 0, -1):
        up = parent[node]
        size[up] += size[node]
        depth[up] = max(depth[up], depth[node] + 1)
    return np.array(size, np.int64), depth[0]


def match_subtrees(left: Subtrees, right: Subtrees) -> list[Part]:
    """Return the parts that two works have in common, as ``matching_parts`` does."""
    taken, taken_right = left.given.copy(), right.given.copy()
    found: list[tuple[int, int]] = []
    for node in np.argsort(-left.size, kind="stable").tolist():
        if left.size[node] < LEAST:
            break
        if taken[node]:
            continue
        # A larger part that was taken holds all below it, so looking at the node itself is enough.
        same = right.places.get(int(left.shape[node]), ())
        free = [place for place in same if not taken_right[place]]
        if free:
            match = min(free, key=lambda place: abs(place - node))
            taken[node : node + left.size[node]] = True
            taken_right[match : match + right.size[match]] = True
            found.append((node, match))
    return _join(left, right, sorted(found))


def _join(left: Subtrees, right: Subtrees, found: list[tuple[int, int]]) -> list[Part]:
    """Return parts, with those that follow each other on both sides as one."""
    groups: list[list[tuple[int, int]]] = []
    for node, match in found:
        if groups:
            before, before_match = groups[-1][-1]
            if (
                before + left.size[before] == node
                and before_match + right.size[before_match] == match
                and left.parent[before] == left.parent[node]
                and right.parent[before_match] == right.parent[match]
            ):
                groups[-1].append((node, match))
                continue
        groups.append([(node, match)])
    return [_part(left, right, group) for group in groups]


def _part(left: Subtrees, right: Subtrees, group: list[tuple[int, int]]) -> Part:
    nodes, matches = ([pair[side] for pair in group] for side in (0, 1))
    spans = left.span(nodes), right.span(matches)
    program = int(left.program[nodes[0]]), int(right.program[matches[0]])
    lines = left.lines(program[0], spans[0]), right.lines(program[1], spans[1])
    return Part(
        start=(spans[0][0], spans[1][0]),
        end=(spans[0][1], spans[1][1]),
        line=(lines[0][0], lines[1][0]),
        last_line=(lines[0][1], lines[1][1]),
        size=int(left.size[nodes].sum()),
        program=program,
    )
