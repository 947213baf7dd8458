"""``treecaps classify``."""

import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import expand, read_input
from treecaps.cli.options import json_option, model_option, program_options, workers_option
from treecaps.cli.output import fail, is_terminal, note, progress, say, say_json
from treecaps.errors import Failure

if TYPE_CHECKING:
    from treecaps.inference.classify import Classification


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
@click.option("--functions", is_flag=True, help="Tell the class of each function by itself.")
@program_options
@workers_option
@click.option("--verbose", is_flag=True, help="Say at the end what the time went into.")
@json_option
def command(
    paths: tuple[str, ...],
    folder: Path,
    top: int,
    functions: bool,
    language: str | None,
    max_bytes: int,
    workers: int | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Tell which classes programs belong to.

    FILE may be a file, a folder (all programs below it) or - for standard input, which needs
    --language. Each prints a line: the class with its probability, then the next best.

    A program in which no class is present enough (its length is below the model's threshold) is
    unknown, and the best guess stands beside. Of a line or two, and of texts that are no programs,
    nothing is guessed. Probabilities are of being right, without background if of any class.
    """
    inputs = expand(paths, language)
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
    programs = (read_input(path, failure, language, max_bytes) for path, failure in inputs)
    workers = workers or min(len(inputs), os.cpu_count() or 1)
    failed = 0
    done = {path: number / len(inputs) for number, (path, _) in enumerate(inputs)}
    with (
        progress("classifying") as advance,
        closing(
            classify(model, programs, top=top, functions=functions, workers=workers, times=times)
        ) as results,
    ):
        for result in results:
            if not is_terminal(sys.stdout):
                advance(done[result.id], result.id)
            if isinstance(result, Failure):
                failed += 1
                if as_json:
                    error = {"code": result.code, "message": result.message}
                    say_json({"id": result.id, "error": error})
                else:
                    fail(result.id, result.message, result.arguments)
            elif as_json:
                say_json(result.to_dict())
            else:
                say(f"{_place(result)}: {_describe(result)}")
    if verbose:
        parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
        note(f"treecaps: {len(inputs):,} inputs: {parts}")
    return 1 if failed else 0


def _place(result: "Classification") -> str:
    where = result.id
    return where if result.function is None else f"{where}:{result.line} {result.function}"


def _describe(result: "Classification") -> str:
    if result.reason:
        return result.verdict
    first, *others = (f"{one.label} {one.probability:.0%}" for one in result.top)
    if result.title:
        first = f"{result.guess} ({result.title}) {result.probability:.0%}"
    if not result.known:
        first = f"{result.label}, perhaps {first} (length {result.length:.2f})"
    return "; then ".join(filter(None, (first, ", ".join(others))))
