"""Hashes of the kinds and texts of nodes, for all nodes of a tree at once."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from treecaps.hashing import hash_64
from treecaps.syntax.tree import Tree

Hashes = NDArray[np.uint64]

BASE = np.uint64(0x9E3779B97F4A7C15)
_BASE_INVERSE = np.uint64(pow(int(BASE), -1, 2**64))


def hash_texts(tree: Tree) -> Hashes:
    """Return a hash of the text of each node, the same wherever the text stands."""
    data = np.frombuffer(tree.text, np.uint8).astype(np.uint64) + np.uint64(1)
    powers, inverses = _powers(1 << max(14, len(data).bit_length()))
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum(data * powers[: len(data)], out=sums[1:])
    # The difference of two sums is the text between them, moved to where it stands.
    texts: Hashes = (sums[tree.end] - sums[tree.start]) * inverses[tree.start]
    return texts


@lru_cache(maxsize=2)
def _powers(size: int) -> tuple[Hashes, Hashes]:
    def geometric(base: np.uint64) -> Hashes:
        factors = np.full(size, base)
        factors[0] = 1
        return np.cumprod(factors, dtype=np.uint64)

    return geometric(BASE), geometric(_BASE_INVERSE)


@lru_cache(maxsize=256)
def hash_kinds(kinds: tuple[str, ...]) -> Hashes:
    """Return a hash of each kind of a grammar."""
    return np.array([hash_64(name.encode()) for name in kinds], np.uint64)


def mix(values: Hashes) -> Hashes:
    """Return hashes that differ in all bits where the given ones differ in some."""
    values = (values ^ (values >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed: Hashes = values ^ (values >> np.uint64(29))
    return mixed
