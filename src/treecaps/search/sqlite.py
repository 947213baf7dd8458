"""The file of an index: SQLite, so that a kill at any moment leaves the old or the new state.

An index may come from anybody. Nothing of it is believed, checksums included: whoever alters a
file can compute them again.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from treecaps.chunks import chunked
from treecaps.errors import SearchError, describe_os_error
from treecaps.files import FileLock, atomic_path, check_regular, load_json
from treecaps.hashing import digest_fields
from treecaps.search import file_graph
from treecaps.search.store import Content, File, GraphUpdate, Span, Store

FORMAT = 1
_APPLICATION = 0x54434958  # "TCIX", in the head of the file
_SCHEMA = """
CREATE TABLE about (value TEXT NOT NULL);
CREATE TABLE contents (
    key TEXT PRIMARY KEY, language TEXT NOT NULL, spans TEXT NOT NULL, size INTEGER NOT NULL,
    vectors BLOB NOT NULL, checksum TEXT NOT NULL
);
CREATE TABLE files (
    path BLOB PRIMARY KEY, stamp TEXT NOT NULL, key TEXT NOT NULL
) WITHOUT ROWID;
"""
_PATIENCE = 10.0  # seconds to wait for another process that reads or commits
_LOCK_PATIENCE = 1.0  # workers of a killed indexer hold its lock until they notice
_ROWS = 512  # that are committed together, so that a kill loses little
_MAX_BYTES = 1 << 36
_MAX_LINE = 1 << 31
_STEPS = 10_000  # of SQLite, after which it is asked whether there were too many
_LEAST_STEPS = 1_000_000  # that are allowed for a small file
_ABOUT = {"treecaps": str, "model": str, "fingerprint": str, "functions": bool, "folder": str}
_OF_MANY = bytes.fromhex("d9d505f920a163d7")  # ends the journal of a change to several databases


class FileStore(Store):
    """An open index file. Use ``open_to_read`` and ``open_to_write``."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        with _told(path, "read"):
            connection.execute("PRAGMA trusted_schema = OFF")
            _check_head(path, connection)
            # From here on, what is read is of one state.
            connection.execute("BEGIN")
            # A view or a trigger would be run when a table of its name is used.
            if _plain_schema(self._read(_TABLES)) != _own_schema():
                raise _damaged(path)
            (text,) = self._read("SELECT value FROM about").fetchone()
            super().__init__(path, _check_about(load_json(text)))

    def _read(self, query: str) -> sqlite3.Cursor:
        """Run a query that takes no more than a file of this size can need.

        In a damaged file, pages may lead to each other in circles.
        """
        size = self.path.stat().st_size
        _limit(self._connection, size, size + _LEAST_STEPS)
        return self._connection.execute(query)

    def end_reading(self) -> None:
        """Let others commit again: what comes is written."""
        self._connection.rollback()

    @property
    def finished(self) -> bool:
        """Whether it has ever been."""
        return "checksum" in self.about

    def files(self) -> dict[str, File]:
        """Return the files by their paths, in order, and check them."""
        if not self.finished:
            return {}
        with _told(self.path, "read"):
            rows = self._read("SELECT path, stamp, key FROM files ORDER BY path")
            files = dict(map(_file, rows))
            if self.about["checksum"] != _files_checksum(self.about, files):
                raise _damaged(self.path)
        return files

    def keys(self) -> set[str]:
        """Return the keys of all contents, whether files have them or not."""
        with _told(self.path, "read"):
            return {key for (key,) in self._read("SELECT key FROM contents")}

    def count(self) -> int:
        """Return how many vectors files have, those with the same contents each."""
        with _told(self.path, "read"):
            query = "SELECT total(size) FROM contents JOIN files USING (key)"
            return int(self._read(query).fetchone()[0])

    def shape(self) -> tuple[int, int]:
        """Return how many vectors the contents of files have, and how many numbers each has."""
        with _told(self.path, "read"):
            query = f"SELECT sum(size), sum(length(vectors)) FROM contents {_USED}"
            rows, size = (total or 0 for total in self._read(query).fetchone())
            _check_types((rows, size), (int, int))
            width = size // 2 // rows if rows else 0
            # There is to be an array of this shape, so the file must hold its numbers.
            if size != 2 * rows * width or not 0 <= size <= self.path.stat().st_size:
                raise _damaged(self.path)
        return rows, width

    def contents(self, shape: tuple[int, int]) -> Iterator[Content]:
        """Yield the contents of files, and check them: they have vectors of this shape in all."""
        left, width = shape
        with _told(self.path, "read"):
            room = self.path.stat().st_size
            query = f"SELECT key, language, spans, size, vectors, checksum FROM contents {_USED}"
            for row in self._read(query):
                content = _content(row, width)
                left -= len(content.spans)
                room -= len(row[2]) + len(row[4])
                if left < 0 or room < 0:  # rows may share pages
                    raise _damaged(self.path)
                yield content
            if left:
                raise _damaged(self.path)

    def add(self, contents: Iterable[Content]) -> None:
        """Keep contents for files that ``finish`` will name; some at a time, as they come."""
        _limit(self._connection)
        for rows in chunked(map(_row, contents), _ROWS):
            with _told(self.path, "write"), self._connection:
                self._connection.executemany("INSERT INTO contents VALUES (?, ?, ?, ?, ?, ?)", rows)

    def finish(self, files: Mapping[str, File], about: dict[str, Any]) -> None:
        """Make these the files of the index, all at once, and forget the contents of others."""
        about = {**about, "checksum": _files_checksum(about, files)}
        rows = [(os.fsencode(path), *file) for path, file in files.items()]
        connection = self._connection
        _limit(connection)
        with _told(self.path, "write"):
            with connection:
                connection.execute("DELETE FROM files")
                connection.executemany("INSERT INTO files VALUES (?, ?, ?)", rows)
                connection.execute("DELETE FROM contents WHERE key NOT IN (SELECT key FROM files)")
                connection.execute("UPDATE about SET value = ?", (json.dumps(about),))
            self.about = about
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            if free > pages / 2:
                with suppress(sqlite3.OperationalError):  # no room, or somebody reads: next time
                    connection.execute("VACUUM")

    def update_graph(
        self, files: Mapping[str, File], threads: int, step: Callable[[float], None] | None
    ) -> GraphUpdate:
        """See to it that a large index has a graph, a file beside it."""
        return file_graph.update_graph(self, files, threads=threads, step=step)


