"""``treecaps bugs``."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import expand, open_input
from treecaps.cli.options import cluster_options, json_option, program_options
from treecaps.cli.output import fail, is_terminal, note, progress, say, say_json
from treecaps.cli.resume import append_option, go_on
from treecaps.errors import Failure, UsageError

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.inference.bugs import Bug, BugReport


@click.command("bugs")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--model",
    "folder",
    metavar="MODEL",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder of a model trained with --task bugs.",
)
@click.option("--all", "every", is_flag=True, help="Rank every line with code, however unlikely.")
@program_options
@cluster_options
@append_option
@json_option
@click.option("--sarif", is_flag=True, help="Print SARIF, for code scanners.")
def command(
    paths: tuple[str, ...],
    folder: Path,
    every: bool,
    language: str | None,
    max_bytes: int,
    workers: "Workers | None",
    append: Path | None,
    as_json: bool,
    sarif: bool,
) -> int:
    """Tell where programs may have bugs.

    FILE may be a file, a folder (all programs below it) or - for standard input, which needs
    --language. Each place is a line: file, line and column, how probable it is that the bug is
    there if half of all programs had one, the kind of mistake where the model is sure of it, and
    the piece of code. The most suspicious place of a program comes first.

    Most real bugs are not found, and what is reported may be right. Nothing is reported below the
    model's threshold, which one in 50 functions of ordinary code exceeds. Exit 1 if something is
    reported.
    """
    if append and sarif:
        raise UsageError("what is appended to a file is JSON: leave out --append or --sarif")
    if as_json and sarif:
        raise UsageError("print JSON or SARIF, not both: leave out --json or --sarif")
    inputs = expand(paths, language)
    from treecaps.inference.bugs import find_bugs
    from treecaps.models.engine import set_num_threads
    from treecaps.models.trained import load

    set_num_threads(1)  # the other cores parse
    model = load(folder)
    if append:
        inputs, as_json = go_on(append, inputs, model), True
    programs = (open_input(path, failure, language, max_bytes) for path, failure in inputs)
    workers = workers or min(len(inputs) or 1, os.cpu_count() or 1)
    done = {path: number / len(inputs) for number, (path, _) in enumerate(inputs)}
    with (
        progress("looking for bugs") as advance,
        closing(find_bugs(model, programs, every=every, workers=workers)) as results,
    ):
        return _tell_all(_watched(results, done, advance), as_json, sarif)


def _watched(
    results: "Iterable[BugReport | Failure]",
    done: dict[str, float],
    advance: Callable[[float, str], None],
) -> "Iterator[BugReport | Failure]":
    """Yield results, and show progress where nobody sees them."""
    for result in results:
        if not is_terminal(sys.stdout):
            advance(done[result.id], result.id)
        yield result


def _tell_all(results: "Iterable[BugReport | Failure]", as_json: bool, sarif: bool) -> int:
    """Print results, and return the exit status."""
    reports: list[BugReport] = []
    failed = found = 0
    for result in results:
        if isinstance(result, Failure):
            failed += 1
            _tell_failure(result, as_json)
            continue
        found += len(result.bugs)
        if sarif:
            reports.append(result)
        elif as_json:
            say_json(result.to_dict())
        else:
            for bug in result.bugs:
                say(f"{result.id}:{bug.line}:{bug.column}: {_describe(bug)}")
    if sarif:
        from treecaps.rendering.sarif import to_sarif

        say_json(to_sarif(reports))
    elif not as_json and not found and not failed:
        note("nothing suspicious")
    return 1 if found or failed else 0


def _tell_failure(failure: Failure, as_json: bool) -> None:
    if as_json:
        error = {"code": failure.code, "message": failure.message}
        say_json({"id": failure.id, "error": error})
    else:
        fail(failure.id, failure.message, failure.arguments)


def _describe(bug: "Bug") -> str:
    kind = f" {bug.kind}" if bug.kind else ""
    return f"{bug.probability:.0%}{kind}: {bug.code}"
