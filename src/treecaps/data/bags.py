"""``Bags``: programs as features with counts, each feature known by its hash."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import xxhash

from treecaps.data.distinct import Longs
from treecaps.data.symbols import select_runs
from treecaps.syntax.tree import Tree

Feature = Literal["tokens", "windows"]
"""Single tokens of the text and pairs of them, or nodes with the kinds of their children."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


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

    def select(self, programs: Longs) -> "Bags":
        """Return some of the programs, in the order given."""
        offsets, rows = select_runs(self.offsets, programs)
        return Bags(offsets, self.feature[rows], self.count[rows])


class BagTable:
    """Gathers the features of trees."""

    def __init__(self, feature: Feature) -> None:
        self._spell = _tokens if feature == "tokens" else _windows
        self._hashes: dict[tuple[str, ...], int] = {}
        self._found: list[tuple[Longs, Longs]] = []

    def add(self, tree: Tree, _: Longs) -> None:
        """Add a program."""
        counts = Counter(map(self._hash, self._spell(tree)))
        features = sorted(counts)
        numbers = [counts[feature] for feature in features]
        self._found.append((np.array(features, np.int64), np.array(numbers, np.int64)))

    def bags(self) -> Bags:
        """Return all that was added."""
        nothing = np.zeros(0, np.int64)
        features, counts = zip(*self._found, strict=True) if self._found else ((), ())
        return Bags(
            np.cumsum([0, *map(len, features)]),
            np.concatenate([nothing, *features]),
            np.concatenate([nothing, *counts]),
        )

    def _hash(self, words: tuple[str, ...]) -> int:
        found = self._hashes.get(words)
        if found is None:
            digest = xxhash.xxh3_64_intdigest("\0".join(words).encode("utf-8", "surrogatepass"))
            found = self._hashes[words] = digest - (1 << 63)
        return found


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
