"""How much of a program stands in another too, whatever its names, literals and layout.

The share of two programs is that of the smaller one: the weight of the pieces both have, divided by
the weight of all its pieces. A piece counts as often as it occurs. In a collection of N programs, a
piece that n of them have weighs

    w = log(N / max(n - 1, 1)) + 0.1

so that what few have counts most, and what all have hardly counts: n - 1 because a copy and its
original are two. Of a collection of two programs all pieces weigh the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.search.pieces import find_pieces, key_without_names
from treecaps.syntax.node_hashes import Hashes, mix
from treecaps.syntax.tree import Tree

MOST = 0.99
"""The largest share of programs that are not the same but for names and layout."""

_FLOOR = 0.1
_ALL = 2000
"""Up to so many programs, each is compared with each."""
_RARE = 100
"""Of more, those are compared that have a piece in common which no more programs have."""

Step = Callable[[float], None]
"""Called now and then with the share done, from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Work:
    """What is compared: a program, a function of one, or several programs together.

    Args:
        pieces: The hashes of its pieces, as often as it has them.
        key: The same for works that differ in names and layout only.
    """

    pieces: Hashes
    key: str

    @classmethod
    def from_trees(cls, trees: Iterable[Tree]) -> "Work":
        """Take programs apart that belong together."""
        return cls.join([cls.from_tree(tree) for tree in trees])

    @classmethod
    def from_tree(cls, tree: Tree) -> "Work":
        """Take a program apart."""
        return cls(find_pieces(tree).hashes, key_without_names(tree))

    @classmethod
    def join(cls, works: Sequence["Work"]) -> "Work":
        """Put works together, in any order."""
        if len(works) == 1:
            return works[0]
        none = [np.zeros(0, np.uint64)]
        pieces = np.concatenate(none + [work.pieces for work in works])
        return cls(pieces, " ".join(sorted(work.key for work in works)))


class Pair(NamedTuple):
    """Two works by their numbers, and the share of the smaller one that both have."""

    left: int
    right: int
    copied: float


