"""Which lines of two works correspond where no part of their syntax trees is the same.

A line has the windows of the nodes that begin in it, each a node with its children in common kinds,
and the words of its names and literals. The vectors of programs are made of windows and words too.
What few lines have weighs more. Two lines correspond if each has more in common with the other than
with any line beside it, and enough of what both have.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.hashing import hash_64
from treecaps.search.copies import ranges
from treecaps.search.parts import Part, Subtrees
from treecaps.search.pieces import hash_shapes
from treecaps.syntax.subtokens import split_token

LEAST = 0.35
"""Which share of what two lines have must be common to both."""
COMMON = 50
"""What more lines have does not tell which of them correspond."""

_Ints = NDArray[np.int64]
_Features = tuple[_Ints, NDArray[np.uint64]]


class Line(NamedTuple):
    """A line of a work: which program, and which line of it, from 1."""

    program: int
    number: int


class LinePair(NamedTuple):
    """Two lines that correspond, and the share of both that is common."""

    left: Line
    right: Line
    share: float


class Feature(NamedTuple):
    """The window or a word of a node: its program, its line, its first byte, and a hash."""

    program: int
    line: int
    start: int
    hash: int


class Lines:
    """What the lines of a work are made of, without what everybody was given.

    Args:
        work: The work.
    """

    def __init__(self, work: Subtrees) -> None:
        found = list(list_features(work))
        columns = np.array(found, np.uint64).reshape(-1, 4)
        self._program, number, self._start = columns[:, :3].astype(np.int64).T
        self._hash = columns[:, 3]
        most = int(number.max(initial=0)) + 1
        known, self._line = np.unique(self._program * most + number, return_inverse=True)
        self.lines = [Line(*divmod(one, most)) for one in known.tolist()]

    def beside(self, parts: Sequence[Part], side: int) -> _Features:
        """Return numbers of lines, and hashes of what each has beside parts of a side, once."""
        kept = np.ones(len(self._hash), bool)
        for program in {part.program[side] for part in parts}:
            spans = sorted(
                (part.start[side], part.end[side])
                for part in parts
                if part.program[side] == program
            )
            begin, end = np.array(spans).T
            last = np.searchsorted(begin, self._start, "right") - 1
            kept &= (self._program != program) | (last < 0) | (self._start >= end[last])
        order = np.lexsort((self._hash[kept], self._line[kept]))
        line, hashes = self._line[kept][order], self._hash[kept][order]
        fresh = np.ones(len(line), bool)
        fresh[1:] = (line[1:] != line[:-1]) | (hashes[1:] != hashes[:-1])
        return line[fresh], hashes[fresh]


def list_features(work: Subtrees) -> Iterator[Feature]:
    """Yield the windows and words of all nodes but roots, and but what everybody was given."""
    first = 0
    for program, (tree, common) in enumerate(zip(work.trees, work.common, strict=True)):
        window = hash_shapes(common.kind, common.parent, 1).tolist()
        inner = set(common.parent.tolist())
        given = work.given[first : first + len(common)]
        first += len(common)
        start, end = tree.start[common.node], tree.end[common.node].tolist()
        breaks = np.flatnonzero(np.frombuffer(tree.text, np.uint8) == ord("\n"))
        line = (np.searchsorted(breaks, start) + 1).tolist()
        for node in range(1, len(common)):
            if given[node]:
                continue
            begin = int(start[node])
            yield Feature(program, line[node], begin, window[node])
            for word in () if node in inner else split_token(tree.text[begin : end[node]]):
                yield Feature(program, line[node], begin, hash_64(word.encode()))


def match_lines(left: Lines, right: Lines, parts: Sequence[Part] = ()) -> list[LinePair]:
    """Return the lines that correspond, in the order of the left work.

    Args:
        left: One work.
        right: The other.
        parts: What matches already, and is left out.
    """
    one, other, share = _compare(left.beside(parts, 0), right.beside(parts, 1))
    near = share >= LEAST
    one, other, share = one[near], other[near], share[near]
    # Of lines that are as near, those correspond that stand as far down in both works.
    apart = np.abs(one / max(len(left.lines), 1) - other / max(len(right.lines), 1))
    best: list[LinePair] = []
    seen: set[tuple[int, int]] = set()
    for which in np.lexsort((apart, -share.round(6))).tolist():
        ends = {(0, int(one[which])), (1, int(other[which]))}
        if not ends & seen:
            lines = left.lines[one[which]], right.lines[other[which]]
            best.append(LinePair(*lines, float(share[which])))
        seen |= ends
    return sorted(best)


def _compare(left: _Features, right: _Features) -> tuple[_Ints, _Ints, NDArray[np.float64]]:
    """Return which lines of both sides have something in common, and which share it is."""
    (line, hashes), (match, others) = left, right
    _, which = np.unique(np.concatenate([hashes, others]), return_inverse=True)
    count = np.bincount(which)
    size = len(np.unique(line)) + len(np.unique(match))
    weight = np.where(count <= COMMON, np.log(1 + size / np.maximum(count, 1)), 0)
    mine, theirs = which[: len(line)], which[len(line) :]
    totals = np.bincount(line, weight[mine]), np.bincount(match, weight[theirs])
    told = weight[mine] > 0
    line, mine = line[told], mine[told]
    order = np.argsort(theirs, kind="stable")
    begin, end = (np.searchsorted(theirs[order], mine, side) for side in ("left", "right"))
    both = np.repeat(line, end - begin) * (1 + match.max(initial=0))
    both += match[order[ranges(begin, end)]]
    pairs, place = np.unique(both, return_inverse=True)
    shared = np.bincount(place, np.repeat(weight[mine], end - begin), len(pairs))
    one, other = np.divmod(pairs, 1 + match.max(initial=0))
    return one, other, 2 * shared / (totals[0][one] + totals[1][other])
