"""``treecaps parse``."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.options import json_option, parser_options
from treecaps.cli.output import (
    fail,
    is_terminal,
    note,
    note_passed_over,
    progress,
    say,
    say_json,
    say_lines,
)
from treecaps.errors import DataError, Failure, ProgramError, UsageError, tell
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.program import Program
from treecaps.syntax.sources import list_sources

if TYPE_CHECKING:
    from treecaps.syntax.tree import Tree


@click.command("parse")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@parser_options
@click.option("--tree", "in_full", is_flag=True, help="Print the trees of several files in full.")
@click.option("--svg", type=click.Path(dir_okay=False), help="Draw the tree into this file.")
@json_option
def command(
    paths: tuple[str, ...],
    frontend: str,
    language: str | None,
    comments: bool,
    max_bytes: int,
    in_full: bool,
    svg: str | None,
    as_json: bool,
) -> int:
    """Turn source files into syntax trees.

    FILE may be a file, a folder (all programs below it) or - for standard input. One file prints
    its tree, several print a line each; --json prints one object a line for each.
    """
    if paths.count("-") > 1:
        raise UsageError("standard input can be read only once")
    from treecaps.data.parallel import parse_programs

    get_frontend(frontend)  # complain now, not in another process
    inputs = list(_expand(paths, everything=language is not None))
    if svg and len(inputs) != 1:
        raise UsageError(f"--svg draws one file, not {len(inputs)}")
    programs = (_read(path, failure, language, max_bytes) for path, failure in inputs)
    results = parse_programs(
        programs, frontend, comments=comments, workers=min(len(inputs), os.cpu_count() or 1)
    )
    failed = 0
    with progress("parsing") as advance, closing(results):
        for number, ((path, _), result) in enumerate(zip(inputs, results, strict=True)):
            if not is_terminal(sys.stdout):
                advance(number / len(inputs), path)
            if isinstance(result, Failure):
                failed += 1
                if as_json:
                    error = {"code": result.code, "message": result.message}
                    say_json({"path": path, "error": error})
                else:
                    fail(path, result.message)
                continue
            if svg:
                from treecaps.syntax.drawing import to_svg

                _write(svg, to_svg(result))
            if as_json:
                say_json({"path": path, **_figures(result), "tree": result.to_dict()})
            elif len(inputs) > 1 and not in_full:
                say(f"{path}: {_describe(result)}")
            else:
                if len(inputs) > 1:
                    say(f"{path}:")
                if not svg:
                    say_lines(result.format())
                note(_describe(result, places=True))
    return 1 if failed else 0


def _expand(paths: tuple[str, ...], everything: bool) -> Iterator[tuple[str, Failure | None]]:
    """Yield the files that paths stand for, and what is wrong with those that stand for none."""
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            yield path, None
            continue
        sources = list_sources(path, everything=everything)
        note_passed_over(path, sources)
        for failure in sources.failures:
            yield os.path.join(path, failure.id), failure
        for name in sources.files:
            yield os.path.join(path, name), None
        if not sources.files and not sources.failures:
            yield path, Failure(path, "unreadable", "holds no programs in a known language")


def _read(
    path: str, failure: Failure | None, language: str | None, max_bytes: int
) -> Program | Failure:
    try:
        if failure:
            return failure
        if path == "-":
            return Program.read_stdin(language, max_bytes=max_bytes)
        return Program.read(path, language, max_bytes=max_bytes)
    except ProgramError as error:
        return Failure(path, error.code, str(error))


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {tell(error)}") from None


def _figures(tree: "Tree") -> dict[str, float]:
    return {"nodes": len(tree), "errors": len(tree.errors), "error_share": tree.error_share}


def _describe(tree: "Tree", *, places: bool = False) -> str:
    text = f"{tree.language}, {len(tree):,} nodes"
    if not len(tree.errors):
        return text
    errors = "1 error" if len(tree.errors) == 1 else f"{len(tree.errors):,} errors"
    text += f", {errors} ({tree.error_share:.1%} of the text)"
    if places:
        first = [tree.line_and_column(node) for node in tree.errors[:5].tolist()]
        text += " at " + ", ".join(f"{line}:{column}" for line, column in first)
        text += ", ..." if len(tree.errors) > 5 else ""
    return text
