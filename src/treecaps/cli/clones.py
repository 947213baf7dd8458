"""``treecaps clones``."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import open_index
from treecaps.cli.options import json_option, max_bytes_option, model_option, workers_option
from treecaps.cli.output import fail, note, note_passed_over, progress, say, say_json

if TYPE_CHECKING:
    from treecaps.errors import Failure
    from treecaps.search.index import Index


@click.command("clones")
@click.argument("place", metavar="DIR", type=click.Path(path_type=Path))
@model_option
@click.option(
    "--threshold",
    type=float,
    default=0.95,
    show_default=True,
    help="How alike functions must be, up to 1.",
)
@click.option(
    "--min-lines",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Leave shorter functions out.",
)
@max_bytes_option
@workers_option
@json_option
def command(
    place: Path,
    folder: Path,
    threshold: float,
    min_lines: int,
    max_bytes: int,
    workers: int | None,
    as_json: bool,
) -> int:
    """Find functions that are alike, also across languages.

    DIR is a folder, or an index of one, which has been embedded already. Exit status 1 says that
    some were found, or that a file failed.
    """
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc
    from treecaps.search.clones import find_clones

    set_num_threads(1)  # the other cores parse
    tune_malloc()
    failures: tuple[Failure, ...] = ()
    if place.is_file():
        index = open_index(place)
    else:
        index, failures = _index_folder(place, folder, max_bytes, workers)
    for failure in failures:
        fail(str(place / failure.id), failure.message, failure.arguments)
    with progress("comparing") as advance:
        groups = find_clones(
            index,
            threshold,
            min_lines=min_lines,
            step=lambda share: advance(share, f"{len(index):,} functions"),
        )
    for group in groups:
        if as_json:
            say_json(group.to_dict())
            continue
        say(f"{len(group.members):,} alike, {group.similarity:.2f} or more")
        for one in group.members:
            span = f"{one.path}:{one.line}-{one.last_line}"
            say(f"  {span} {one.function or '(file)'} {one.similarity:.2f} {one.language}")
    if not groups and not as_json:
        note(f"none of {len(index):,} functions are alike")
    return 1 if groups or failures else 0


def _index_folder(
    place: Path, model: Path, max_bytes: int, workers: int | None
) -> "tuple[Index, tuple[Failure, ...]]":
    """Return an index of a folder that is for this run only, and the files that failed."""
    from treecaps.search.build import update_index
    from treecaps.search.index import Index
    from treecaps.syntax.sources import list_sources

    sources = list_sources(place)
    note_passed_over(place, sources)
    with tempfile.TemporaryDirectory() as temporary, progress("embedding") as advance:
        path = Path(temporary) / "index"
        update = update_index(
            place,
            path,
            model=model,
            max_bytes=max_bytes,
            workers=workers,
            sources=sources,
            step=advance,
        )
        return Index.open(path), update.failures
