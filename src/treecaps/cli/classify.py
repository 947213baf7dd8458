"""``treecaps classify``."""

import os
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import expand, open_input
from treecaps.cli.options import (
    all_option,
    json_option,
    model_option,
    program_options,
    workers_option,
)
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
@all_option
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
    everything: bool,
    workers: int | None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Tell which classes programs belong to.

    FILE may be a file, a notebook (each code cell is a program), a folder (all programs below it)
    or - for standard input. Where no file name tells the language, it is guessed. Each prints a
    line: the class with its probability, then others of 5 % or more. At the end it is said how many
    have a class.

    A program in which no class is present enough (its length is below the model's threshold) is
    unknown; a guess of 5 % or more stands beside. Of a line or two, and of texts that are no
    programs, nothing is guessed. Probabilities are of being right, without background if of any
    class.
    """
    inputs = expand(paths, language, max_bytes=max_bytes, everything=everything)
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
    programs = (open_input(path, found, language, max_bytes) for path, found in inputs)
    workers = workers or min(len(inputs), os.cpu_count() or 1)
    counts: Counter[str] = Counter()
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
            counts[_tell(result, as_json)] += 1
    if counts.total() > 1 and not as_json:
        others = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("unknown", "failed"))
        note(f"{counts['named']:,} of {counts.total():,} named, {others}")
    if verbose:
        parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
        note(f"treecaps: {len(inputs):,} inputs: {parts}")
    return 1 if counts["failed"] else 0


def _tell(result: "Classification | Failure", as_json: bool) -> str:
    """Print an answer, and return what it is: named, unknown or failed."""
    if isinstance(result, Failure):
        if as_json:
            error = {"code": result.code, "message": result.message}
            say_json({"id": result.id, "error": error})
        else:
            fail(result.id, result.message, result.arguments)
        return "failed"
    if as_json:
        say_json(result.to_dict())
    else:
        say(f"{_place(result)}: {_describe(result)}")
    return "named" if result.known else "unknown"


def _place(result: "Classification") -> str:
    where = result.id
    return where if result.function is None else f"{where}:{result.line} {result.function}"


def _describe(result: "Classification") -> str:
    if result.reason:
        return result.verdict
    from treecaps.inference.classify import LIKELY

    first, *others = (f"{one.label} {one.probability:.0%}" for one in result.top)
    if result.title:
        first = f"{result.guess} ({result.title}) {result.probability:.0%}"
    if not result.known:
        likely = result.probability >= LIKELY
        first = f"{result.label}, perhaps {first}" if likely else result.label
    others = [
        text for text, one in zip(others, result.top[1:], strict=True) if one.probability >= LIKELY
    ]
    told = "; then ".join(filter(None, (first, ", ".join(others))))
    parts = ", ".join(f"{part.label} in line {part.line}" for part in result.parts)
    return "; also ".join(filter(None, (told, parts)))