def _limit(connection: sqlite3.Connection, size: int = 2**31 - 1, steps: int | None = None) -> None:
    """Bound the size of values in bytes, and the steps of SQLite until the next call."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(size, 2**31 - 1))
    if steps is None:
        connection.set_progress_handler(None, 0)
        return
    ticks = iter(range(steps // _STEPS))
    connection.set_progress_handler(lambda: next(ticks, None) is None, _STEPS)


def _row(content: Content) -> tuple[str, str, str, int, bytes, str]:
    key, language, spans, vectors = content
    text = json.dumps(spans, separators=(",", ":"))
    blob = vectors.astype("<f2").tobytes()
    return key, language, text, len(spans), blob, digest_fields(key, language, text, blob)


def _content(row: tuple[Any, ...], width: int) -> Content:
    """Return what ``_row`` was given, or raise ``ValueError``."""
    _check_types(row, (str, str, str, int, bytes, str))
    key, language, text, size, blob, checksum = row
    spans = [_span(*values) for values in json.loads(text)]
    vectors = np.frombuffer(blob, "<f2")
    if (
        len(spans) != size
        or not np.isfinite(vectors).all()
        or checksum != digest_fields(key, language, text, blob)
    ):
        raise ValueError(key)
    return Content(key, language, spans, vectors.reshape(size, width))


def _span(function: Any, line: Any, last_line: Any) -> Span:
    if (
        type(line) is not int
        or type(last_line) is not int
        or not 1 <= line <= last_line <= _MAX_LINE
        or not (function is None or type(function) is str)
    ):
        raise ValueError(function)
    return Span(function, line, last_line)


def _file(row: tuple[Any, ...]) -> tuple[str, File]:
    _check_types(row, (bytes, str, str))
    path, stamp, key = row
    return os.fsdecode(path), File(stamp, key)


def _check_types(row: tuple[Any, ...], types: tuple[type, ...]) -> None:
    # The types of columns are no more than advice to SQLite.
    if tuple(map(type, row)) != types:
        raise ValueError(types)


def _check_about(about: Any) -> dict[str, Any]:
    if not (
        isinstance(about, dict)
        and all(isinstance(about.get(name), kind) for name, kind in _ABOUT.items())
        and isinstance(about.get("checksum", ""), str)
    ):
        raise ValueError(about)
    return about


_TABLES = "SELECT type, name, tbl_name, sql FROM sqlite_master"


@cache
def _own_schema() -> list[tuple[str | None, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _plain_schema(connection.execute(_TABLES))


def _plain_schema(rows: Iterable[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    """Return what there is in a database, in order and however it is laid out."""
    return sorted(
        (tuple(text and " ".join(str(text).split()) for text in row) for row in rows), key=str
    )


_USED = "WHERE key IN (SELECT key FROM files)"


@contextmanager
def open_to_read(path: Path) -> Iterator[FileStore]:
    """Open an index as it was when last finished, or raise ``SearchError``."""
    if not path.exists():
        raise SearchError(f"there is no index {path}; make one: treecaps index DIR --out {path}")
    with _connect(path) as store:
        if not store.finished:
            raise SearchError(
                f"{path} was never finished; go on with:"
                f" treecaps index {store.about['folder']} --out {path}"
            )
        yield store


@contextmanager
def open_to_write(path: Path, about: dict[str, Any]) -> Iterator[FileStore]:
    """Open an index, or begin one, that nobody else writes meanwhile.

    Args:
        path: The file.
        about: What a new index says of itself.
    """
    with closing(_lock(path)):
        if not path.exists():
            with _told(path, "write"):
                _create(path, about)
        with _connect(path) as store:
            store.end_reading()
            yield store


def _create(path: Path, about: dict[str, Any]) -> None:
    """Make a file that is an index from the moment it has its name."""
    with (
        atomic_path(path, alone=True) as building,
        closing(sqlite3.connect(building)) as connection,
    ):
        connection.executescript(
            f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT}; {_SCHEMA}"
        )
        with connection:
            connection.execute("INSERT INTO about VALUES (?)", (json.dumps(about),))


@contextmanager
def _connect(path: Path) -> Iterator[FileStore]:
    # Written to even by readers, if a killed process left a transaction to take back.
    address = f"{path.absolute().as_uri()}?mode=rw"
    with _told(path, "read"):
        _check_files(path)
        connection = sqlite3.connect(address, timeout=_PATIENCE, uri=True)
    with closing(connection):
        yield FileStore(path, connection)


def _check_files(path: Path) -> None:
    """Refuse what SQLite would open and should not."""
    # By its name: SQLite would lose its locks on a file that is opened and closed here.
    check_regular(path.stat(), _MAX_BYTES)
    real = path.resolve()
    for ending in ("-journal", "-wal"):
        beside = real.with_name(f"{real.name}{ending}")
        with suppress(FileNotFoundError):
            status = beside.stat()
            check_regular(status, _MAX_BYTES)
            with open(beside, "rb") as file:
                file.seek(max(status.st_size - len(_OF_MANY), 0))
                # SQLite would remove the file that such a journal names, whatever it is.
                if file.read() == _OF_MANY:
                    raise SearchError(f"{beside} is not the journal of an index; remove it")


def _check_head(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise _no_index(path)
    if number > FORMAT:
        raise SearchError(f"{path} was written by a newer treecaps: update yours")
    if number < FORMAT:
        raise SearchError(
            f"{path} was written by an older treecaps; remove it and index the folder again"
        )


def _lock(path: Path) -> FileLock:
    """Take the lock that lets nobody else write.

    It is a file beside: SQLite would lose its own locks when its file is closed here.
    """
    with _told(path, "write"):
        try:
            return FileLock(path.with_name(f"{path.name}.lock"), _LOCK_PATIENCE)
        except BlockingIOError:
            raise SearchError(
                f"another treecaps is writing {path}; try again when it is done"
            ) from None


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    """Say in words for people what SQLite or the system complain about."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise _no_index(path) from None
        if code == sqlite3.SQLITE_BUSY:
            raise SearchError(f"another process keeps {path} busy; try again later") from None
        if code in _OF_THE_SYSTEM:
            raise SearchError(
                f"cannot {what} {path}: {error}; the index is as it was, make room or choose"
                " another place"
            ) from None
        raise _damaged(path) from None
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise _damaged(path) from None
    except OSError as error:
        raise SearchError(
            f"cannot {what} {path}: {describe_os_error(error)}; choose another place for the index"
        ) from None


_OF_THE_SYSTEM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)


def _no_index(path: Path) -> SearchError:
    return SearchError(f"{path} is no index; make one: treecaps index DIR --out INDEX")


def _damaged(path: Path) -> SearchError:
    return SearchError(
        f"{path} is damaged; remove it and make it again: treecaps index DIR --out {path}"
    )


def _files_checksum(about: Mapping[str, Any], files: Mapping[str, File]) -> str:
    others = {name: value for name, value in about.items() if name != "checksum"}
    words = (word for path in sorted(files) for word in (os.fsencode(path), *files[path]))
    return digest_fields(json.dumps(others, sort_keys=True), *words)
