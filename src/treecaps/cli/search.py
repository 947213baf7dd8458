"""``treecaps search``."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import open_index, read_input
from treecaps.cli.options import PlaceType, json_option, program_options
from treecaps.cli.output import note, say, say_json, tell_alike
from treecaps.errors import Failure, UsageError

if TYPE_CHECKING:
    from treecaps.search.matches import AnyIndex, Match
    from treecaps.search.place import Place
    from treecaps.search.query import Lines
    from treecaps.syntax.program import Program
    from treecaps.syntax.tree import Tree

_ALIKE = 0.5
"""Where fewer of the pairs as near as the best solve the same problem, nothing is really alike."""
_WIDTH = 72


@click.command("search")
@click.argument("place", metavar="INDEX", type=PlaceType())
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
@click.option(
    "--smooth",
    is_flag=True,
    help="Rank by the neighbours of matches too: better where the index has several of a kind.",
)
@click.option(
    "--show",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many lines of each to show.",
)
@program_options
@json_option
def command(
    place: "Place",
    file: str,
    lines: str | None,
    functions: bool,
    top: int,
    smooth: bool,
    show: int,
    language: str | None,
    max_bytes: int,
    as_json: bool,
) -> int:
    """Find code like FILE in an index that treecaps index made: a file, or postgresql://...

    FILE may be - for standard input, whose language is guessed unless --language names it. Told of
    each that was found are its file and line, the function, the share of pairs as near as this that
    solve the same problem, its language, and its first lines. With a model that was not trained for
    similarity, the share is the product of both vectors instead (1: the same).
    """
    from treecaps.search.query import Lines

    chosen = Lines.parse(lines) if lines else None
    if chosen and functions:
        raise UsageError("--lines and --functions exclude each other: leave one out")
    program = read_input(file, language, max_bytes)
    if isinstance(program, Failure):
        raise UsageError(f"{file}: {program.message}", arguments=program.arguments)
    from treecaps.models.engine import set_num_threads

    set_num_threads(1)
    index = open_index(place)
    if index.note:
        note(f"{place}: looking at each vector, because {index.note}")
    queries = _queries(index, file, program, chosen, functions)
    vectors = index.embedder.embed_trees([tree for _, tree in queries])
    results = index.search_many(vectors, top, smooth=smooth)
    for (name, _), matches in zip(queries, results, strict=True):
        if as_json:
            asked = {"function": name[0], "line": name[1]} if name else {}
            say_json({"id": file, **asked, "matches": [match.to_dict() for match in matches]})
            continue
        if name:
            say(f"{file}:{name[1]} {name[0]}")
        likely = [match.probability for match in matches if match.probability is not None]
        if likely and max(likely) < _ALIKE:
            say("nothing really alike; the nearest:")
        indent = "  " if name else ""
        for match in matches:
            say(indent + tell_match(index, match))
            for line in _first_lines(index, match, show):
                say(indent + line)
    gone = sorted({match.path for some in results for match in some if index.code(match) is None})
    if gone:
        note(
            f"{place}: {gone[0]}{f' and {len(gone) - 1:,} more' if gone[1:] else ''} changed"
            " or went away since; bring it up to date:"
            f" treecaps index {index.folder_of(gone[0])} --out {place}"
        )
    return 0


def _queries(
    index: "AnyIndex", file: str, program: "Program", lines: "Lines | None", functions: bool
) -> "list[tuple[tuple[str, int] | None, Tree]]":
    """Return what to search for: trees, those of functions with their names and lines."""
    from treecaps.data.parallel import parse_programs
    from treecaps.inference.units import is_empty
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


def tell_match(index: "AnyIndex", match: "Match") -> str:
    """Return a match as a line of text, with a path from where one stands."""
    place = os.path.relpath(index.folder / match.path)
    where = f"{place}:{match.line}" if match.line else place
    return f"{where} {match.function or '(file)'} {tell_alike(match)} {match.language}"


def _first_lines(index: "AnyIndex", match: "Match", most: int) -> Iterator[str]:
    """Yield the first lines of a match with their numbers, if its file is still the same."""
    code = index.code(match) if most else None
    lines = (code or "").split("\n")[:most]
    for number, line in enumerate(lines if code else (), match.line or 1):
        text = line.expandtabs(4)
        yield f"{number:6}  {text if len(text) <= _WIDTH else text[: _WIDTH - 3] + '...'}".rstrip()
