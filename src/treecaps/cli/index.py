"""``treecaps index``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.options import (
    PlaceType,
    all_option,
    cluster_options,
    embedding_model_option,
    json_option,
    max_bytes_option,
)
from treecaps.cli.output import fail, note, note_sources, progress, say, say_json

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.search.place import Place


@click.command("index")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="INDEX",
    required=True,
    type=PlaceType(),
    help="The file of the index, or postgresql://...; one that exists is brought up to date.",
)
@embedding_model_option
@click.option("--files", is_flag=True, help="Index whole files, not functions.")
@all_option
@max_bytes_option
@cluster_options
@json_option
def command(
    directory: Path,
    out: "Place",
    folder: Path,
    files: bool,
    everything: bool,
    max_bytes: int,
    workers: "Workers | None",
    as_json: bool,
) -> int:
    """Make the index of a folder for treecaps search, or bring it up to date.

    Each function below DIR gets a vector. Run again, only files with new contents are parsed and
    embedded; renamed ones are known by their contents, and those that have gone leave the index.

    The index is as it was before until all is done, so it may be searched meanwhile; a run that
    was killed goes on where it stopped.

    INDEX may be the address of a PostgreSQL database with pgvector, postgresql://USER@HOST/NAME. It
    takes many folders, and several may write and search at once. Commands are seen by others, so a
    password belongs into ~/.pgpass or PGPASSWORD.

    A large index also gets a graph of near vectors, INDEX.graph, so that a search need not look at
    each of them. What is told of it is the share of the ten nearest that it finds.
    """
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc
    from treecaps.search.build import update_index
    from treecaps.syntax.sources import list_sources

    set_num_threads(1)  # the other cores parse
    tune_malloc()
    sources = list_sources(directory, leave_out=not everything)
    note_sources(directory, sources)
    with progress("indexing") as advance:
        update = update_index(
            directory,
            out,
            model=folder,
            functions=not files,
            max_bytes=max_bytes,
            workers=workers,
            sources=sources,
            step=advance,
        )
    if as_json:
        say_json(update.to_dict())
    else:
        for failure in update.failures:
            fail(str(directory / failure.id), failure.message, failure.arguments)
        what = "" if files else f"{update.vectors:,} functions of "
        say(
            f"{out}: {what}{update.files:,} files ({update.added:,} new, {update.changed:,}"
            f" changed, {update.removed:,} gone; {update.embedded:,} embedded)"
            + ("" if update.recall is None else f"; graph: recall@10 {update.recall:.2f}")
        )
    if update.note:
        note(f"{out}: every search will look at each vector, because {update.note}")
    return 1 if update.failures else 0
