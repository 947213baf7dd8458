"""``treecaps reproduce``."""

import sys
import time
from pathlib import Path

import click

from treecaps.cli.output import fail, is_terminal, note, progress, say
from treecaps.errors import TreeCapsError
from treecaps.text import to_one_line

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
    from treecaps.models.files import write_files
    from treecaps.nn.memory import tune_malloc
    from treecaps.rendering import report
    from treecaps.rendering.reproduction import Figures, notes, to_html, to_markdown
    from treecaps.reproduction.plan import TABLES, choose_rows
    from treecaps.reproduction.run import Cell, Reproduction

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
    cells = [Cell(row, column, seed) for column in columns for row in rows for seed in trials]
    set_num_threads(1)
    tune_malloc()
    facts = {
        "frontends": ", ".join(f"{one.name} {frontend or one.frontend}" for one in columns),
        "seeds": len(trials),
        "treecaps": __version__,
    }
    figures: Figures = {}
    # What others are finished belongs on the page too.
    others = [row for row in chosen.rows if row not in rows]
    for cell in (
        Cell(row, column, seed) for column in columns for row in others for seed in trials
    ):
        if kept := work.kept(cell):
            figures.setdefault((cell.row.name, cell.column.name), []).append(kept)
    shown = [row for row in chosen.rows if row in rows or any(row.name in key for key in figures)]
    name = f"{table}-quick" if quick else table
    failed: dict[str, str] = {}
    begun = time.monotonic()
    done = 0.0

    def tell(share: float, what: str) -> None:
        nonlocal done
        done = share
        advance(share, what)

    with progress(table) as advance:
        for number, (cell, found) in enumerate(work.run(cells, tell), 1):
            if isinstance(found, TreeCapsError):
                failed[cell.name] = f"{cell.name}: {found}"
                fail(cell.name, str(found), found.arguments)
            else:
                figures.setdefault((cell.row.name, cell.column.name), []).append(found)
            reasons = map(to_one_line, (*missing.values(), *failed.values()))
            remarks = notes(list(reasons), quick, facts)
            pages = {
                f"{name}.md": to_markdown(chosen, shown, figures, remarks, f"{name}.html"),
                f"{name}.html": to_html(chosen, shown, figures, remarks),
            }
            write_files(out, {file: page.encode() for file, page in pages.items()})
            if not isinstance(found, TreeCapsError) and not is_terminal(sys.stderr):
                left = (time.monotonic() - begun) * (1 - done) / done if done else 0.0
                note(
                    f"{number}/{len(cells)} {cell.name}: {found['accuracy']:.1%}"
                    + (f", about {_spell(left)} left" if left > _SOON else "")
                )
    say(f"{out / name}.md")
    say(f"{out / name}.html")
    return 1 if missing or failed else 0


def _spell(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < _HOURS else f"{seconds / 3600:.1f} h"
