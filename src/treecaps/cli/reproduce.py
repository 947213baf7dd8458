"""``treecaps reproduce``."""

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treecaps.cli.output import fail, is_terminal, note, progress, say
from treecaps.errors import TreeCapsError
from treecaps.text import to_one_line

if TYPE_CHECKING:
    from treecaps.reproduction.plan import Column, Row, Table
    from treecaps.reproduction.run import Cell, Reproduction

_ENDINGS = (".md", ".html", ".json")
_PATIENCE = 600
"""Seconds to wait for another process that writes the pages."""
_SOON, _HOURS = 60, 2 * 3600
"""Seconds left that are not worth telling, and that are told in hours."""


@click.command("reproduce")
@click.argument("table", type=click.Choice(("table1", "table2")))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with a folder for each data set: python-algorithms, java-sort, poj104.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="The folder for everything."
)
@click.option(
    "--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="How many trials."
)
@click.option(
    "--models",
    multiple=True,
    metavar="NAME,...",
    help="Only these models of the table. All by default.",
)
@click.option(
    "--epochs",
    multiple=True,
    metavar="[DATA=]N,...",
    help="Train for N epochs (0.25: a quarter of one), on all data sets or on one, whatever the"
    " presets say.",
)
@click.option("--quick", is_flag=True, help="A few programs and epochs, to see that it works.")
@click.option(
    "--frontend",
    type=click.Choice(("tree-sitter", "ast", "srcml")),
    help="Another front end than those of the paper (ast for Python, srcml for Java and C; models"
    " that need data flow take tree-sitter).",
)
def command(
    table: str,
    data: Path,
    out: Path,
    seeds: int,
    models: tuple[str, ...],
    epochs: tuple[str, ...],
    quick: bool,
    frontend: str | None,
) -> int:
    """Train and score what a table of the paper needs, and write it beside the paper's figures.

    What is finished stays: the same command again goes on where it was cut off. Several may run at
    once with one OUT. The pages are OUT/TABLE.md and OUT/TABLE.html, and OUT/TABLE.json has the
    figures behind them. With --quick, which takes one seed, they are called TABLE-quick.
    """
    from treecaps._version import __version__
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc
    from treecaps.rendering import report
    from treecaps.reproduction.data import Places
    from treecaps.reproduction.plan import TABLES, choose_epochs, choose_rows
    from treecaps.reproduction.run import Reproduction, list_cells

    chosen = TABLES[table]
    rows = choose_rows(chosen, _split(models))
    places = Places(data, out, quick)
    command = shlex.join(["treecaps", *sys.argv[1:]])
    work = Reproduction(
        places, choose_epochs(chosen, _split(epochs)), frontend, report.to_html, command
    )
    missing = places.missing(chosen.columns)
    for reason in missing.values():
        note(f"treecaps: {reason}")
    columns = [column for column in chosen.columns if column.name not in missing]
    if not columns:
        note("treecaps: error: none of the data sets is there")
        return 2
    trials = range(1 if quick else seeds)
    set_num_threads(1)
    tune_malloc()
    facts = {
        "frontends": ", ".join(f"{one.name} {frontend or one.frontend}" for one in columns),
        "seeds": len(trials),
        "treecaps": __version__,
    }
    name = f"{table}-quick" if quick else table
    pages = _Pages(work, chosen, rows, columns, trials, name, facts, list(missing.values()))
    with progress(table) as advance:
        _run(work, list_cells(rows, columns, trials), pages, advance)
    for ending in _ENDINGS:
        say(f"{out / name}{ending}")
    return 1 if pages.problems else 0


def _split(texts: Sequence[str]) -> list[str]:
    """Return the parts of texts that commas divide."""
    return [part for text in texts for part in text.split(",") if part]


@dataclass
class _Pages:
    """The pages of a table, with all that is finished of it.

    Args:
        work: What knows the results.
        table: The table.
        rows: The models that are asked for; others are on the pages if any of them is finished.
        columns: The data sets that are there.
        trials: The seeds.
        name: The name of the files.
        facts: What the pages say of the run.
        problems: What went wrong.
    """

    work: "Reproduction"
    table: "Table"
    rows: "Sequence[Row]"
    columns: "Sequence[Column]"
    trials: Sequence[int]
    name: str
    facts: dict[str, Any]
    problems: list[str] = field(default_factory=list)

    def write(self) -> None:
        """Write the pages in place of older ones; other processes may do so too."""
        from treecaps.files import FileLock
        from treecaps.models.files import write_files
        from treecaps.rendering.reproduction import notes, to_html, to_json, to_markdown

        places = self.work.places
        remarks = notes(list(map(to_one_line, self.problems)), places.quick, self.facts)
        # Who writes last has read last: what all have finished is on the page.
        with closing(FileLock(places.out / f"{self.name}.lock", _PATIENCE)):
            found = self.work.results(self.table.rows, self.columns, self.trials)
            names = {row.name for row in self.rows} | {name for name, _ in found}
            rows = tuple(row for row in self.table.rows if row.name in names)
            table = replace(self.table, rows=rows)
            pages = {
                ".md": to_markdown(table, found, remarks, self.name),
                ".html": to_html(table, found, remarks),
                ".json": to_json(table, found, remarks, self.facts),
            }
            contents = {f"{self.name}{ending}": pages[ending].encode() for ending in _ENDINGS}
            write_files(places.out, contents)


def _run(
    work: "Reproduction", cells: "list[Cell]", pages: _Pages, advance: Callable[[float, str], None]
) -> None:
    """Train and score cells, and write the pages after each."""
    begun = time.monotonic()
    done = 0.0

    def tell(share: float, what: str) -> None:
        nonlocal done
        done = share
        advance(share, what)

    for number, (cell, found) in enumerate(work.run(cells, tell), 1):
        if isinstance(found, TreeCapsError):
            pages.problems.append(f"{cell.name}: {found}")
            fail(cell.name, str(found), found.arguments)
        pages.write()
        if not isinstance(found, TreeCapsError) and not is_terminal(sys.stderr):
            left = (time.monotonic() - begun) * (1 - done) / done if done else 0.0
            note(
                f"{number}/{len(cells)} {cell.name}: {found['accuracy']:.1%}"
                + (f", about {_spell(left)} left" if left > _SOON else "")
            )


def _spell(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < _HOURS else f"{seconds / 3600:.1f} h"
