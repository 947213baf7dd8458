"""``treecaps explain``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import read_input
from treecaps.cli.options import json_option, model_option, program_options
from treecaps.cli.output import is_terminal, note, say, say_json, say_lines, write_page
from treecaps.errors import DataError, Failure, UsageError

if TYPE_CHECKING:
    from treecaps.explanation.attribution import Method
    from treecaps.explanation.explanation import Explanation

_METHODS = ("gradients", "routing")
_LINES = 400


@click.command("explain")
@click.argument("path", metavar="FILE")
@model_option
@click.option("--label", help="The class to explain; the model's best guess by default.")
@click.option(
    "--method",
    type=click.Choice(_METHODS),
    help="Integrate gradients, or follow what is routed to the class; by default gradients, and"
    " routing for programs of more than 2,000 nodes.",
)
@click.option(
    "--perturb",
    is_flag=True,
    help="Vary each number of the class's capsule, and see which windows come and go.",
)
@click.option(
    "--html",
    metavar="OUT",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page there: the source as a heat map, the tree, and the strongest routes.",
)
@program_options
@json_option
def command(
    path: str,
    folder: Path,
    label: str | None,
    method: "Method | None",
    perturb: bool,
    html: Path | None,
    language: str | None,
    max_bytes: int,
    as_json: bool,
) -> int:
    """Show what of a program leads to its class.

    FILE may be - for standard input. Prints the program with what each line
    adds, in per cent of all that its lines add; on a terminal, tokens that speak for the class are
    on orange ground, those against it on blue.
    """
    from treecaps.explanation.explanation import explain
    from treecaps.models.engine import set_num_threads
    from treecaps.models.trained import load

    set_num_threads(1)
    if Path(path).is_dir():
        raise UsageError(f"explain takes one program, and {path} is a folder")
    program = read_input(path, language, max_bytes)
    if isinstance(program, Failure):
        raise DataError(f"{path}: {program.message}", arguments=program.arguments)
    found = explain(load(folder), program, label=label, method=method, dimensions=perturb)
    if html:
        from treecaps.rendering.explanation import to_html

        write_page(html, to_html(found))
    if as_json:
        say_json(found.to_dict())
    elif html:
        say(str(html))
    else:
        _show(found)
    return 0


def _show(found: "Explanation") -> None:
    from rich.console import Console

    from treecaps.explanation.terminal import dimension_lines, to_lines

    said = found.classification
    share = "" if said.reason else f" {said.probability:.0%}"
    say(f"{said.id}: {said.verdict}{share}; what adds to {found.label}:")
    lines = list(to_lines(found))
    shown = lines if len(lines) <= _LINES else lines[:_LINES]
    if is_terminal(sys.stdout):
        console = Console(highlight=False, soft_wrap=True)
        for line in shown:
            console.print(line)
    else:
        say_lines(line.plain.rstrip() for line in shown)
    if len(lines) > _LINES:
        note(f"treecaps: {len(lines) - _LINES:,} more lines; --html OUT or --json has all")
    if found.dimensions:
        say_lines(["", *dimension_lines(found)])
