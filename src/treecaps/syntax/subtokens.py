"""Sub-tokens: the words that names, numbers and strings are made of."""

import re

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
