"""How ``treecaps classify`` prints its answers: a line each, by a template, or in columns."""

import os
import string
from collections import Counter
from collections.abc import Iterator
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from treecaps.cli.output import fail, link, note, paint, say, say_json
from treecaps.errors import Failure, UsageError
from treecaps.text import did_you_mean, to_one_line

if TYPE_CHECKING:
    from treecaps.inference.classify import Classification

SORTS = ("path", "class", "probability")
_FIELDS = (
    *("id", "function", "line", "place", "label", "known", "guess", "probability", "length"),
    *("reason", "title", "answer"),
)
_BLOCK = 100
"""After so many answers a block of columns is printed, if its folder has not ended before."""
_INDENT = 2
_GAP = 2
_NARROW = 24
"""Remarks that would have less room than that stand below the answer."""


def place_of(result: "Classification") -> str:
    """Return where something is: its name, and of a function the line."""
    return result.id if result.line is None else f"{result.id}:{result.line}"


def to_line(result: "Classification") -> str:
    """Return an answer as a line of text."""
    name = "" if result.function is None else f" {result.function}"
    return f"{place_of(result)}{name}: {describe(result)}"


def describe(result: "Classification") -> str:
    """Return an answer in words."""
    if result.reason:
        return result.verdict
    title = f" ({result.title})" if result.title else ""
    guess = f"{result.guess}{title} {result.probability:.0%}"
    if not result.known:
        guess = f"{result.label}, perhaps {guess}" if _is_likely(result) else result.label
    return "; ".join([guess, *_others(result)])


def _is_likely(result: "Classification") -> bool:
    from treecaps.inference.classify import LIKELY

    return result.probability >= LIKELY


def _others(result: "Classification") -> Iterator[str]:
    """Yield what else there is to tell: other classes, and functions of other classes."""
    from treecaps.inference.classify import LIKELY

    others = [one for one in result.top[1:] if one.probability >= LIKELY]
    if others:
        yield "then " + ", ".join(f"{one.label} {one.probability:.0%}" for one in others)
    if result.parts:
        yield "also " + ", ".join(f"{one.label} in line {one.line}" for one in result.parts)


def _remarks(result: "Classification") -> Iterator[str]:
    """Yield what is said beside the class and its probability."""
    if result.reason:
        yield result.reason
    elif not result.known and _is_likely(result):
        title = f" ({result.title})" if result.title else ""
        yield f"not sure, perhaps {result.guess}{title} {result.probability:.0%}"
    elif result.known and result.title:
        yield result.title
    yield from _others(result)


def sort(results: "list[Classification]", by: str) -> "list[Classification]":
    """Return answers by class or by probability, named ones first, or by path."""
    if by == "class":
        return sorted(results, key=lambda one: (not one.known, one.label, -one.probability))
    if by == "probability":
        return sorted(results, key=lambda one: (not one.known, -one.probability))
    return sorted(results, key=lambda one: (one.id, one.line or 0))


class Template:
    r"""A line for each answer, as somebody wants it: ``{id}: {label} {probability:.0%}``.

    Args:
        text: The template; ``\t`` and ``\n`` are a tab and a new line.
    """

    def __init__(self, text: str) -> None:
        self._text = text.replace("\\t", "\t").replace("\\n", "\n")
        try:
            names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
        except ValueError as error:
            raise UsageError(f"the template {text!r} cannot be read: {error}") from None
        for name in names:
            if name not in _FIELDS:
                hint = did_you_mean(name, _FIELDS) or f"there are {', '.join(_FIELDS)}"
                raise UsageError(f"the template has a field {name!r} that is not known; {hint}")

    def fill(self, result: "Classification") -> str:
        """Return the text for an answer."""
        values = {name: getattr(result, name, None) for name in _FIELDS}
        values |= {"place": place_of(result), "answer": describe(result)}
        shown = {
            name: to_one_line(value) if isinstance(value, str) else "" if value is None else value
            for name, value in values.items()
        }
        try:
            return self._text.format(**shown)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the template {self._text!r} does not fit: {error}") from None


