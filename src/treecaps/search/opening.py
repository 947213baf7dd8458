"""Opens an index where it is: the one place that tells files and databases apart."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from treecaps.errors import naming_extra
from treecaps.inference.embed import Embedder
from treecaps.search import sqlite
from treecaps.search.index import Index, Step
from treecaps.search.matches import AnyIndex
from treecaps.search.place import Address, Place, to_place
from treecaps.search.store import Store

_WHAT = "an index in a database"


def open_index(
    place: str | Place, embedder: Embedder | None = None, *, step: Step | None = None
) -> AnyIndex:
    """Open an index to search it, or raise ``SearchError``.

    Args:
        place: What ``treecaps index`` wrote: a file, or the address of a database.
        embedder: The model that made it, if it is loaded already.
        step: Called with the share that is read.
    """
    place = to_place(place)
    if isinstance(place, Address):
        with naming_extra(_WHAT):
            from treecaps.search.shared import SharedIndex
        return SharedIndex.open(place, embedder)
    return Index.open(place, embedder, step=step)


def open_to_write(place: Place, about: dict[str, Any]) -> AbstractContextManager[Store]:
    """Open the index of a folder, or begin one, that nobody else writes meanwhile.

    Args:
        place: A file, or the address of a database.
        about: What a new index says of itself.
    """
    if isinstance(place, Address):
        with naming_extra(_WHAT):
            from treecaps.search import postgres
        return postgres.open_to_write(place, about)
    return sqlite.open_to_write(place, about)


def exists(place: Place, folder: Path) -> bool:
    """Whether there is an index of a folder."""
    if isinstance(place, Address):
        with naming_extra(_WHAT):
            from treecaps.search import postgres
        return postgres.exists(place, folder)
    return place.exists()
