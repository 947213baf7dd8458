"""Copies in data sets: equal texts, equal trees, and programs that are nearly the same.

Two programs are near copies when their sets of shingles, runs of five nodes with the text of
the leaves among them, have a Jaccard similarity of at least 0.8. MinHash proposes the pairs and
the sets themselves decide.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from treecaps.data.corpus import Corpus
from treecaps.hashing import hash_64
from treecaps.syntax.node_hashes import BASE, Hashes, hash_kinds, hash_texts, mix
from treecaps.syntax.tree import Tree

NEAR = 0.8
"""The similarity from which on programs count as near copies."""

Group = list[int]
Step = Callable[[float], None]

_RUN = 5
_BANDS, _ROWS = 16, 4
_LEADERS = 3
_BLOCK = 1 << 14
_MARGIN = 0.2  # an estimate from 64 hashes strays this far once in 30,000 times

_random = np.random.default_rng(20191213)
_MULTIPLIERS = _random.integers(0, 2**63, _BANDS * _ROWS, np.uint64) * np.uint64(2) + np.uint64(1)


@dataclass(frozen=True)
class Duplicates:
    """Groups of programs of one corpus, by their numbers in it, that are copies of each other.

    Args:
        exact: The same text.
        same_tree: The same tree of kinds: names, literals and layout may differ.
        near: Nearly the same, or chained by programs that are.
    """

    exact: list[Group]
    same_tree: list[Group]
    near: list[Group]


@dataclass(frozen=True)
class Copies:
    """Programs of one corpus that are copies of programs of another: number to original's."""

    exact: dict[int, int]
    same_tree: dict[int, int]
    near: dict[int, int]


def find_duplicates(corpus: Corpus, *, near: float = NEAR, step: Step | None = None) -> Duplicates:
    """Find copies within a corpus; ``step`` is called with the share done."""
    sketches = _Sketches([corpus], step)
    groups = _Groups(len(corpus))
    for one, other in sketches.near_pairs(near):
        groups.join(one, other)
    return Duplicates(_equal(sketches.texts), _equal(sketches.trees), groups.found())


def find_copies(
    corpus: Corpus, originals: Corpus, *, near: float = NEAR, step: Step | None = None
) -> Copies:
    """Find the programs of ``corpus`` that have copies among ``originals``."""
    sketches = _Sketches([originals, corpus], step)
    known = len(originals)

    def equal(hashes: Hashes) -> dict[int, int]:
        first = {value: number for number, value in reversed(list(enumerate(hashes[:known])))}
        copies = enumerate(hashes[known:])
        return {number: first[value] for number, value in copies if value in first}

    nearly: dict[int, int] = {}
    for one, other in sketches.near_pairs(near):
        if one < known <= other:
            nearly.setdefault(other - known, one)
    return Copies(equal(sketches.texts), equal(sketches.trees), dict(sorted(nearly.items())))


def shingles(tree: Tree) -> Hashes:
    """Return the sorted hashes of a tree's runs of five nodes, leaves with their text."""
    return np.unique(_shingles(tree))


def similarity(one: Tree, other: Tree) -> float:
    """Return the Jaccard similarity of two trees' shingles."""
    return _jaccard(shingles(one), shingles(other))


def _shingles(tree: Tree) -> Hashes:
    tokens = hash_texts(tree)
    tokens[tree.child_count > 0] = 0
    nodes = mix(hash_kinds(tree.kinds)[tree.kind] + tokens * np.uint64(31))
    runs = nodes.copy()
    for ahead in range(1, min(_RUN, len(nodes))):
        runs[:-ahead] += nodes[ahead:] * np.uint64(pow(int(BASE), ahead, 2**64))
    return mix(runs)


def _signature(hashes: Hashes) -> NDArray[np.uint32]:
    """Return the MinHash of a set: the least of its hashes under each of 64 multipliers."""
    least = np.full(len(_MULTIPLIERS), np.iinfo(np.uint64).max, np.uint64)
    for first in range(0, len(hashes), _BLOCK):
        products = hashes[first : first + _BLOCK, None] * _MULTIPLIERS
        least = np.minimum(least, products.min(axis=0))
    return (least >> np.uint64(32)).astype(np.uint32)


def _jaccard(one: Hashes, other: Hashes) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


class _Sketches:
    """For every program of some corpora: hashes of text and tree, and a MinHash signature."""

    def __init__(self, corpora: list[Corpus], step: Step | None) -> None:
        self._corpora = corpora
        size = sum(map(len, corpora))
        self.texts = np.zeros(size, np.uint64)
        self.trees = np.zeros(size, np.uint64)
        self._signatures = np.zeros((size, len(_MULTIPLIERS)), np.uint32)
        for number in range(size):
            tree = self._tree(number)
            self.texts[number] = hash_64(tree.text)
            shape = hash_kinds(tree.kinds)[tree.kind].tobytes() + tree.parent.tobytes()
            self.trees[number] = hash_64(shape)
            self._signatures[number] = _signature(_shingles(tree))
            if step and number % 100 == 0:
                step(number / size)

    def _tree(self, number: int) -> Tree:
        for corpus in self._corpora:
            if number < len(corpus):
                return corpus[number]
            number -= len(corpus)
        raise IndexError(number)

    def near_pairs(self, near: float) -> Iterator[tuple[int, int]]:
        """Yield pairs of programs that are at least so similar, the earlier first."""
        cached = lru_cache(maxsize=4096)(lambda number: shingles(self._tree(number)))
        for one, other in self._candidates(near - _MARGIN):
            if _jaccard(cached(one), cached(other)) >= near:
                yield one, other

    def _candidates(self, least: float) -> list[tuple[int, int]]:
        size = len(self._signatures)
        pairs = np.zeros(0, np.int64)
        for band in range(_BANDS):
            rows = self._signatures[:, band * _ROWS : (band + 1) * _ROWS].astype(np.uint64)
            keys = np.zeros(size, np.uint64)
            for row in rows.T:
                keys = mix(keys * BASE + row)
            order = np.argsort(keys, kind="stable")
            first = np.searchsorted(keys[order], keys[order], side="left")
            # Each program is compared with the first few of its bucket, not with all.
            for place in range(_LEADERS):
                later = np.flatnonzero(np.arange(size) - first > place)
                leaders = order[first[later] + place]
                pairs = np.union1d(pairs, leaders * size + order[later])
        one, other = np.divmod(pairs, size)
        found = zip(one.tolist(), other.tolist(), strict=True)
        return [(a, b) for a, b in found if self._agreement(a, b) >= least]

    def _agreement(self, one: int, other: int) -> float:
        return float(np.mean(self._signatures[one] == self._signatures[other]))


class _Groups:
    """Numbers joined into groups."""

    def __init__(self, size: int) -> None:
        self._leader = list(range(size))

    def _find(self, number: int) -> int:
        while self._leader[number] != number:
            self._leader[number] = self._leader[self._leader[number]]
            number = self._leader[number]
        return number

    def join(self, one: int, other: int) -> None:
        one, other = sorted((self._find(one), self._find(other)))
        self._leader[other] = one

    def found(self) -> list[Group]:
        """Return the groups of two and more, in order."""
        return _equal(np.array([self._find(number) for number in range(len(self._leader))]))


def _equal(values: NDArray[np.generic]) -> list[Group]:
    """Return the numbers that share a value, as groups of two and more, in order."""
    groups: dict[object, Group] = {}
    for number, value in enumerate(values.tolist()):
        groups.setdefault(value, []).append(number)
    return [group for group in groups.values() if len(group) > 1]
