"""Text from elsewhere (file names, labels, code), made fit to be shown."""

import re
import reprlib
from collections.abc import Iterable
from html import escape

_SURROGATE = re.compile("[\ud800-\udfff]")
_short = reprlib.Repr()
_short.maxstring = 22


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


def short_repr(thing: object, *values: object, **facts: object) -> str:
    """Return a representation of a thing on one short line, with what tells it apart."""
    named = [f"{name}={_short.repr(value)}" for name, value in facts.items()]
    return f"{type(thing).__name__}({', '.join([*map(_short.repr, values), *named])})"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question after the names that look like one that is not known, if any do."""
    import difflib  # only where something is wrong

    known = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(known[one] for one in close)}?" if close else ""


def to_html(text: str) -> str:
    """Return text on one line as HTML."""
    return escape(to_one_line(text))


def html_table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts as HTML, for notebooks."""

    def row(tag: str, cells: Iterable[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{to_html(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row("td", cells) for cells in rows)
    return f"<table><caption>{to_html(title)}</caption>{row('th', head)}{body}</table>"
