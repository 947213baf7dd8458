"""Programs of a folder compared by both measures: copied, and alike."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.inference.embed import Embedder
from treecaps.search.clones import Group, Joined, check_threshold, link_alike
from treecaps.search.copies import Copies, Work
from treecaps.search.matches import Match, Vectors
from treecaps.search.units import Unit
from treecaps.text import html_table

COPIED = 0.8
"""From this share on, programs count as copied."""
EVERY = 2000
"""Up to so many programs, every pair can be listed."""
EQUAL = 100
"""Of more units that are equal, only so many are in pairs with others."""

Step = Callable[[float], None]
"""Called now and then with the share done, from 0 to 1."""


@dataclass(frozen=True)
class ClonePair:
    """Two units, and how much they have in common.

    Args:
        left: One of them.
        right: The other.
        copied: The share of the smaller one that both have.
        similarity: The product of their vectors.
        probability: How probable it is that both solve the same problem; ``None`` if that is not
            known.
    """

    left: Unit
    right: Unit
    copied: float
    similarity: float
    probability: float | None

    def _repr_html_(self) -> str:
        known = self.probability
        alike = f"{self.similarity:.2f}" if known is None else f"{known:.0%}"
        rows = [(one.name, one.function or "", one.language) for one in (self.left, self.right)]
        title = f"copied {self.copied:.0%}, alike {alike}"
        return html_table(title, ("place", "function", "language"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        known = None if self.probability is None else round(self.probability, 4)
        values = {
            "left": self.left.name,
            "right": self.right.name,
            "left_function": self.left.function,
            "right_function": self.right.function,
            "copied": round(self.copied, 4),
            "similarity": round(self.similarity, 4),
            "probability": known,
        }
        return {name: value for name, value in values.items() if value is not None}


class Collection:
    """Units that are compared with each other, or with older ones.

    Args:
        embedder: What made their vectors.
        units: What is compared.
        old: If there are any, units are compared with these only.
        template: What everybody was given, which does not count. Units of which nothing is left
            are like no other.
    """

    def __init__(
        self,
        embedder: Embedder,
        units: Sequence[Unit],
        old: Sequence[Unit] = (),
        template: Sequence[Work] = (),
    ) -> None:
        self._embedder = embedder
        self.units = [*units, *old]
        self.new = len(units) if old else None
        """How many of them are compared with the others; ``None`` if all are with all."""
        self._copies = Copies([unit.work for unit in self.units], template)
        self._vectors = np.stack([unit.vector for unit in self.units] or [np.zeros(1, np.float32)])
        empty = [self._copies.is_empty(number) for number in range(len(self.units))]
        self._vectors[: len(empty)][empty] = 0
        self._first = self._find_equal()
        """Of each unit beyond the first ``EQUAL`` of those that are equal, the first of these."""

    def _find_equal(self) -> dict[int, int]:
        members: defaultdict[tuple[str, bytes, bool], list[int]] = defaultdict(list)
        for number, unit in enumerate(self.units):
            is_old = self.new is not None and number >= self.new
            members[unit.work.key, self._vectors[number].tobytes(), is_old].append(number)
        return {number: numbers[0] for numbers in members.values() for number in numbers[EQUAL:]}

    @property
    def num_left_out(self) -> int:
        """How many units are in no pair but, at most, one with the first of their equals."""
        return len(self._first)

    def __len__(self) -> int:
        return len(self.units)

    def groups(
        self,
        threshold: float | None = None,
        copied: float = COPIED,
        *,
        step: Step | None = None,
    ) -> list[Group]:
        """Return the groups of what is copied or alike, most copied first.

        Args:
            threshold: From which product of vectors on two are alike; what the embedder says by
                default.
            copied: From which share on two are copied.
            step: Called with the share done.
        """
        threshold = self._embedder.alike if threshold is None else threshold
        check_threshold(threshold)
        check_threshold(copied)
        joined = Joined(len(self))
        linked: defaultdict[int, list[int]] = defaultdict(list)
        for left, right, _ in self._copies.links(copied, step=_part(step, 0)):
            linked[left].append(right)
        for left, rights in linked.items():
            joined.join(left, np.array(rights))
        # Equal ones are in one group already, however many they are.
        known: dict[tuple[str, bytes], int] = {}
        for number, unit in enumerate(self.units):
            known.setdefault((unit.work.key, self._vectors[number].tobytes()), number)
        first = np.array(list(known.values()), np.int64)
        for place, others, _ in link_alike(self._vectors[first], threshold, step=_part(step, 1)):
            joined.join(int(first[place]), first[others])
        members: defaultdict[int, list[int]] = defaultdict(list)
        for number, group in enumerate(joined.group.tolist()):
            members[group].append(number)
        found = [self._group(numbers) for numbers in members.values() if len(numbers) > 1]
        return sorted(
            found, key=lambda one: (-(one.copied or 0), -one.similarity, one.members[0].path)
        )

    def _group(self, numbers: list[int]) -> Group:
        chosen = np.array(numbers)
        copied = self._copies.nearest(chosen)
        similarity = _nearest(self._vectors[chosen])
        members = []
        for place, number in enumerate(numbers):
            unit = self.units[number]
            span = (unit.path, unit.function, unit.line, unit.last_line, unit.language)
            alike = float(similarity[place])
            known = self._embedder.probability(alike)
            members.append(Match(*span, alike, known, float(copied[place])))
        members.sort(key=lambda match: (match.path, match.line or 0))
        least = min(member.similarity for member in members)
        return Group(least, tuple(members), float(copied.min()))

    def pairs(
        self,
        threshold: float | None = None,
        copied: float | None = None,
        *,
        step: Step | None = None,
    ) -> list[ClonePair]:
        """Return the pairs that are copied or alike, most copied first.

        Where more than 100 units are equal, 100 of them are compared with all others. The rest are
        in one pair each, with the first of their equals; in none, if old units are compared with.

        Args:
            threshold: From which product of vectors on a pair counts.
            copied: From which share on it counts. If neither is given, every pair counts, as long
                as there are not more than 2000 units.
            step: Called with the share done.
        """
        chosen = np.array(
            [number for number in range(len(self)) if number not in self._first], np.int64
        )
        if threshold is None and copied is None and len(chosen) <= EVERY:
            least = 0.0
            shares = self._copies.pairs(new=self.new, chosen=chosen, step=step)
            found = {(left, right): share for left, right, share in shares}
        else:
            threshold = self._embedder.alike if threshold is None else threshold
            copied = COPIED if copied is None else copied
            check_threshold(threshold)
            check_threshold(copied)
            least = copied
            shares = self._copies.pairs(copied, new=self.new, chosen=chosen, step=_part(step, 0))
            found = {(left, right): share for left, right, share in shares}
            for left, right in self._alike(chosen, threshold, _part(step, 1)):
                if (left, right) not in found:
                    found[left, right] = self._copies.compare(left, right)
        if self.new is None:
            for right, left in self._first.items():
                share = self._copies.compare(left, right)
                if share >= least:  # what is empty is like nothing
                    found[left, right] = share
        pairs = list(self._with_similarity(found))
        return sorted(pairs, key=lambda pair: (-pair.copied, -pair.similarity, pair.left.name))

    def _with_similarity(self, shares: dict[tuple[int, int], float]) -> Iterator[ClonePair]:
        """Yield pairs with both measures; those of one left unit are computed together."""
        ends = np.array(sorted(shares), np.int64).reshape(-1, 2)
        for some in np.split(ends, np.flatnonzero(np.diff(ends[:, 0])) + 1) if len(ends) else ():
            left, rights = int(some[0, 0]), some[:, 1]
            products = np.minimum(self._vectors[rights] @ self._vectors[left], 1)
            known = self._embedder.probabilities(products)
            for right, alike, one in zip(rights.tolist(), products.tolist(), known, strict=True):
                both = self.units[left], self.units[right]
                yield ClonePair(*both, shares[left, right], alike, one)

    def _alike(
        self, chosen: NDArray[np.int64], threshold: float, step: Step | None
    ) -> Iterator[tuple[int, int]]:
        for place, others, _ in link_alike(self._vectors[chosen], threshold, step=step):
            left = int(chosen[place])
            for right in chosen[others].tolist():
                if self.new is None or left < self.new <= right:
                    yield left, right


def _nearest(vectors: Vectors) -> Vectors:
    """Return of each vector the largest product with another; equal ones are looked at once."""
    _, first, which, count = np.unique(
        vectors, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    distinct = vectors[first]
    best = np.zeros(len(first), np.float32)
    for place in range(len(first)):
        products = distinct @ distinct[place]
        if count[place] == 1:
            products[place] = -1
        best[place] = min(products.max(), 1)
    return best[which.ravel()]


def _part(step: Step | None, place: int) -> Step | None:
    """Return what tells the progress of the first or second half of the work."""
    return None if step is None else lambda share: step((place + share) / 2)
