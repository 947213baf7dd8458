"""An index in a database, written: PostgreSQL with pgvector.

Several may write at once, each a folder. What stands between them are locks of the session, which
end with it: one for each folder, and one that all writers share. Contents that no file has are
removed only by who writes alone, because others may be about to name them.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from psycopg import errors

from treecaps.chunks import chunked
from treecaps.errors import SearchError
from treecaps.hashing import hash_64
from treecaps.search import graph as graphs
from treecaps.search.database import (
    GRAPH,
    Connection,
    connect,
    create_tables,
    find_near,
    has_tables,
    read_about,
    read_state,
    telling,
    to_bytes,
    to_text,
)
from treecaps.search.place import Address
from treecaps.search.store import Content, File, GraphUpdate, Store

_ROWS = 512  # contents that are committed together, so that a kill loses little
_WRITING, _CREATING = 0x54434958, 0x54434959  # the locks: of all writers, and of who begins
_LOCK_PATIENCE = "1s"  # the session of a killed indexer ends when the database notices
_SAMPLED, _NEAREST = 20, 10


class DatabaseStore(Store):
    """The index of a folder in a database. Use ``open_to_write``."""

    place: Address

    def __init__(
        self, address: Address, connection: Connection, about: dict[str, Any], folder: str
    ) -> None:
        super().__init__(address, {**about, "folder": folder})
        self._connection = connection
        self._folder = os.fsencode(folder)

    def files(self) -> dict[str, File]:
        """Return the files of the folder by their paths, in order."""
        query = """
            SELECT path, stamp, key FROM treecaps.files JOIN treecaps.contents
            ON contents.id = files.content
            WHERE folder = (SELECT id FROM treecaps.folders WHERE folder = %s) ORDER BY path
        """
        with telling(self.place, "read"):
            rows = self._connection.execute(query, [self._folder])
            return {os.fsdecode(path): File(stamp, key) for path, stamp, key in rows}

    def keys(self) -> set[str]:
        """Return the keys of all contents, whether files have them or not."""
        with telling(self.place, "read"):
            return {key for (key,) in self._connection.execute("SELECT key FROM treecaps.contents")}

    def count(self) -> int:
        """Return how many vectors files of the folder have, those with the same contents each."""
        query = "SELECT vectors FROM treecaps.folders WHERE folder = %s"
        with telling(self.place, "read"):
            row = self._connection.execute(query, [self._folder]).fetchone()
        return int(row[0]) if row else 0

    def add(self, contents: Iterable[Content]) -> None:
        """Keep contents for files that ``finish`` will name; some at a time, as they come."""
        for some in chunked(contents, _ROWS):
            with telling(self.place, "write"), self._connection.transaction():
                self._insert(some)

    def _insert(self, contents: list[Content]) -> None:
        # Somebody else may add the same at the same time: in one order, nobody waits for ever.
        contents = sorted(contents, key=lambda one: one.key)
        rows = self._connection.execute(
            "INSERT INTO treecaps.contents (key, language)"
            " SELECT * FROM unnest(%s::text[], %s::text[])"
            " ON CONFLICT (key) DO NOTHING RETURNING key, id",
            [[one.key for one in contents], [one.language for one in contents]],
        )
        numbers: dict[str, int] = dict(rows.fetchall())
        copy = (
            "COPY treecaps.functions (content, name, line, last_line, vector)"
            " FROM STDIN (FORMAT BINARY)"
        )
        with self._connection.cursor().copy(copy) as writing:
            writing.set_types(("int8", "text", "int4", "int4", "bytea"))
            for one in contents:
                if number := numbers.get(one.key):
                    for span, vector in zip(one.spans, one.vectors, strict=True):
                        writing.write_row((number, *span, to_bytes(vector)))

    def finish(self, files: Mapping[str, File], about: dict[str, Any]) -> None:
        """Make these the files of the folder, all at once, and forget the contents of others."""
        before = self.files()
        new = {path: file for path, file in files.items() if before.get(path) != file}
        old = [os.fsencode(path) for path, file in before.items() if files.get(path) != file]
        with telling(self.place, "write"), self._connection.transaction():
            execute = self._connection.execute
            row = execute(
                "INSERT INTO treecaps.folders (folder, files, vectors) VALUES (%s, 0, 0)"
                " ON CONFLICT (folder) DO UPDATE SET files = folders.files RETURNING id",
                [self._folder],
            ).fetchone()
            number = row[0] if row else None
            execute(
                "DELETE FROM treecaps.files WHERE folder = %s AND path = ANY(%s)", [number, old]
            )
            named = execute(
                "INSERT INTO treecaps.files SELECT %s, path, stamp, id"
                " FROM unnest(%s::bytea[], %s::text[], %s::text[]) AS new (path, stamp, key)"
                " JOIN treecaps.contents USING (key)",
                [
                    number,
                    list(map(os.fsencode, new)),
                    [file.stamp for file in new.values()],
                    [file.key for file in new.values()],
                ],
            )
            if named.rowcount != len(new):
                raise SearchError(f"contents have gone from {self.place} meanwhile; index again")
            self._forget_unused()
            execute(
                "UPDATE treecaps.folders SET files = %s, vectors = (SELECT count(*)"
                " FROM treecaps.functions JOIN treecaps.files USING (content)"
                " WHERE folder = folders.id) WHERE id = %s",
                [len(files), number],
            )
            if to_text(about) != to_text(self.about):
                execute("UPDATE treecaps.about SET value = %s", [to_text(about)])
        self.about = about

    def _forget_unused(self) -> None:
        query = "SELECT pg_try_advisory_xact_lock(%s)"
        row = self._connection.execute(query, [_WRITING]).fetchone()
        if row and row[0]:  # nobody else writes
            self._connection.execute(
                "DELETE FROM treecaps.contents WHERE NOT EXISTS"
                " (SELECT FROM treecaps.files WHERE content = contents.id)"
            )

    def update_graph(
        self, files: Mapping[str, File], threads: int, step: Callable[[float], None] | None
    ) -> GraphUpdate:
        """See to it that a large index has a graph, which the database keeps up to date."""
        with telling(self.place, "write"):
            state = read_state(self.place, self._connection)
            if state.vectors <= graphs.FROM:
                if state.graph:
                    self._connection.execute(f"DROP INDEX IF EXISTS treecaps.{GRAPH}")
                return GraphUpdate()
            if step:
                step(0.0)
            if not state.graph:
                with suppress(errors.DuplicateTable):  # somebody else was faster
                    # In one go: whoever ends it, there is all of the graph or nothing.
                    self._connection.execute(
                        f"CREATE INDEX {GRAPH} ON treecaps.functions USING hnsw"
                        f" ((vector::halfvec({state.width})) halfvec_ip_ops)"
                    )
            return GraphUpdate(self._measure_recall())

    def _measure_recall(self) -> float:
        """Return the share of the ten nearest of sampled vectors, without themselves, it finds."""
        hits = wanted = 0
        query = "SELECT id, vector FROM treecaps.functions ORDER BY random() LIMIT %s"
        with self._connection.cursor() as cursor:
            sample = cursor.execute(query, [_SAMPLED]).fetchall()
        for number, text in sample:
            vector = np.array(text.strip("[]").split(","), np.float32)
            likeness = []
            for graph in (False, True):
                found = find_near(self._connection, vector, _NEAREST + 1, graph=graph)
                others = (float(one.vector @ vector) for one in found if one.id != number)
                likeness.append(sorted(others, reverse=True)[:_NEAREST])
            exact, approximate = likeness
            hits += sum(one >= exact[-1] - 1e-6 for one in approximate) if exact else 0
            wanted += len(exact)
        return round(hits / wanted, 4) if wanted else 1.0


@contextmanager
def open_to_write(address: Address, about: dict[str, Any]) -> Iterator[DatabaseStore]:
    """Open the index of a folder, or begin one, that nobody else writes meanwhile.

    Args:
        address: The database.
        about: What a new index says of itself, and its folder.
    """
    folder: str = about["folder"]
    with closing(connect(address)) as connection:
        with telling(address, "write"):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_CREATING])
                if not has_tables(connection):
                    create_tables(connection, about)
            _lock(address, connection, folder)
            known = read_about(address, connection)
        yield DatabaseStore(address, connection, known, folder)


def _lock(address: Address, connection: Connection, folder: str) -> None:
    """Take the locks that let nobody else write the folder, and nobody remove what it names."""
    number = int(np.uint64(hash_64(os.fsencode(folder))).astype(np.int64))
    connection.execute("SELECT pg_advisory_lock_shared(%s)", [_WRITING])
    connection.execute(f"SET lock_timeout = '{_LOCK_PATIENCE}'")
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", [number])
    except errors.LockNotAvailable:
        raise SearchError(
            f"another treecaps is writing {folder} into {address}; try again when it is done"
        ) from None
    connection.execute("RESET lock_timeout")


def exists(address: Address, folder: Path) -> bool:
    """Whether there is an index of a folder."""
    query = "SELECT FROM treecaps.folders WHERE folder = %s"
    with closing(connect(address)) as connection, telling(address, "read"):
        name = os.fsencode(folder.resolve())
        return has_tables(connection) and bool(connection.execute(query, [name]).fetchall())
