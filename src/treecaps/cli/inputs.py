"""Programs that are named on the command line: files, folders and standard input."""

import os
from collections.abc import Iterator

from treecaps.cli.output import note_passed_over
from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.syntax.program import Program
from treecaps.syntax.sources import list_sources

Input = tuple[str, Failure | None]
"""A file, or something that stands for none and what is wrong with it."""


def expand(paths: tuple[str, ...], language: str | None) -> list[Input]:
    """Return the files that paths stand for; with a language, whatever files are called."""
    if paths.count("-") > 1:
        raise UsageError("standard input can be read only once")
    return list(_expand(paths, everything=language is not None))


def _expand(paths: tuple[str, ...], everything: bool) -> Iterator[Input]:
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


def read_input(
    path: str, failure: Failure | None, language: str | None, max_bytes: int
) -> Program | Failure:
    """Read one of the inputs that ``expand`` returned."""
    try:
        if failure:
            return failure
        if path == "-":
            return Program.read_stdin(language, max_bytes=max_bytes)
        return Program.read(path, language, max_bytes=max_bytes)
    except ProgramError as error:
        return Failure(path, error.code, str(error))
