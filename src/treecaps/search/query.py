"""What is searched for: a file, some lines of one, or its functions."""

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from treecaps.errors import UsageError
from treecaps.syntax.functions import find_functions
from treecaps.syntax.tree import Tree

LINES = r"([0-9]{1,9})(?:-([0-9]{1,9}))?"
"""What ``Lines.parse`` reads."""


class Lines(NamedTuple):
    """Lines of a program, both from 1 and included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "Lines":
        """Read lines as people write them: ``10-40``, or one number."""
        numbers = re.fullmatch(LINES, text)
        if not numbers:
            raise UsageError(f"lines are two numbers such as 10-40, not {text!r}")
        first, last = numbers.groups()
        return cls(int(first), int(last or first))


def select(tree: Tree, lines: Lines | None = None, *, functions: bool) -> Tree:
    """Return what of a program stands for it, or for some of its lines, in a search.

    Args:
        tree: The program.
        lines: Which lines count; all by default.
        functions: Whether it is compared with functions: one that makes up most of the code then
            stands for it, without the file around it.
    """
    if lines:
        tree = _cut(tree, lines)
    if functions:
        found = find_functions(tree)
        if len(found) == 1 and 2 * len(found[0].tree) > len(tree):
            return found[0].tree
    return tree


def _cut(tree: Tree, lines: Lines) -> Tree:
    """Return the nodes that lie within lines, as one tree."""
    texts = tree.text.splitlines(keepends=True) if tree.text else []
    if not 1 <= lines.first <= lines.last <= len(texts):
        raise UsageError(
            f"there are no lines {lines.first}-{lines.last}: the program has lines 1-{len(texts)}"
        )
    before = b"".join(texts[: lines.first - 1])
    chosen = b"".join(texts[lines.first - 1 : lines.last])
    begin = len(before) + len(chosen) - len(chosen.lstrip())
    end = len(before) + len(chosen.rstrip())
    inside = (tree.start >= begin) & (tree.end <= end) & (tree.start < tree.end)
    numbers = np.flatnonzero(inside)
    tops = [node for node in numbers.tolist() if not node or not inside[tree.parent[node]]]
    if not tops:
        raise UsageError(f"lines {lines.first}-{lines.last} hold no whole piece of code")
    if len(tops) == 1:
        return tree.subtree(tops[0])
    # Several pieces stand below what holds them all.
    root = _common(tree, tops[0], tops[-1])
    numbers = np.concatenate([[root], numbers])
    place = np.zeros(len(tree), np.int32)
    place[numbers] = np.arange(len(numbers))
    parent = np.where(inside[tree.parent[numbers]], place[tree.parent[numbers]], 0)
    parent[0] = -1
    return replace(
        tree,
        text=tree.text[begin:end],
        kind=tree.kind[numbers],
        parent=parent.astype(np.int32),
        start=(tree.start[numbers] - begin).clip(0, end - begin),
        end=(tree.end[numbers] - begin).clip(0, end - begin),
        errors=np.flatnonzero(np.isin(numbers, tree.errors)).astype(np.int32),
    )


def _common(tree: Tree, one: int, other: int) -> int:
    """Return the lowest node above both."""
    above = {one}
    while one:
        one = int(tree.parent[one])
        above.add(one)
    while other not in above:
        other = int(tree.parent[other])
    return other
