"""``SharedIndex``: an index in a database, which also searches it."""

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar

import numpy as np
import psycopg
from psycopg import IsolationLevel

from treecaps.errors import SearchError
from treecaps.inference.embed import Embedder
from treecaps.search import graph as graphs
from treecaps.search.database import (
    Connection,
    Near,
    State,
    connect,
    find_near,
    has_tables,
    read_state,
    telling,
)
from treecaps.search.fingerprint import load_embedder
from treecaps.search.matches import AnyIndex, Match, Row, Vectors, check_made_by
from treecaps.search.place import Address

_SECONDS = 60
"""How long a search may take."""

_Found = TypeVar("_Found")


class SharedIndex(AnyIndex):
    """An index in a database as it is now. Several threads may search it.

    If it is of several folders, ``folder`` is the one that all are in, and paths go from there.

    Args:
        address: The database.
        connection: A connection to it.
        state: What it says of itself.
        embedder: What made the vectors, and makes those of queries.
    """

    def __init__(
        self, address: Address, connection: Connection, state: State, embedder: Embedder
    ) -> None:
        self._connection = connection
        note = None
        if state.vectors > graphs.FROM and not state.graph:
            folder = next(iter(state.folders.values()))
            note = f"it has no graph yet; make it: treecaps index {folder} --out {address}"
        super().__init__({**state.about, "folder": _common(state)}, embedder, note)
        self._address = address
        self._state = state
        self._lock = Lock()

    @classmethod
    def open(cls, address: Address, embedder: Embedder | None = None) -> "SharedIndex":
        """Open an index, or raise ``SearchError``.

        Args:
            address: The database.
            embedder: The model that made it, if it is loaded already.
        """
        connection = _connect(address)
        try:
            with telling(address, "read"), connection.transaction():
                state = _read(address, connection)
            embedder = embedder or load_embedder(state.about["model"], address)
            check_made_by({**state.about, "folder": _common(state)}, embedder, address)
        except BaseException:
            connection.close()
            raise
        return cls(address, connection, state, embedder)

    def __del__(self) -> None:
        self._connection.close()

    def __len__(self) -> int:
        return self._state.vectors

    @property
    def files(self) -> int:
        """How many files it knew when it was last looked at."""
        return self._state.files

    @property
    def width(self) -> int:
        """How many numbers each vector has; 0 if there are none."""
        if not self._state.width:
            self.refresh()
        return self._state.width

    def refresh(self) -> None:
        """Find out what it holds now, or raise ``SearchError``."""
        self._ask(lambda connection: None)

    def search_exactly(self, vectors: Vectors, top: int) -> list[list[Match]]:
        """Return what ``search_many`` does, by comparing with every vector of the index."""
        return [self._best_of(vector, top, exact=True) for vector in vectors]

    def _search(self, vectors: Vectors, top: int) -> list[list[Match]]:
        return [self._best_of(vector, top) for vector in vectors]

    def _best_of(self, vector: Vectors, top: int, *, exact: bool = False) -> list[Match]:
        rows, near = self._near(vector, top, exact=exact)
        return self._best(rows, near @ vector, top)

    def _near(
        self, vector: Vectors, count: int, *, exact: bool = False
    ) -> tuple[list[Row], Vectors]:
        def ask(connection: Connection) -> tuple[list[Near], dict[int, list[str]]]:
            found: list[Near] = []
            graph = self._state.graph and count <= graphs.MOST and not exact
            if graph:
                found = find_near(connection, vector, count, graph=True)
            if len(found) < min(count, self._state.vectors):  # some may be out of reach
                found = find_near(connection, vector, count, graph=False)
            return found, self._paths(connection, found)

        found, paths = self._ask(ask)
        rows = [Row(paths[one.content], one.language, one.span) for one in found]
        return rows, np.array([one.vector for one in found]).reshape(len(found), len(vector))

    def _paths(self, connection: Connection, found: list[Near]) -> dict[int, list[str]]:
        """Return the files that have the contents of what was found, from the folder on."""
        query = "SELECT content, folder, path FROM treecaps.files WHERE content = ANY(%s)"
        contents = list({one.content for one in found})
        paths = defaultdict(set)
        for content, number, path in connection.execute(query, [contents]):
            place = os.path.join(self._state.folders[number], os.fsdecode(path))
            paths[content].add(os.path.relpath(place, self.folder))
        return {content: sorted(some) for content, some in paths.items()}

    def _folders_of(self, path: str) -> list[tuple[int, str]]:
        """Return the folders that a match may be from, with the rest of its path."""
        place = os.path.join(self.folder, path)
        return [
            (number, os.path.relpath(place, folder))
            for number, folder in self._state.folders.items()
            if Path(place).is_relative_to(folder)
        ]

    def folder_of(self, path: str) -> Path:
        """Return the indexed folder that a match is from."""
        numbers = [number for number, _ in self._folders_of(path)]
        return Path(self._state.folders[numbers[0]]) if numbers else self.folder

    def _key_of(self, path: str) -> str | None:
        query = """
            SELECT key FROM treecaps.files JOIN treecaps.contents ON contents.id = files.content
            WHERE folder = %s AND path = %s
        """

        def ask(connection: Connection) -> str | None:
            for number, rest in self._folders_of(path):
                if row := connection.execute(query, [number, os.fsencode(rest)]).fetchone():
                    return str(row[0])
            return None

        return self._ask(ask)

    def _ask(self, ask: Callable[[Connection], _Found]) -> _Found:
        """Ask for something of one state; a second time if the connection was lost meanwhile."""
        with self._lock:
            for again in (False, True):
                with telling(self._address, "read"):
                    try:
                        return self._ask_once(ask)
                    except (psycopg.OperationalError, psycopg.InterfaceError):
                        if again or not self._connection.closed:
                            raise
                self._connection = _connect(self._address)
            raise AssertionError("the second time returns or raises")

    def _ask_once(self, ask: Callable[[Connection], _Found]) -> _Found:
        with self._connection.transaction():
            state = _read(self._address, self._connection)
            made_by = {**state.about, "folder": _common(state)}
            if state.about != self._state.about:
                check_made_by(made_by, self.embedder, self._address)
            self._state, self.folder = state, Path(made_by["folder"])
            return ask(self._connection)


def _connect(address: Address) -> Connection:
    connection = connect(address)
    connection.read_only = True
    connection.isolation_level = IsolationLevel.REPEATABLE_READ  # what is read is of one state
    with telling(address, "read"):
        connection.execute(f"SET statement_timeout = '{_SECONDS}s'")
    return connection


def _read(address: Address, connection: Connection) -> State:
    if not has_tables(connection):
        raise SearchError(
            f"there is no index {address}; make one: treecaps index DIR --out {address}"
        )
    state = read_state(address, connection)
    if not state.folders:
        raise SearchError(
            f"{address} was never finished; go on with: treecaps index DIR --out {address}"
        )
    return state


def _common(state: State) -> str:
    """Return the folder that all folders of an index are in, or the only one."""
    return os.path.commonpath(list(state.folders.values()))
