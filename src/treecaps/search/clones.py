"""Functions that are alike, also across languages."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from treecaps.errors import UsageError
from treecaps.search.index import Index, Match

THRESHOLD = 0.95
MIN_LINES = 5

_BLOCK = 256
"""How many vectors are compared with all others at a time."""


@dataclass(frozen=True)
class Group:
    """Functions that are alike.

    Args:
        similarity: Each is at least this like another of the group.
        members: The functions; the similarity of each is that to the nearest of the others.
    """

    similarity: float
    members: tuple[Match, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        members = [member.to_dict() for member in self.members]
        return {"similarity": round(self.similarity, 4), "members": members}


def find_clones(
    index: Index,
    threshold: float = THRESHOLD,
    *,
    min_lines: int = MIN_LINES,
    step: Callable[[float], None] | None = None,
) -> list[Group]:
    """Return the groups of what is alike in an index, most alike first.

    Two are in one group if they are alike, or if a chain of others that are leads from one to the
    other.

    Args:
        index: What is compared, all with all.
        threshold: How alike is alike, from 0 to 1.
        min_lines: Shorter functions are left out: many of them are alike by chance.
        step: Called with the share done.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"the threshold must be above 0 and at most 1, not {threshold:g}")
    chosen = np.array(
        [
            number
            for number, row in enumerate(index.rows)
            if row.span.last_line - row.span.line + 1 >= min_lines
        ],
        np.int64,
    )
    # Vectors on disk are rounded, so that a product of equals may fall short of 1.
    threshold = min(threshold, 1 - 1e-3)
    vectors = index.vectors[chosen]
    group = np.arange(len(chosen))
    nearest = np.array([float(len(index.rows[row].paths) > 1) for row in chosen.tolist()])
    for begin in range(0, len(chosen), _BLOCK):
        if step:
            step(begin / len(chosen))
        likeness = vectors[begin : begin + _BLOCK] @ vectors[begin:].T
        for row in range(len(likeness)):
            number, others = begin + row, likeness[row, row + 1 :]
            alike = np.flatnonzero(others >= threshold)
            if len(alike):
                nearest[number] = max(nearest[number], others[alike].max())
                alike, values = alike + number + 1, others[alike]
                nearest[alike] = np.maximum(nearest[alike], values)
                joined = np.unique(group[[number, *alike.tolist()]])
                if len(joined) > 1:
                    group[np.isin(group, joined)] = joined[0]
    members: defaultdict[int, list[Match]] = defaultdict(list)
    for number in np.flatnonzero(nearest).tolist():
        members[int(group[number])] += index.matches(int(chosen[number]), float(nearest[number]))
    found = [_group(some) for some in members.values()]
    return sorted(found, key=lambda one: (-one.similarity, one.members[0].path))


def _group(members: list[Match]) -> Group:
    members.sort(key=lambda match: (match.path, match.line or 0))
    return Group(min(member.similarity for member in members), tuple(members))
