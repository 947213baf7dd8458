"""Which values of an array are the same: as NumPy's ``unique`` says, but sooner; hashes of them."""

import numpy as np
from numpy.typing import NDArray

from treecaps import compiled

Longs = NDArray[np.int64]

_SLOTS = 4
"""How many slots a hash table has for each value, or more."""
_SPARSE = 16
"""How many times as many numbers as values there may be for a table of all numbers to pay."""
_GOLDEN, _BITS = 0x9E3779B97F4A7C15, (1 << 64) - 1


def number_distinct(values: Longs) -> tuple[Longs, Longs]:
    """Give equal values one number, in the order in which they first occur.

    Returns:
        The number of each value, and for each number the first place that has it.
    """
    if loops := compiled.loops:
        values = np.ascontiguousarray(values)
        return compiled.number(loops.number_distinct, len(values), values)
    return number_twins(find_twins(values))


def find_twins(values: Longs) -> Longs:
    """Return for each value the first place that has the same."""
    # A hash table, all values at once: of those that want a slot the first gets it, and its equals
    # with it; the others look for another slot in the next round.
    slots = 1 << (_SLOTS * len(values)).bit_length()
    owner, twin = np.empty(slots, np.int64), np.empty(len(values), np.int64)
    rest, keys = np.arange(len(values)), values
    salt = 0
    while len(rest):
        slot = keys & (slots - 1)
        owner[slot[::-1]] = rest[::-1]  # of several, the last is kept
        first = owner[slot]
        same = values[first] == values[rest]
        twin[rest[same]] = first[same]
        rest = rest[~same]
        keys = mix(values[rest], salt)
        salt += 1
    return twin


def number_twins(twin: Longs) -> tuple[Longs, Longs]:
    """Give places numbers by their twins, as ``number_distinct`` does."""
    is_first = twin == np.arange(len(twin))
    return (np.cumsum(is_first) - 1)[twin], np.flatnonzero(is_first)


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
    mixed = values.astype(np.uint64)
    if isinstance(salt, int):
        mixed += np.uint64((salt + 1) * _GOLDEN & _BITS)
    else:
        mixed += salt.view(np.uint64) * np.uint64(_GOLDEN)
        mixed += np.uint64(_GOLDEN)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    scattered: Longs = mixed.view(np.int64)
    return scattered
