"""Many items, divided into lists that memory can hold."""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeVar

Item = TypeVar("Item")


def chunked(
    items: Iterable[Item],
    max_items: float = inf,
    max_weight: float = inf,
    weigh: Callable[[Item], int] = lambda _: 0,
) -> Iterator[list[Item]]:
    """Divide items into lists, in order; each is yielded before the next item is taken.

    Args:
        items: The items, which may come one by one.
        max_items: How many items a list has at most.
        max_weight: A list ends with the item that brings it to this weight, or beyond.
        weigh: Returns the weight of an item.
    """
    chunk: list[Item] = []
    weight = 0
    for item in items:
        chunk.append(item)
        weight += weigh(item)
        if len(chunk) >= max_items or weight >= max_weight:
            yield chunk
            chunk, weight = [], 0
    if chunk:
        yield chunk
