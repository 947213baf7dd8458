"""The confusion matrix: how many programs of each class got each answer."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Confusion(NamedTuple):
    """A confusion matrix.

    Args:
        labels: The classes that occur, as a class or as an answer, by name.
        counts: How many programs of each class (a row) got each answer (a column).
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def count_predictions(truth: Sequence[str], answers: Sequence[str]) -> Confusion:
    """Count the answers to programs whose classes are known."""
    counts = Counter(zip(truth, answers, strict=True))
    labels = tuple(sorted({*truth, *answers}))
    return Confusion(
        labels, tuple(tuple(counts[right, answer] for answer in labels) for right in labels)
    )
