"""Which lines of two works correspond where no part of their syntax trees is the same.

A line has the windows of the nodes that begin in it, each a node with its children in common kinds,
and the words of its names and literals. The vectors of programs are made of windows and words too.
What few lines have weighs more. Two lines correspond if each has more in common with the other than
with any line beside it, and enough of what both have.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.search.parts import Part, Subtrees
from treecaps.search.pieces import hash_shapes
from treecaps.syntax.common import CommonTree
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree

LEAST = 0.35
"""Which share of what two lines have must be common to both."""
_COMMON = 50
"""What more lines have does not tell which of them correspond."""

_Features = Counter[int | str]


class Line(NamedTuple):
    """A line of a work: which program, and which line of it, from 1."""

    program: int
    number: int


class LinePair(NamedTuple):
    """Two lines that correspond, and the share of both that is common."""

    left: Line
    right: Line
    share: float


class Lines:
    """What the lines of a work are made of, without what everybody was given.

    Args:
        work: The work.
    """

    def __init__(self, work: Subtrees) -> None:
        given = [work.given[work.program == number] for number in range(len(work.trees))]
        self._programs = [
            sorted(_read_nodes(*one), key=itemgetter(1))
            for one in zip(work.trees, work.common, given, strict=True)
        ]

    def beside(self, parts: Iterable[Part], side: int) -> dict[Line, _Features]:
        """Return what the lines are made of beside what stands in some parts of a side."""
        spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for part in parts:
            spans[part.program[side]].append((part.start[side], part.end[side]))
        found: defaultdict[Line, _Features] = defaultdict(Counter)
        for program, nodes in enumerate(self._programs):
            ends = iter(sorted(spans[program]))
            begin, end = next(ends, (0, 0))
            for number, start, features in nodes:  # by where they begin
                while start >= end > 0:
                    begin, end = next(ends, (0, 0))
                if not begin <= start < end:
                    found[Line(program, number)].update(features)
        return found


def _read_nodes(
    tree: Tree, common: CommonTree, given: NDArray[np.bool_]
) -> Iterator[tuple[int, int, list[int | str]]]:
    """Yield the line of each node but the root, its first byte, and its window and words."""
    window = hash_shapes(common.kind, common.parent, 1).tolist()
    inner = set(common.parent.tolist())
    start, end = tree.start[common.node], tree.end[common.node].tolist()
    breaks = np.flatnonzero(np.frombuffer(tree.text, np.uint8) == ord("\n"))
    line = (np.searchsorted(breaks, start) + 1).tolist()
    for node, first in enumerate(start.tolist()):
        words = () if node in inner else split_token(tree.text[first : end[node]])
        if node and not given[node]:
            yield line[node], first, [window[node], *words]


def match_lines(left: Lines, right: Lines, parts: Sequence[Part] = ()) -> list[LinePair]:
    """Return the lines that correspond, in the order of the left work.

    Args:
        left: One work.
        right: The other.
        parts: What matches already, and is left out.
    """
    one, other = left.beside(parts, 0), right.beside(parts, 1)
    weight = _weigh([*one.values(), *other.values()])
    totals = [{line: _sum(weight, some) for line, some in side.items()} for side in (one, other)]
    # Of lines that are as near, those correspond that stand as far down in both works.
    depth = [
        {line: place / len(side) for place, line in enumerate(sorted(side))}
        for side in (one, other)
    ]
    found = [
        LinePair(line, match, 2 * common / (totals[0][line] + totals[1][match]))
        for (line, match), common in _share(one, other, weight).items()
    ]
    found = [pair for pair in found if pair.share >= LEAST]
    found.sort(key=lambda pair: (-pair.share, abs(depth[0][pair.left] - depth[1][pair.right])))
    best: list[LinePair] = []
    seen: set[tuple[int, Line]] = set()
    for pair in found:
        ends = {(0, pair.left), (1, pair.right)}
        if not ends & seen:
            best.append(pair)
        seen |= ends
    return sorted(best)


def _weigh(lines: Sequence[_Features]) -> dict[int | str, float]:
    """Return how much each feature says."""
    count = Counter(feature for line in lines for feature in line)
    return {
        feature: log(1 + len(lines) / many) for feature, many in count.items() if many <= _COMMON
    }


def _sum(weight: Mapping[int | str, float], features: _Features) -> float:
    return sum(weight.get(feature, 0.0) * many for feature, many in features.items())


def _share(
    one: Mapping[Line, _Features],
    other: Mapping[Line, _Features],
    weight: Mapping[int | str, float],
) -> dict[tuple[Line, Line], float]:
    """Return what lines of both sides have in common, of those that have something."""
    places: defaultdict[int | str, list[Line]] = defaultdict(list)
    for line, features in other.items():
        for feature in features.keys() & weight.keys():
            places[feature].append(line)
    shared: defaultdict[tuple[Line, Line], float] = defaultdict(float)
    for line, features in one.items():
        for feature, many in features.items():
            for match in places.get(feature, ()):
                shared[line, match] += weight[feature] * min(many, other[match][feature])
    return shared
