"""From scores of nodes to scores of lines."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from treecaps.syntax.tree import Tree


def lines_of_nodes(tree: "Tree") -> NDArray[np.int32]:
    """Return ``[n]``, the line on which each node begins, from 1."""
    breaks = np.flatnonzero(np.frombuffer(tree.text, np.uint8) == ord("\n"))
    return (np.searchsorted(breaks, tree.start) + 1).astype(np.int32)


def log_sum(values: NDArray[Any]) -> float:
    """Return the logarithm of the sum of exponentials of one value or more."""
    return float(np.logaddexp.reduce(values.astype(np.float64)))


def line_ranks(
    bug: NDArray[Any], line: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the lines on which nodes begin, the most suspicious first, and their scores.

    The score of a line is the logarithm of the sum of its nodes' exponentials; of equals, the
    upper line comes first.

    Args:
        bug: ``[n]``, the scores of nodes.
        line: ``[n]``, their lines.
    """
    order = np.argsort(line, kind="stable")
    found, begins = np.unique(line[order], return_index=True)
    sums = np.logaddexp.reduceat(bug[order].astype(np.float64), begins)
    best = np.argsort(-sums, kind="stable")
    return found[best], sums[best]


def area_under_curve(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float | None:
    """Return how probable it is that one of the right has a higher score than one of the others."""
    if right.all() or not right.any():
        return None
    every = np.sort(score)
    # Equal scores share their ranks.
    rank = (np.searchsorted(every, score) + np.searchsorted(every, score, "right") + 1) / 2
    count, others = int(right.sum()), int((~right).sum())
    return float((rank[right].sum() - count * (count + 1) / 2) / (count * others))
