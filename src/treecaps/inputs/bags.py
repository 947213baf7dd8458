"""``Bags``: programs as features with counts, each feature known by its hash."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Generic, Literal

import numpy as np

from treecaps.hashing import hash_64
from treecaps.inputs.base import Array, Bools, Convert, InputDropout, Programs, select_runs
from treecaps.inputs.distinct import Longs, mix
from treecaps.syntax.joined import JoinedTrees, join_trees
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree

Feature = Literal["tokens", "leaves", "windows"]
"""What is counted: single tokens of the text and pairs of neighbours; leaves by their words, and up
to three neighbours together; or nodes with the kinds of their children."""

LONGEST_RUN = 3
"""How many neighbouring leaves count together at most."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class BagTensors(Generic[Array]):
    """``Bags`` as a network takes them."""

    offsets: Array
    feature: Array
    count: Array
    programs: int

    def __len__(self) -> int:
        return self.programs


@dataclass(frozen=True)
class Bags:
    """B programs with P features in all.

    Args:
        offsets: ``[B + 1]``, where each program's features begin.
        feature: ``[P]``, hashes, sorted within a program.
        count: ``[P]``, how often the program has each.
    """

    offsets: Longs
    feature: Longs
    count: Longs

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], feature: Feature) -> "Bags":
        """Count the features of trees."""
        table = BagTable(feature)
        for joined in join_trees(trees):
            table.add(joined)
        return table.bags()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Longs:
        """``[B]``, how many features each program has."""
        return np.diff(self.offsets)

    def select(
        self,
        programs: Programs,
        dropout: InputDropout | None = None,
        keep: Bools | None = None,
    ) -> "Bags":
        """Return some of the programs, in the order given.

        Args:
            programs: Which.
            dropout: Leaves out features.
            keep: ``[B]``, which of the programs keep their features; all by default.
        """
        offsets, rows = select_runs(self.offsets, np.asarray(programs, np.int64))
        kept = dropout.keep_features(np.diff(offsets)) if dropout else None
        if keep is not None:
            there = np.repeat(keep, np.diff(offsets))
            kept = there if kept is None else kept & there
        if kept is not None:
            offsets, rows = np.concatenate([[0], np.cumsum(kept)])[offsets], rows[kept]
        return Bags(offsets, self.feature[rows], self.count[rows])

    def to_tensors(self, convert: Convert[Array]) -> BagTensors[Array]:
        """Convert the arrays."""
        arrays = convert(self.offsets), convert(self.feature), convert(self.count)
        return BagTensors(*arrays, len(self))


class BagTable:
    """Gathers the features of trees."""

    def __init__(self, feature: Feature) -> None:
        self._feature = feature
        self._hashes: dict[tuple[str, ...], int] = {}
        self._found: list[tuple[Longs, Longs, Longs]] = []

    def add(self, trees: JoinedTrees) -> None:
        """Add programs."""
        parts = list(self._features(trees))
        offsets = np.cumsum([0, *map(len, parts)])
        every = np.concatenate([np.zeros(0, np.int64), *parts])
        for begin, end in pairwise(offsets.tolist()):
            every[begin:end].sort()
        # Equal ones are neighbours now; a program's first is new, whatever comes before it.
        is_first = np.ones(len(every) + 1, bool)
        is_first[1:-1] = every[1:] != every[:-1]
        is_first[offsets] = True
        first = np.flatnonzero(is_first[:-1])
        counts = np.diff(first, append=len(every))
        self._found.append((np.diff(np.searchsorted(first, offsets)), every[first], counts))

    def _features(self, trees: JoinedTrees) -> Iterator[Longs]:
        """Yield the features of each program, as often as it has them."""
        if self._feature == "leaves":
            leaves, runs = hash_leaves(trees)
            bounds = np.searchsorted(leaves, [*trees.firsts, len(trees)]).tolist()
            for begin, end in pairwise(bounds):
                yield np.concatenate(
                    [run[begin : max(begin, end - more)] for more, run in enumerate(runs)]
                )
            return
        spell = _tokens if self._feature == "tokens" else _windows
        for tree in trees.trees:
            yield np.array(list(map(self._hash, spell(tree))), np.int64)

    def bags(self) -> Bags:
        """Return all that was added."""
        sizes, features, counts = (
            np.concatenate([np.zeros(0, np.int64), *parts])
            for parts in (zip(*self._found, strict=True) if self._found else ((),) * 3)
        )
        return Bags(np.concatenate([[0], np.cumsum(sizes)]), features, counts)

    def _hash(self, words: tuple[str, ...]) -> int:
        found = self._hashes.get(words)
        if found is None:
            text = "\0".join(words).encode("utf-8", "surrogatepass")
            found = self._hashes[words] = _digest(text)
        return found


def _digest(text: bytes) -> int:
    return hash_64(text) - (1 << 63)


def hash_leaves(trees: JoinedTrees) -> tuple[Longs, list[Longs]]:
    """Hash the leaves of trees that have a text, and runs of neighbouring ones together.

    A name counts by its words, and a name that says nothing is like any other such name, so that
    renaming in whatever way leaves the same; any other leaf is its text, or what its kind says.

    Returns:
        ``[L]``, the leaves, in order; and for runs of one, two and three of them, hashes by
        where they begin: ``[L]``, ``[L - 1]`` and ``[L - 2]``. Some runs reach into the next tree.
    """
    nodes, text, names, texts = trees.leaf_texts
    hashes = trees.look_up(_hash_kinds)
    hashes[nodes] = np.array(list(map(_hash_leaf, names, texts)), np.int64)[text]
    runs = [hashes[trees.leaves]]
    for length in range(1, LONGEST_RUN):
        runs.append(mix(runs[-1][:-1], runs[0][length:]))
    return trees.leaves, runs


@cache
def _hash_kinds(kinds: tuple[str, ...]) -> Longs:
    """Return for each kind the hash of the text that it says, if it does."""
    return np.array([_digest(kind[1:-1].encode()) for kind in kinds], np.int64)


@lru_cache(1 << 16)
def _hash_leaf(name: bool, text: bytes) -> int:
    return _digest(" ".join(split_token(text, name=True)).encode() if name else text)


def _tokens(tree: Tree) -> Iterator[tuple[str, ...]]:
    words: Iterable[str] = _TOKEN.findall(tree.text.decode("utf-8", "replace"))
    words = list(words)
    for word in words:
        yield (word,)
    yield from pairwise(words)


def _windows(tree: Tree) -> Iterator[tuple[str, ...]]:
    kinds = tree.kind_names()
    windows = [[kind] for kind in kinds]
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            windows[parent].append(kinds[node])
    return map(tuple, windows)
