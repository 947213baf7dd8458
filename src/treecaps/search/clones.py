"""Functions that are alike, also across languages."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.errors import UsageError
from treecaps.search.index import Index
from treecaps.search.matches import MATCH_COLUMNS, Match, Vectors
from treecaps.text import html_table

MIN_LINES = 5

_BLOCK = 256
"""How many vectors are compared with all others at a time."""


@dataclass(frozen=True)
class Group:
    """Functions that are alike.

    Args:
        similarity: Each is at least this like another of the group.
        members: The functions; the similarity of each is that to the nearest of the others.
        copied: The least share that each has in common with another; ``None`` if not looked at.
    """

    similarity: float
    members: tuple[Match, ...]
    copied: float | None = None

    def _repr_html_(self) -> str:
        rows = [member.cells() for member in self.members]
        return html_table(f"{len(rows):,} that are alike", MATCH_COLUMNS, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        members = [member.to_dict() for member in self.members]
        copied = {} if self.copied is None else {"copied": round(self.copied, 4)}
        return {**copied, "similarity": round(self.similarity, 4), "members": members}


def find_clones(
    index: Index,
    threshold: float | None = None,
    *,
    min_lines: int = MIN_LINES,
    step: Callable[[float], None] | None = None,
) -> list[Group]:
    """Return the groups of what is alike in an index, most alike first.

    Two are in one group if they are alike, or if a chain of others that are leads from one to the
    other.

    Args:
        index: What is compared, all with all.
        threshold: How alike is alike, from 0 to 1; what the index's embedder says by default.
        min_lines: Shorter functions are left out: many of them are alike by chance.
        step: Called with the share done.
    """
    threshold = index.embedder.alike if threshold is None else threshold
    check_threshold(threshold)
    chosen = np.array(
        [
            number
            for number, row in enumerate(index.rows)
            if row.span.last_line - row.span.line + 1 >= min_lines
        ],
        np.int64,
    )
    vectors = index.vectors[chosen].astype(np.float32, copy=False)
    joined = Joined(len(chosen))
    nearest = np.array([float(len(index.rows[row].paths) > 1) for row in chosen.tolist()])
    for number, alike, values in link_alike(vectors, threshold, step=step):
        nearest[number] = max(nearest[number], values.max())
        nearest[alike] = np.maximum(nearest[alike], values)
        joined.join(number, alike)
    group = joined.group
    members: defaultdict[int, list[Match]] = defaultdict(list)
    for number in np.flatnonzero(nearest).tolist():
        members[int(group[number])] += index.matches(int(chosen[number]), float(nearest[number]))
    found = [_group(some) for some in members.values()]
    return sorted(found, key=lambda one: (-one.similarity, one.members[0].path))


def check_threshold(threshold: float) -> None:
    """Raise ``UsageError`` unless a threshold can be one."""
    if not 0 < threshold <= 1:
        raise UsageError(f"the threshold must be above 0 and at most 1, not {threshold:g}")


def link_alike(
    vectors: Vectors, threshold: float, *, step: Callable[[float], None] | None = None
) -> Iterator[tuple[int, NDArray[np.int64], Vectors]]:
    """Yield of each vector which later ones are alike, and their products, if there are any."""
    # Vectors on disk are rounded, so that a product of equals may fall short of 1.
    threshold = min(threshold, 1 - 1e-3)
    for begin in range(0, len(vectors), _BLOCK):
        if step:
            step(begin / len(vectors))
        likeness = vectors[begin : begin + _BLOCK] @ vectors[begin:].T
        for row in range(len(likeness)):
            number, others = begin + row, likeness[row, row + 1 :]
            alike = np.flatnonzero(others >= threshold)
            if len(alike):
                yield number, alike + number + 1, others[alike]


class Joined:
    """Numbers that are joined into groups: ``group`` has the group of each."""

    def __init__(self, size: int) -> None:
        self.group = np.arange(size)

    def join(self, one: int, others: NDArray[np.int64]) -> None:
        """Put numbers, and all that are joined with them, into one group."""
        joined = np.unique(self.group[[one, *others.tolist()]])
        if len(joined) > 1:
            self.group[np.isin(self.group, joined)] = joined[0]


def _group(members: list[Match]) -> Group:
    members.sort(key=lambda match: (match.path, match.line or 0))
    return Group(min(member.similarity for member in members), tuple(members))
