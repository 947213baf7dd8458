"""``treecaps embed``."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import expand, failure_status, open_input
from treecaps.cli.options import (
    all_option,
    cluster_options,
    embedding_model_option,
    program_options,
)
from treecaps.cli.output import fail, is_terminal, note, progress
from treecaps.cli.resume import append_option, go_on
from treecaps.errors import Failure, UsageError

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.inference.embed import Embedding
    from treecaps.inference.embeddings import Format

_FORMATS: "tuple[Format, ...]" = ("jsonl", "npy", "parquet")


@click.command("embed")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@embedding_model_option
@click.option("--functions", is_flag=True, help="Make a vector of each function by itself.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write to this file instead of standard output.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="JSON Lines, an array of numpy or Parquet; by default what --out ends in, or jsonl.",
)
@program_options
@all_option
@cluster_options
@append_option
def command(
    paths: tuple[str, ...],
    folder: Path,
    functions: bool,
    out: Path | None,
    form: "Format | None",
    language: str | None,
    max_bytes: int,
    everything: bool,
    workers: "Workers | None",
    append: Path | None,
) -> int:
    """Compute embeddings of programs.

    FILE may be a file, a notebook (each code cell is a program), a folder (all programs below it)
    or - for standard input. Where no file name tells the language, it is guessed. Vectors have
    length 1, so the product of two says how alike their programs are.

    JSON Lines and Parquet name the program, its function and the line with each vector; an array
    has the embeddings alone, a row for each in the same order. Programs that fail are told and left
    out.
    """
    # It is long because every option is a parameter.
    if append and (out or form):
        raise UsageError("what is appended to a file is JSON: leave out --out and --format")
    form = form or _format_of(out)
    if out is None and form != "jsonl" and is_terminal(sys.stdout):
        raise UsageError(f"{form} is not for reading: name a file with --out")
    inputs = expand(paths, language, max_bytes=max_bytes, everything=everything)
    from treecaps.inference.embed import Embedder
    from treecaps.inference.embeddings import write
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc

    set_num_threads(1)  # the other cores parse
    tune_malloc()
    embedder = Embedder(folder)
    if append:
        inputs = go_on(append, inputs, embedder.model)
    programs = (open_input(path, found, language, max_bytes) for path, found in inputs)
    workers = workers or min(len(inputs) or 1, os.cpu_count() or 1)
    done = {path: number / len(inputs) for number, (path, _) in enumerate(inputs)}
    failed = made = 0
    with (
        progress("embedding") as advance,
        closing(embedder.embed(programs, functions=functions, workers=workers)) as results,
    ):

        def good() -> "Iterator[Embedding]":
            nonlocal failed, made
            for result in results:
                if out or not is_terminal(sys.stdout):
                    advance(done[result.id], result.id)
                if isinstance(result, Failure):
                    failed += 1
                    fail(result.id, result.message, result.arguments)
                else:
                    made += 1
                    yield result

        write(good(), out or sys.stdout.buffer, form)
    if out:
        note(f"wrote {made:,} embeddings to {out}")
    return failure_status(failed, made + failed)


def _format_of(out: Path | None) -> "Format":
    ending = out.suffix.lower() if out else ".jsonl"
    for form in _FORMATS:
        if ending == f".{form}":
            return form
    raise UsageError(f"{out} ends in none of .jsonl, .npy and .parquet: say which with --format")
