"""``treecaps reproduce``."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treecaps.cli.output import fail, is_terminal, note, progress, say
from treecaps.errors import TreeCapsError
from treecaps.text import to_one_line

if TYPE_CHECKING:
    from treecaps.rendering.reproduction import Results
    from treecaps.reproduction.plan import Row, Table
    from treecaps.reproduction.run import Cell, Reproduction

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
    quick: bool,
    frontend: str | None,
) -> int:
    """Train and score what a table of the paper needs, and write it beside the paper's figures.

    What is finished stays: the same command again goes on where it was cut off. The pages are
    OUT/TABLE.md and OUT/TABLE.html, or with --quick, which takes one seed, OUT/TABLE-quick.md and
    OUT/TABLE-quick.html.
    """
    from treecaps._version import __version__
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc
    from treecaps.rendering import report
    from treecaps.reproduction.plan import TABLES, choose_rows
    from treecaps.reproduction.run import Reproduction, list_cells

    chosen = TABLES[table]
    rows = choose_rows(chosen, [name for names in models for name in names.split(",") if name])
    work = Reproduction(data, out, quick, frontend, report.to_html)
    missing = work.missing(chosen.columns)
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
    pages = _Pages(chosen, rows, out, f"{table}-quick" if quick else table, quick, facts)
    pages.problems += missing.values()
    # What others are finished belongs on the page too.
    others = [row for row in chosen.rows if row not in rows]
    for cell in list_cells(others, columns, trials):
        if kept := work.kept(cell):
            pages.add(cell, kept)
    with progress(table) as advance:
        _run(work, list_cells(rows, columns, trials), pages, advance)
    say(f"{out / pages.name}.md")
    say(f"{out / pages.name}.html")
    return 1 if pages.problems else 0


@dataclass
class _Pages:
    """The pages of a table, with all that is known of its results.

    Args:
        table: The table.
        rows: The models that are trained; others are shown if they have results.
        out: The folder.
        name: The name of the files.
        quick: Whether this is to see that it works.
        facts: What the pages say of the run.
    """

    table: "Table"
    rows: "Sequence[Row]"
    out: Path
    name: str
    quick: bool
    facts: dict[str, Any]
    results: "Results" = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, cell: "Cell", found: dict[str, Any]) -> None:
        """Add the figures of a cell."""
        self.results.setdefault((cell.row.name, cell.column.name), []).append(found)

    def write(self) -> None:
        """Write the pages in place of older ones."""
        from treecaps.models.files import write_files
        from treecaps.rendering.reproduction import notes, to_html, to_markdown

        known = {row for row, _ in self.results}
        shown = [row for row in self.table.rows if row in self.rows or row.name in known]
        remarks = notes(list(map(to_one_line, self.problems)), self.quick, self.facts)
        web = f"{self.name}.html"
        pages = {
            f"{self.name}.md": to_markdown(self.table, shown, self.results, remarks, web),
            web: to_html(self.table, shown, self.results, remarks),
        }
        write_files(self.out, {file: page.encode() for file, page in pages.items()})


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
        else:
            pages.add(cell, found)
        pages.write()
        if not isinstance(found, TreeCapsError) and not is_terminal(sys.stderr):
            left = (time.monotonic() - begun) * (1 - done) / done if done else 0.0
            note(
                f"{number}/{len(cells)} {cell.name}: {found['accuracy']:.1%}"
                + (f", about {_spell(left)} left" if left > _SOON else "")
            )


def _spell(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < _HOURS else f"{seconds / 3600:.1f} h"