class Copies:
    """Works of a collection, ready to be compared.

    Args:
        works: The collection. It says which pieces are common.
        template: Works that everybody was given. Their pieces do not count, as often as one of them
            has them. A work of which nothing is left shares nothing.
    """

    def __init__(self, works: Sequence[Work], template: Sequence[Work] = ()) -> None:
        none = [np.zeros(0, np.uint64)]
        given = np.concatenate(none + [numbered(work.pieces) for work in template])
        known: dict[str, int] = {}
        keys = [work.key for work in works]
        # Works that are the same are compared once, and do not make their pieces common.
        self._same = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
        _, first = np.unique(self._same, return_index=True)
        sets = []
        for number in first.tolist():
            pieces = numbered(works[number].pieces)
            sets.append(pieces[~np.isin(pieces, given)] if len(given) else pieces)
        sizes = [len(pieces) for pieces in sets]
        self._begin = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        every = np.concatenate(none + sets)
        _, self._piece, self._count = np.unique(every, return_inverse=True, return_counts=True)
        size = max(len(sets), 1)
        self._weight = np.log(size / np.maximum(self._count - 1, 1)) + _FLOOR
        owner = np.repeat(np.arange(len(sets)), sizes)
        weight = self._weight[self._piece]
        common = weight * (self._count[self._piece] > _RARE)
        self._total = _sum(owner, weight, len(sets))
        self._common = _sum(owner, common, len(sets))
        self._scratch = np.zeros(len(self._weight))
        self._owners = owner[np.argsort(self._piece, kind="stable")]
        self._owners_begin = np.concatenate([[0], np.cumsum(self._count)])

    def __len__(self) -> int:
        return len(self._same)

    def compare(self, left: int, right: int) -> float:
        """Return the share of the smaller of two works that both have, from 0 to 1.

        It is 1 only if both are the same but for names, comments and layout.
        """
        one, other = int(self._same[left]), int(self._same[right])
        if one == other:
            return self._with_itself(one)
        shared = self._shared_by(one, np.array([other]))
        return float(_divide(shared, np.minimum(self._total[[other]], self._total[one]))[0])

    def pairs(
        self,
        threshold: float = 0.0,
        *,
        new: int | None = None,
        chosen: NDArray[np.int64] | None = None,
        step: Step | None = None,
    ) -> Iterator[Pair]:
        """Yield the pairs whose share is at least a threshold, by the number of the left one.

        Args:
            threshold: The least share. At 0 or less all pairs of a collection of up to 2000
                different works are yielded; of more, only those that share a rare piece.
            new: If given, only pairs of one of the first so many works with one of the others.
            chosen: The numbers of the works that are compared, in order; all by default.
            step: Called with the share done.
        """
        numbers = range(len(self)) if chosen is None else chosen.tolist()
        members: list[list[int]] = [[] for _ in range(len(self._total))]
        for number in numbers:
            members[self._same[number]].append(number)
        for number in numbers:
            if new is not None and number >= new:
                break
            if step:
                step(number / len(self))
            one = int(self._same[number])
            others, shares = self._row(one, threshold)
            itself = self._with_itself(one)
            found = [Pair(number, other, itself) for other in members[one] if itself >= threshold]
            for other, share in zip(others.tolist(), shares.tolist(), strict=True):
                found += [Pair(number, member, share) for member in members[other]]
            first = number + 1 if new is None else new
            yield from sorted(pair for pair in found if pair.right >= first)

    def links(self, threshold: float, *, step: Step | None = None) -> Iterator[Pair]:
        """Yield the pairs above a threshold, without those that follow from equal works.

        Each work that equals an earlier one is paired with the first such work and with no other.
        """
        _, first = np.unique(self._same, return_index=True)
        for number, same in enumerate(self._same.tolist()):
            if step:
                step(number / len(self))
            if first[same] < number:
                if self._with_itself(same) >= threshold:
                    yield Pair(int(first[same]), number, 1.0)
                continue
            others, shares = self._row(same, threshold)
            for other, share in zip(others.tolist(), shares.tolist(), strict=True):
                if other > same:
                    yield Pair(number, int(first[other]), share)

    def nearest(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return of each of some works the largest share with another of them."""
        distinct, which, count = np.unique(
            self._same[numbers], return_inverse=True, return_counts=True
        )
        best = np.zeros(len(distinct))
        for place, one in enumerate(distinct.tolist()):
            if count[place] > 1:
                best[place] = self._with_itself(one)
            elif len(distinct) > 1:
                others = np.delete(distinct, place)
                least = np.minimum(self._total[others], self._total[one])
                best[place] = _divide(self._shared_by(one, others), least).max()
        return best[which]

    def is_empty(self, number: int) -> bool:
        """Whether nothing is left of a work without the template."""
        return not self._total[self._same[number]]

    def _with_itself(self, one: int) -> float:
        return 1.0 if self._total[one] else 0.0

    def _row(self, one: int, threshold: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return which different works share enough with one, and their shares."""
        mine = self._pieces(one)
        every = len(self._total) <= _ALL
        shared = self._shared(mine if every else mine[self._count[mine] <= _RARE])
        others = np.arange(len(shared)) if every else np.flatnonzero(shared)
        others = others[others != one]
        least = np.minimum(self._total[others], self._total[one])
        if not every:
            # As if all that is common were shared: no pair above the threshold is missed.
            best = shared[others] + np.minimum(self._common[others], self._common[one])
            enough = best >= threshold * least - 1e-9
            others, least = others[enough], least[enough]
            shared[others] = self._shared_by(one, others)
        shares = _divide(shared[others], least)
        enough = shares >= threshold
        return others[enough], shares[enough]

    def _shared(self, pieces: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight that each work has of some pieces, by looking at who has them."""
        place = ranges(self._owners_begin[pieces], self._owners_begin[pieces + 1])
        weight = np.repeat(self._weight[pieces], self._count[pieces])
        return _sum(self._owners[place], weight, len(self._total))

    def _shared_by(self, one: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight that some works have of the pieces of one, by looking at theirs."""
        mine, pieces = self._scratch, self._pieces(one)
        mine[pieces] = self._weight[pieces]
        begin, end = self._begin[others], self._begin[others + 1]
        owner = np.repeat(np.arange(len(others)), end - begin)
        weight = mine[self._piece[ranges(begin, end)]]
        shared = _sum(owner, weight, len(others))
        mine[pieces] = 0
        return shared

    def _pieces(self, one: int) -> NDArray[np.int64]:
        pieces: NDArray[np.int64] = self._piece[self._begin[one] : self._begin[one + 1]]
        return pieces


def _divide(shared: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares of works that are not the same; what has no pieces left shares nothing."""
    shares = np.divide(shared, least, out=np.zeros(len(shared)), where=least > 0)
    return np.minimum(shares, MOST)


def _sum(owner: NDArray[np.int64], weight: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the sum of the weights that belong to each owner."""
    return np.bincount(owner, weight, size).astype(np.float64, copy=False)


def numbered(pieces: Hashes) -> Hashes:
    """Return hashes as a set in which the second of equal pieces differs from the first.

    What two such sets have in common is what their lists have in common, each piece as often as
    the list has it that has it less often.
    """
    distinct, count = np.unique(pieces, return_counts=True)
    place = np.arange(len(pieces)) - np.repeat(np.cumsum(count) - count, count)
    return mix(np.repeat(distinct, count) + mix(place.astype(np.uint64)))


def ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of several ranges, one after the other."""
    size = end - begin
    before = np.cumsum(size) - size
    numbers: NDArray[np.int64] = np.arange(size.sum()) + np.repeat(begin - before, size)
    return numbers