class Columns:
    """Answers in columns for a terminal; those of a folder stand together.

    Columns become wider when they must, and never narrower.

    Args:
        by_folder: Whether the folder stands above its files, or before each.
    """

    def __init__(self, by_folder: bool) -> None:
        self._by_folder = by_folder
        self._name, self._label = 2 * _INDENT, 0
        self._folder: str | None = None

    def show(self, results: "list[Classification]") -> None:
        """Print some answers, in order."""
        self._fit(results)
        for one in results:
            folder = os.path.dirname(one.id)
            if self._by_folder and folder != self._folder:
                click.echo(paint(link(to_one_line(folder or "."), folder or "."), bold=True))
                self._folder = folder
            for line in self._lines(one):
                click.echo(line)

    def _fit(self, results: "list[Classification]") -> None:
        limit = get_terminal_size().columns // 2
        names = (len(self._shown(one)) for one in results)
        self._name = max([self._name, *(size for size in names if size <= limit)])
        self._label = max([self._label, *(len(to_one_line(one.label)) for one in results)])

    def _shown(self, result: "Classification") -> str:
        place = place_of(result)
        if self._by_folder:
            place = " " * _INDENT + os.path.basename(place)
        return to_one_line(place if result.function is None else f"{place} {result.function}")

    def _lines(self, result: "Classification") -> Iterator[str]:
        """Yield the lines of an answer: remarks that are too long for one go on in the next."""
        name, label = self._shown(result), to_one_line(result.label)
        share = f"{result.probability:.0%}" if result.known else ""
        indent = _INDENT if self._by_folder else 0
        head = name[:indent] + link(name[indent:], result.id.partition(":cell ")[0])
        if len(name) > self._name:  # too long for its column
            yield head
            head, name = "", ""
        head += " " * (self._name - len(name) + _GAP)
        head += (
            paint(label, fg="green" if result.known else "yellow")
            + " " * (self._label - len(label) + _GAP)
            + f"{share:>4}"
        )
        start = self._name + self._label + 2 * _GAP + 4 + _GAP
        width = get_terminal_size().columns
        remarks = to_one_line("; ".join(_remarks(result)))
        if not remarks:
            yield head.rstrip()
            return
        if width - start < _NARROW:
            yield head.rstrip()
            start = 2 * _INDENT
            for text in wrap(remarks, max(width - start, _NARROW), break_long_words=False):
                yield " " * start + paint(text, dim=True)
            return
        first, *more = wrap(remarks, width - start, break_long_words=False, break_on_hyphens=False)
        yield head + " " * _GAP + paint(first, dim=True)
        for text in more:
            yield " " * start + paint(text, dim=True)


class Printer:
    """Prints answers as they come, or sorted when all are there, and counts them.

    Args:
        template: What to print for each, if somebody said so.
        as_json: Whether to print JSON.
        columns: How to print in columns on a terminal, if it is one.
        by: What answers are sorted by, if they are.
        known_only: Whether to print only what has a class.
    """

    def __init__(
        self,
        *,
        template: str | None = None,
        as_json: bool = False,
        columns: Columns | None = None,
        by: str | None = None,
        known_only: bool = False,
    ) -> None:
        if template is not None and as_json:
            raise UsageError("choose a template or JSON, not both")
        self._fill = to_line if template is None else Template(template).fill
        self._json, self._columns, self._by, self._known_only = as_json, columns, by, known_only
        self._raw = template is not None
        self._waiting: list[Classification] = []
        self.counts: Counter[str] = Counter()

    def add(self, result: "Classification | Failure") -> None:
        """Take one answer, or what is wrong with an input."""
        if isinstance(result, Failure):
            self._flush()
            self._tell_failure(result)
            return
        self.counts["named" if result.known else "unknown"] += 1
        if self._known_only and not result.known:
            return
        other = self._waiting and os.path.dirname(self._waiting[-1].id) != os.path.dirname(
            result.id
        )
        if other or len(self._waiting) >= _BLOCK:
            self._flush()
        self._waiting.append(result)
        if not self._columns:
            self._flush()

    def finish(self) -> None:
        """Print all that are left."""
        found, by, self._by = self._waiting, self._by, None
        self._waiting = sort(found, by) if by else found
        self._flush()

    @property
    def total(self) -> int:
        """How many answers there were, and inputs that failed."""
        return sum(self.counts[kind] for kind in ("named", "unknown", "failed"))

    def tell_counts(self) -> str:
        """Say how many have a class."""
        others = ", ".join(f"{self.counts[kind]:,} {kind}" for kind in ("unknown", "failed"))
        return f"{self.counts['named']:,} of {self.total:,} named, {others}"

    def _flush(self) -> None:
        if self._by:
            return
        if self._columns and self._waiting:
            self._columns.show(self._waiting)
        else:
            for one in self._waiting:
                self._print(one)
        self._waiting = []

    def _print(self, result: "Classification") -> None:
        if self._json:
            say_json(result.to_dict())
        elif self._raw:
            click.echo(self._fill(result))
        else:
            say(self._fill(result))

    def _tell_failure(self, failure: Failure) -> None:
        has_none = failure.code == "functions"  # that is no fault
        self.counts["without functions" if has_none else "failed"] += 1
        if self._json:
            error = {"code": failure.code, "message": failure.message}
            say_json({"id": failure.id, "error": error})
        elif has_none:
            note(f"{failure.id}: {failure.message}")
        else:
            fail(failure.id, failure.message, failure.arguments)
