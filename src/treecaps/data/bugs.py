"""Programs with bugs at known lines: how labels tell of them."""

import re
from collections.abc import Iterable

_LABEL = re.compile(r"lines \d+(,\d+)*")


def label_of(lines: Iterable[int]) -> str | None:
    """Return the label of a program with bugs on some lines, counted from 1; none without bugs."""
    numbers = sorted(set(lines))
    return f"lines {','.join(map(str, numbers))}" if numbers else None


def lines_of(label: str | None) -> tuple[int, ...]:
    """Return the lines that a label tells of; none if it is another kind of label."""
    if label is None or not _LABEL.fullmatch(label):
        return ()
    return tuple(map(int, label.removeprefix("lines ").split(",")))


def are_lines(value: object) -> bool:
    """Whether a value of JSON is a list of lines, which may be empty."""
    return isinstance(value, list) and all(type(line) is int and line > 0 for line in value)
