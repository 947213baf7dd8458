"""What is named on the command line: files, folders, standard input, data sets and indices."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from treecaps.cli.output import fail, note_sources, progress
from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.syntax.program import MAX_BYTES, Item, Program, ProgramFile
from treecaps.syntax.sources import NOTEBOOK, list_sources

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.data.corpus import Corpus
    from treecaps.search.matches import AnyIndex
    from treecaps.search.place import Place

_ROWS = 40

Input = tuple[str, Program | Failure | None]
"""What an input is called, and what is known already: a cell, or what is wrong with it."""


def expand(
    paths: tuple[str, ...],
    language: str | None,
    *,
    max_bytes: int = MAX_BYTES,
    everything: bool = False,
) -> list[Input]:
    """Return the files that paths stand for; with a language, whatever files are called.

    Args:
        paths: Files, folders, and ``-`` for standard input.
        language: The language of all of them.
        max_bytes: Larger files are refused.
        everything: Whether also what is left out of folders by default.
    """
    if paths.count("-") > 1:
        raise UsageError("standard input can be read only once")
    return list(_expand(paths, language, max_bytes, everything))


def _expand(
    paths: tuple[str, ...], language: str | None, max_bytes: int, everything: bool
) -> Iterator[Input]:
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            yield from _cells(path, language, max_bytes)
            continue
        sources = list_sources(
            path, everything=language is not None, leave_out=not everything, also=(NOTEBOOK,)
        )
        note_sources(path, sources)
        for failure in sources.failures:
            yield os.path.join(path, failure.id), failure
        for name in sources.files:
            yield from _cells(os.path.join(path, name), language, max_bytes)
        if not sources.files and not sources.failures:
            yield path, Failure(path, "unreadable", "holds no programs in a known language")


def _cells(path: str, language: str | None, max_bytes: int) -> Iterator[Input]:
    """Yield a file, or the cells of one that is a notebook."""
    if not path.lower().endswith(NOTEBOOK):
        yield path, None
        return
    from treecaps.syntax.notebooks import read_cells

    found = read_cells(path, language, max_bytes=max_bytes)
    for one in [found] if isinstance(found, Failure) else found:
        yield one.id, one


def open_input(
    path: str, found: Program | Failure | None, language: str | None, max_bytes: int
) -> Item:
    """Return one of the inputs that ``expand`` returned; files are read by who parses them."""
    if isinstance(found, Failure):
        return replace(found, id=path)
    if found:
        return found
    if path != "-":
        return ProgramFile(Path(path), path, language, max_bytes)
    try:
        return Program.read_stdin(language, max_bytes=max_bytes).replace(id=path)
    except ProgramError as error:
        return Failure(path, error.code, str(error))


def read_input(path: str, language: str | None, max_bytes: int) -> Program | Failure:
    """Read one file, or standard input."""
    found = open_input(path, None, language, max_bytes)
    return found.read() if isinstance(found, ProgramFile) else found


def failure_status(failed: int, total: int) -> int:
    """Return the exit status: 0 if no input failed, 1 if some did, 2 if all did."""
    return (1 if failed < total else 2) if failed else 0


def build_corpus(
    place: Path,
    *,
    frontend: str,
    comments: bool,
    language: str | None,
    max_bytes: int,
    cache: Path | None,
    workers: "Workers | None" = None,
    bugs: bool = False,
) -> "Corpus":
    """Parse a data set, or fetch its trees, with a progress bar."""
    from treecaps.data.corpus import Corpus
    from treecaps.data.dataset import DataSet

    data = DataSet(place, language=language, max_bytes=max_bytes, bugs=bugs)
    note_sources(place, data.sources)
    with progress(f"parsing {place.name}") as advance:
        return Corpus.build(
            data,
            frontend=frontend,
            comments=comments,
            workers=workers,
            cache=cache,
            progress=lambda done, share: advance(share, f"{done:,} programs"),
        )


def open_index(place: "Place") -> "AnyIndex":
    """Open an index, with a progress bar."""
    from treecaps.search.opening import open_index

    with progress("opening the index") as advance:
        return open_index(place, step=lambda share: advance(share, str(place)))


def tell_failures(place: Path, corpus: "Corpus") -> None:
    """Tell people of the programs of a data set that failed."""
    for failure in corpus.failures[:_ROWS]:
        fail(failure.id, failure.message, failure.arguments)
    if len(corpus.failures) > _ROWS:
        fail(place.name, f"{len(corpus.failures) - _ROWS:,} more programs failed")
