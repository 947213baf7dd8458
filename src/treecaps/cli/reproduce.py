"""``treecaps reproduce``."""

import sys
from pathlib import Path

import click

from treecaps.cli.output import is_terminal, note, progress, say


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
    metavar="NAME",
    help="Only this model of the table; may be repeated. All by default.",
)
@click.option("--quick", is_flag=True, help="A few programs and epochs, to see that it works.")
@click.option(
    "--frontend",
    type=click.Choice(("tree-sitter", "ast", "srcml")),
    help="Another front end than those of the paper (ast for Python, srcml for Java and C).",
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
    OUT/TABLE.md and OUT/TABLE.html.
    """
    import torch

    import treecaps
    from treecaps.models.files import write_files
    from treecaps.nn.memory import keep_memory
    from treecaps.reproduction.page import Figures, notes, to_html, to_markdown
    from treecaps.reproduction.plan import TABLES, choose_rows
    from treecaps.reproduction.run import Cell, Reproduction

    chosen = TABLES[table]
    rows = choose_rows(chosen, models)
    work = Reproduction(data, out, quick, frontend)
    missing = work.missing(chosen.columns)
    for reason in missing.values():
        note(f"treecaps: {reason}")
    columns = [column for column in chosen.columns if column.name not in missing]
    if not columns:
        note("treecaps: error: none of the data sets is there")
        return 2
    trials = range(1 if quick else seeds)
    cells = [Cell(row, column, seed) for column in columns for row in rows for seed in trials]
    torch.set_num_threads(1)
    keep_memory()
    facts = {
        "frontends": ", ".join(f"{one.name} {frontend or one.frontend}" for one in columns),
        "seeds": len(trials),
        "treecaps": treecaps.__version__,
    }
    remarks = notes(chosen, missing, quick, facts)
    figures: Figures = {}
    with progress(table) as advance:
        for number, (cell, found) in enumerate(work.run(cells, advance), 1):
            figures.setdefault((cell.row.name, cell.column.name), []).append(found)
            pages = {
                f"{table}.md": to_markdown(chosen, rows, figures, remarks).encode(),
                f"{table}.html": to_html(chosen, rows, figures, remarks).encode(),
            }
            write_files(out, pages)
            if not is_terminal(sys.stderr):
                note(f"{number}/{len(cells)} {cell.name}: {found['accuracy']:.1%}")
    say(f"{out / table}.md")
    say(f"{out / table}.html")
    return 1 if missing else 0
