"""Sub-tokens: the words that names, numbers and strings are made of."""

import re
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.names import is_name
from treecaps.syntax.tree import Tree

MOST = 8
"""How many sub-tokens of a leaf count; a long string says no more than its beginning."""

_PART = re.compile(
    rb"""%[-+\ #0-9.*]*(?:hh?|ll?|[Lzjt])?[a-zA-Z]  # a format
    | \\.                                           # an escape
    | [A-Z]+(?![a-z]) | [A-Z]?[a-z]+                # words in camel and snake case
    | [0-9]+
    | [\x80-\xff]+""",
    re.VERBOSE,
)
_DIGITS = re.compile(rb"[0-9]+")
_NUMBERED = re.compile(
    rb"[\W_]*(?:[a-z]{1,3}|name|func|function|method|class|type|param|variable|local|identifier|symbol)"
    rb"_*[0-9]+[\W_]*",
    re.IGNORECASE,
)
"""Names that say nothing: what tools, or people in a hurry, call things."""
_LONGEST = 24
UNKNOWN = "<unknown>"


def split_token(token: bytes, *, name: bool = False) -> tuple[str, ...]:
    """Split the text of a leaf into words, in lower case, its first few.

    Args:
        token: The text, in UTF-8.
        name: Whether it is a name. Digits in it say nothing, and ``v17`` or ``var_3`` say nothing
            at all: these are ``UNKNOWN``, so renaming in whatever way leaves the same.

    Returns:
        ``camelCase`` and ``snake_case`` as their words, a format as it stands, numbers as their
        digits; of a text without any such part, the text itself.
    """
    if name and _NUMBERED.fullmatch(token):
        return (UNKNOWN,)
    parts = []
    for match in _PART.finditer(token):
        part = match[0][:_LONGEST]
        if not (name and _DIGITS.fullmatch(part)):
            parts.append(part.decode("utf-8", "replace").lower())
            if len(parts) == MOST:
                break
    return tuple(parts) if parts or not token else (token[:_LONGEST].decode("utf-8", "replace"),)


class LeafTexts(NamedTuple):
    """The leaves of a tree whose kind does not say their text.

    Args:
        nodes: Their numbers.
        names: Of each, whether it is a name.
        texts: The text of each.
    """

    nodes: NDArray[np.int64]
    names: list[bool]
    texts: list[bytes]


def leaf_texts(tree: Tree) -> LeafTexts:
    """Find the leaves whose kind does not say their text."""
    names = kinds_that_are_names(tree.kinds)
    spoken = _kinds_that_are_texts(tree.kinds)
    chosen = (tree.child_count == 0) & ~spoken[tree.kind] & (tree.end > tree.start)
    nodes = np.flatnonzero(chosen)
    text, ends = tree.text, tree.end[nodes].tolist()
    texts = [text[start:end] for start, end in zip(tree.start[nodes].tolist(), ends, strict=True)]
    return LeafTexts(nodes, names[tree.kind[nodes]].tolist(), texts)


@cache
def kinds_that_are_names(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return of each kind whether its leaves are names."""
    return np.array([is_name(kind) for kind in kinds], bool)


@cache
def _kinds_that_are_texts(kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return of each kind whether it says the text of its leaves."""
    return np.array([kind.startswith('"') for kind in kinds], bool)
