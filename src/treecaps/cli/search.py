"""``treecaps search``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import open_index, read_input
from treecaps.cli.options import json_option, program_options
from treecaps.cli.output import note, say, say_json
from treecaps.errors import Failure, UsageError

if TYPE_CHECKING:
    from treecaps.search.index import Index, Match
    from treecaps.search.query import Lines
    from treecaps.syntax.program import Program
    from treecaps.syntax.tree import Tree


@click.command("search")
@click.argument("index_path", metavar="INDEX", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE")
@click.option("--lines", metavar="10-40", help="Search for these lines of FILE only.")
@click.option("--functions", is_flag=True, help="Search for each function of FILE by itself.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many to find, best first.",
)
@program_options
@json_option
def command(
    index_path: Path,
    file: str,
    lines: str | None,
    functions: bool,
    top: int,
    language: str | None,
    max_bytes: int,
    as_json: bool,
) -> int:
    """Find code like FILE in an index that treecaps index made.

    FILE may be - for standard input, which needs --language. Each line names what was found: its
    file and line, the function, how alike both are (1: the same) and its language.
    """
    from treecaps.search.query import Lines

    chosen = Lines.parse(lines) if lines else None
    if chosen and functions:
        raise UsageError("--lines and --functions exclude each other: leave one out")
    program = read_input(file, None, language, max_bytes)
    if isinstance(program, Failure):
        raise UsageError(f"{file}: {program.message}", arguments=program.arguments)
    from treecaps.models.engine import set_num_threads

    set_num_threads(1)
    index = open_index(index_path)
    queries = _queries(index, file, program, chosen, functions)
    results = index.search_many(index.embedder.embed_trees([tree for _, tree in queries]), top)
    for (name, _), matches in zip(queries, results, strict=True):
        if as_json:
            asked = {"function": name[0], "line": name[1]} if name else {}
            say_json({"id": file, **asked, "matches": [match.to_dict() for match in matches]})
            continue
        if name:
            say(f"{file}:{name[1]} {name[0]}")
        for match in matches:
            say(("  " if name else "") + tell_match(match))
    gone = sorted({match.path for some in results for match in some if index.code(match) is None})
    if gone:
        note(
            f"{index_path}: {gone[0]}{f' and {len(gone) - 1:,} more' if gone[1:] else ''} changed"
            " or went away since; bring it up to date:"
            f" treecaps index {index.folder} --out {index_path}"
        )
    return 0


def _queries(
    index: "Index", file: str, program: "Program", lines: "Lines | None", functions: bool
) -> "list[tuple[tuple[str, int] | None, Tree]]":
    """Return what to search for: trees, those of functions with their names and lines."""
    from treecaps.data.parallel import parse_programs
    from treecaps.inference.classify import is_empty
    from treecaps.search.query import select
    from treecaps.syntax.functions import find_functions

    model = index.embedder.model
    (tree,) = parse_programs([program], model.frontend, comments=model.comments)
    if isinstance(tree, Failure):
        raise UsageError(f"{file}: {tree.message}", arguments=tree.arguments)
    if is_empty(tree):
        raise UsageError(f"{file} is empty: there is nothing to search for")
    if not functions:
        return [(None, select(tree, lines, functions=index.functions))]
    found = find_functions(tree)
    if not found:
        raise UsageError(f"{file} has no functions: search without --functions")
    return [((function.name, function.line), function.tree) for function in found]


def tell_match(match: "Match") -> str:
    """Return a match as a line of text."""
    where = f"{match.path}:{match.line}" if match.line else match.path
    return f"{where} {match.function or '(file)'} {match.similarity:.2f} {match.language}"
