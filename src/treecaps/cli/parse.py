"""``treecaps parse``."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import expand, failure_status, open_input
from treecaps.cli.options import all_option, json_option, parser_options
from treecaps.cli.output import (
    fail,
    is_terminal,
    note,
    progress,
    say,
    say_json,
    say_lines,
)
from treecaps.errors import DataError, Failure, UsageError, describe_os_error
from treecaps.syntax.frontends import get_frontend

if TYPE_CHECKING:
    from treecaps.syntax.tree import Tree


@click.command("parse")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@parser_options
@all_option
@click.option("--tree", "in_full", is_flag=True, help="Print the trees of several files in full.")
@click.option(
    "--edges",
    is_flag=True,
    help="Print edges between nodes instead of the tree: what a variable was last, what it is"
    " computed from, what guards it (Python, Java, C, C++), which token is next.",
)
@click.option("--svg", type=click.Path(dir_okay=False), help="Draw the tree into this file.")
@json_option
def command(
    paths: tuple[str, ...],
    frontend: str,
    language: str | None,
    comments: bool,
    max_bytes: int,
    everything: bool,
    in_full: bool,
    edges: bool,
    svg: str | None,
    as_json: bool,
) -> int:
    """Turn source files into syntax trees.

    FILE may be a file, a notebook (each code cell is a program), a folder (all programs below it)
    or - for standard input. One file prints
    its tree, several print a line each; --json prints one object a line for each.
    """
    from treecaps.data.parallel import parse_programs

    get_frontend(frontend)  # complain now, not in another process
    inputs = expand(paths, language, max_bytes=max_bytes, everything=everything)
    if svg and len(inputs) != 1:
        raise UsageError(f"--svg draws one file, not {len(inputs)}")
    programs = (open_input(path, found, language, max_bytes) for path, found in inputs)
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
                    fail(path, result.message, result.arguments)
                continue
            if svg:
                from treecaps.syntax.drawing import to_svg

                _write(svg, to_svg(result))
            if as_json:
                found = {"edges": _edges(result)} if edges else {}
                say_json({"path": path, **_facts(result), "tree": result.to_dict(), **found})
            elif len(inputs) > 1 and not in_full and not edges:
                say(f"{path}: {_describe(result)}")
            else:
                if len(inputs) > 1:
                    say(f"{path}:")
                if edges:
                    say_lines(_format_edges(result))
                    _note_variables(result)
                elif not svg:
                    say_lines(result.format())
                note(_describe(result, places=True))
    return failure_status(failed, len(inputs))


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {describe_os_error(error)}") from None


def _facts(tree: "Tree") -> dict[str, float]:
    return {"nodes": len(tree), "errors": len(tree.errors), "error_share": tree.error_share}


def _edges(tree: "Tree") -> dict[str, list[list[int]]]:
    from treecaps.syntax.edges import find_edges

    return {kind: pairs.tolist() for kind, pairs in find_edges(tree).items()}


def _note_variables(tree: "Tree") -> None:
    from treecaps.syntax.edges import FRONTEND, LANGUAGES

    if tree.frontend != FRONTEND or tree.language not in LANGUAGES:
        note(f"treecaps: variables are followed in {', '.join(LANGUAGES)} by {FRONTEND} only")


def _format_edges(tree: "Tree") -> Iterator[str]:
    """Yield one line an edge but those to children, which the tree itself shows."""
    kinds = tree.kind_names()

    def name(node: int) -> str:
        line, column = tree.line_and_column(node)
        text = tree.token(node)
        return f"{line}:{column} {json.dumps(text, ensure_ascii=False) if text else kinds[node]}"

    for kind, pairs in _edges(tree).items():
        if kind != "Child":
            for one, other in pairs:
                yield f"{kind}  {name(one)} -> {name(other)}"


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
