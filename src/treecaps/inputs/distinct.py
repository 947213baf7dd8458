"""Which values of an array are the same: as NumPy's ``unique`` says, but sooner; hashes of them."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Longs = NDArray[np.int64]

_SPARSE = 16
"""How many times as many numbers as values there may be for a table of all numbers to pay."""


def number_distinct(values: Longs) -> tuple[Longs, Longs]:
    """Give equal values one number, in the order in which they first occur.

    Returns:
        The number of each value, and for each number the first place that has it.
    """
    number = pa.array(values).dictionary_encode().indices.to_numpy().astype(np.int64)
    places = np.arange(len(values))
    first = np.zeros(number.max() + 1 if len(number) else 0, np.int64)
    first[number[::-1]] = places[::-1]  # of several, the last is kept
    return number, first


def compact(values: Longs, bound: int) -> tuple[Longs, Longs]:
    """Return the numbers that occur, sorted, and for each value the place of its number there.

    Args:
        values: Numbers from 0 to below ``bound``.
        bound: How many numbers there may be.
    """
    if bound > _SPARSE * len(values):
        used, place = np.unique(values, return_inverse=True)
        return used, place
    occurs = np.zeros(bound, bool)
    occurs[values] = True
    used = np.flatnonzero(occurs)
    places = np.zeros(bound, np.int64)
    places[used] = np.arange(len(used))
    return used, places[values]


def mix(values: Longs, salt: "int | Longs") -> Longs:
    """Scatter the bits of whole numbers, of each with its salt (the finisher of splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = values.astype(np.uint64) + np.asarray(salt, np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        scattered: Longs = (mixed ^ (mixed >> np.uint64(31))).view(np.int64)
        return scattered
