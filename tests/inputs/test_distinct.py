"""Distinct values: the same as those of NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treecaps.inputs.distinct import compact, number_distinct

WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(st.integers(-3, 3), WHOLE)))
def test_equal_values_get_one_number(items: list[int]) -> None:
    values = np.array(items, np.int64)
    number, first = number_distinct(values)
    seen = list(dict.fromkeys(items))
    assert number.tolist() == [seen.index(item) for item in items]
    assert first.tolist() == [items.index(item) for item in seen]


@pytest.mark.parametrize("bound", [21, 10_000])
@given(st.lists(st.integers(0, 20)))
def test_the_numbers_that_occur_are_kept(bound: int, items: list[int]) -> None:
    values = np.array(items, np.int64)
    used, place = compact(values, bound)
    expected = np.unique(values, return_inverse=True)
    assert used.tolist() == expected[0].tolist()
    assert place.tolist() == expected[1].tolist()


def test_values_that_differ_in_high_bits_alone_take_no_longer() -> None:
    values = np.repeat(np.arange(100_000) << 40, 2)
    number, first = number_distinct(values)
    assert number.tolist() == np.repeat(np.arange(100_000), 2).tolist()
    assert first.tolist() == list(range(0, 200_000, 2))
