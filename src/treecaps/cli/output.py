"""One place for all that the command line prints.

Results go to standard output, everything else (notes, progress) to standard error. Colours and
progress appear on a terminal only.
"""

import csv
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

import click

from treecaps.chunks import chunked
from treecaps.cli.flags import add_flags
from treecaps.errors import UsageError, describe_os_error
from treecaps.syntax.sources import Sources
from treecaps.text import replace_surrogates, to_one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PATIENCE = 1.0  # seconds of silence before a progress bar appears
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether somebody looks at a stream, which may be closed."""
    return stream is not None and stream.isatty()


def paint(text: str, **style: Any) -> str:
    """Return text in colours, where somebody looks at standard output and wants them."""
    if os.environ.get("NO_COLOR") or not is_terminal(sys.stdout):
        return text
    return click.style(text, **style)


def link(text: str, path: str) -> str:
    """Return text that opens a file in terminals that know links, where somebody looks."""
    if os.environ.get("TERM") == "dumb" or not is_terminal(sys.stdout):
        return text
    from urllib.parse import quote

    return f"\x1b]8;;file://{quote(os.path.abspath(path))}\x1b\\{text}\x1b]8;;\x1b\\"


def say(text: str) -> None:
    """Print one line of the result."""
    click.echo(to_one_line(text))


def say_lines(lines: Iterable[str]) -> None:
    """Print many lines of the result, some thousand at a time."""
    for block in chunked(lines, 5000):
        click.echo("\n".join(map(to_one_line, block)))


def say_json(value: Any) -> None:
    """Print one value as a line of JSON, without lone surrogates: many readers refuse them."""
    text = replace_surrogates(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    click.echo(_NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text))


def say_csv(values: Iterable[object]) -> None:
    """Print one row of comma-separated values; no text is a formula to a spreadsheet."""
    cells = [_quote(to_one_line(cell)) if isinstance(cell, str) else cell for cell in values]
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(cells)
    click.echo(row.getvalue())


def _quote(cell: str) -> str:
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell


def check_writable(path: Path) -> None:
    """Raise ``UsageError`` if a file cannot be written, before the work whose result it is for."""
    try:
        there = path.exists()
        with open(path, "ab"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        raise _cannot_write(path, error) from None


def write_page(path: Path, page: str) -> None:
    """Write a page."""
    try:
        # Names of files need not be text.
        path.write_text(replace_surrogates(page), encoding="utf-8")
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {describe_os_error(error)}")


def note(text: str) -> None:
    """Tell people something beside the result, in one line."""
    click.echo(to_one_line(text), err=True)


def note_sources(folder: str | Path, sources: Sources) -> None:
    """Tell people of files in a folder that are in no known language, or were left out."""
    if sources.passed_over:
        note(f"{folder}: passed over {sources.tell_passed_over()}")
    if left := sources.tell_left_out():
        note(f"{folder}: left out {left}; --all takes them")


def fail(name: str, message: str, arguments: Iterable[str] = ()) -> None:
    """Tell people of one input that failed while the others go on, and which options may help."""
    message = add_flags(message, arguments)
    error = "error" if os.environ.get("NO_COLOR") else click.style("error", fg="red")
    click.echo(f"{to_one_line(name)}: {error}: {to_one_line(message)}", err=True)


def add_row(table: "Table", *cells: str) -> None:
    """Add a row of cells that may hold other people's words."""
    table.add_row(*map(to_one_line, cells))


def say_table(table: "Table", more: int = 0, what: str = "rows") -> None:
    """Print a table, as wide as it needs to be where nobody looks.

    Args:
        table: What to print.
        more: How many rows were left out, if any; ``--json`` must have them.
        what: What these rows are.
    """
    from rich.console import Console

    # Cells hold other people's words: no markup, no emoji codes.
    console = Console(markup=False, emoji=False, highlight=False)
    if console.is_terminal:
        _fit(table, console)
        console.print(table)
    else:
        console.width = sys.maxsize
        with console.capture() as captured:
            console.print(table)
        say_lines(line.rstrip() for line in captured.get().splitlines())
    if more > 0:
        say(tell_more(more, what))


def _fit(table: "Table", console: "Console") -> None:
    """Put the columns of a table that is too wide closer, and wrap between words if possible."""
    unlimited = console.options.update(max_width=10 * console.width)
    if console.measure(table, options=unlimited).maximum <= console.width:
        return
    table.padding = (0, 0)
    words = [
        max(
            (len(word) for cell in (one.header, *one.cells) for word in str(cell).split()),
            default=1,
        )
        for one in table.columns
    ]
    if sum(words) + len(words) < console.width:
        for column, longest in zip(table.columns, words, strict=True):
            column.min_width = longest


class _Alike(Protocol):
    """Two programs whose embeddings were compared."""

    @property
    def similarity(self) -> float: ...
    @property
    def probability(self) -> float | None: ...


def tell_alike(found: _Alike) -> str:
    """Say how alike two programs are, as people read it: in per cent if that is known."""
    known = found.probability
    return f"{found.similarity:.2f}" if known is None else f"{known:.0%}"


def tell_more(more: int, what: str) -> str:
    """Say that more of something is left out, which ``--json`` has."""
    return f"... and {more:,} more {what}; --json has them all"


def new_table(*columns: str, numbers: tuple[str, ...] = ()) -> "Table":
    """Start a table, with the columns of numbers to the right."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in numbers else "left"
        table.add_column(to_one_line(column), justify=justify, overflow="fold")
    return table


@contextmanager
def progress(title: str) -> Iterator[Callable[[float, str], None]]:
    """Show a bar with the time left; call what it gives with the share done and a remark."""
    if not is_terminal(sys.stderr):
        yield lambda share, remark: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[remark]}", markup=False),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,  # no thread of its own: worker processes are forked meanwhile
        transient=True,
    )
    task = bar.add_task(to_one_line(title), total=1.0, remark="")
    begun = time.monotonic()
    drawn = 0.0

    def advance(share: float, remark: str) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - begun < _PATIENCE or now - drawn < 0.1:
            return
        drawn = now
        bar.start()
        bar.update(task, completed=share, remark=to_one_line(remark))
        bar.refresh()

    try:
        yield advance
    finally:
        bar.stop()
