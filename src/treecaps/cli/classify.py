"""``treecaps classify``."""

import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.answers import SORTS, Columns, Printer
from treecaps.cli.inputs import Input, expand, failure_status, open_input
from treecaps.cli.options import (
    all_option,
    cluster_options,
    json_option,
    model_option,
    program_options,
)
from treecaps.cli.output import is_terminal, note, progress
from treecaps.cli.resume import append_option, go_on
from treecaps.errors import UsageError

if TYPE_CHECKING:
    from treecaps.cluster import Workers


@click.command("classify")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@model_option
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many classes to name, best first.",
)
@click.option(
    "--functions",
    is_flag=True,
    help="Tell the class of each function by itself, but of constructors and accessors.",
)
@click.option("--known-only", is_flag=True, help="Print only what has a class.")
@click.option(
    "--sort",
    "by",
    type=click.Choice(SORTS),
    help="Print in this order, when all is done.",
)
@click.option(
    "--format",
    "template",
    metavar="TEMPLATE",
    help="Print this for each, as '{id}: {label} {probability:.0%}'; fields as in --json, and"
    " {place} and {answer}.",
)
@program_options
@all_option
@cluster_options
@append_option
@click.option("--verbose", is_flag=True, help="Say at the end what the time went into.")
@json_option
def command(
    paths: tuple[str, ...],
    folder: Path,
    top: int,
    functions: bool,
    known_only: bool,
    by: str | None,
    template: str | None,
    language: str | None,
    max_bytes: int,
    everything: bool,
    workers: "Workers | None",
    append: Path | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Tell which classes programs belong to.

    FILE may be a file, a notebook (each code cell is a program), a folder (all programs below it)
    or - for standard input. Where no file name tells the language, it is guessed. Each prints a
    line: the class with its probability, then others of 5 % or more. At the end it is said how many
    have a class.

    Where the model is not sure enough of any class, the answer is unknown; a guess of 5 % or more
    stands beside. Of a line or two, and of texts that are no programs, nothing is guessed.
    Probabilities are of being right, without background if of any class.
    """
    # It is long because every option is a parameter.
    if append and (by or template):
        raise UsageError("what is appended to a file is JSON, in the order of the inputs")
    as_json = as_json or append is not None
    terminal = is_terminal(sys.stdout) and template is None and not as_json
    by_folder = terminal and not functions and not by and any(map(os.path.isdir, paths))
    printer = Printer(
        template=template,
        as_json=as_json,
        columns=Columns(by_folder) if terminal else None,
        by=by,
        known_only=known_only,
    )
    inputs = expand(paths, language, max_bytes=max_bytes, everything=everything)
    if by_folder:
        inputs = _group(inputs)
    begun = time.perf_counter()
    from treecaps.inference.classify import classify
    from treecaps.models.engine import set_num_threads
    from treecaps.models.trained import load
    from treecaps.nn.memory import tune_malloc

    imported = time.perf_counter()
    set_num_threads(1)  # the other cores parse
    tune_malloc()
    model = load(folder)
    times = {"imports": imported - begun, "loading": time.perf_counter() - imported}
    if append:
        inputs = go_on(append, inputs, model)
    programs = (open_input(path, found, language, max_bytes) for path, found in inputs)
    workers = workers or min(len(inputs) or 1, os.cpu_count() or 1)
    done = {path: number / len(inputs) for number, (path, _) in enumerate(inputs)}
    with (
        progress("classifying") as advance,
        closing(
            classify(
                model,
                programs,
                top=top,
                functions=functions,
                trivial=everything,
                workers=workers,
                times=times,
            )
        ) as results,
    ):
        for result in results:
            if by or not is_terminal(sys.stdout):
                advance(done[result.id], result.id)
            printer.add(result)
    printer.finish()
    if printer.total > 1 and not as_json:
        note(printer.tell_counts())
    if verbose:
        parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
        note(f"treecaps: {len(inputs):,} inputs: {parts}")
    return failure_status(printer.counts["failed"], printer.total)


def _group(inputs: list[Input]) -> list[Input]:
    """Return inputs with those of a folder together, in the order in which folders come."""
    folders = {os.path.dirname(path): None for path, _ in inputs}
    order = {folder: number for number, folder in enumerate(folders)}
    return sorted(inputs, key=lambda one: order[os.path.dirname(one[0])])
