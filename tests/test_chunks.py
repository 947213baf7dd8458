from collections.abc import Iterator
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from treecaps.chunks import chunked

WEIGHTS = st.lists(st.integers(0, 9), max_size=60)


@given(WEIGHTS, st.integers(1, 9), st.integers(1, 30))
def test_lists_keep_to_both_bounds_and_are_as_long_as_they_allow(
    weights: list[int], most: int, heaviest: int
) -> None:
    items = list(enumerate(weights))
    found = list(chunked(items, most, heaviest, lambda item: item[1]))
    assert list(chain.from_iterable(found)) == items
    for chunk in found:
        assert 1 <= len(chunk) <= most
        assert sum(weight for _, weight in chunk[:-1]) < heaviest
    for chunk in found[:-1]:
        assert len(chunk) == most or sum(weight for _, weight in chunk) >= heaviest


@given(WEIGHTS, st.integers(1, 9))
def test_either_bound_may_be_left_out(items: list[int], bound: int) -> None:
    by_number = [items[begin : begin + bound] for begin in range(0, len(items), bound)]
    assert list(chunked(items, bound)) == by_number
    assert list(chunked(items, max_weight=bound, weigh=lambda _: 1)) == by_number
    assert list(chunked(items)) == ([items] if items else [])


def test_no_item_is_taken_too_early() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    lists = chunked(numbers(), 3)
    assert not taken
    assert next(lists) == [0, 1, 2]
    assert taken == [0, 1, 2]
