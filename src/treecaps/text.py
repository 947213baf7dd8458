"""Text from elsewhere (file names, labels, code), made fit to be shown."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """Return text that can be encoded: U+FFFD in place of what is not Unicode.

    Python reads a file name's bytes that are not UTF-8 as lone surrogates, and JSON can spell
    them. No encoder takes them.
    """
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def to_one_line(text: str) -> str:
    """Return text on one line, with control characters and line separators as escapes.

    A file name may hold a line break, and a terminal obeys control characters.
    """
    text = replace_surrogates(text)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
