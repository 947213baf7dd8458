"""The file of an index: SQLite, so that a kill at any moment leaves the old or the new state.

Vectors belong to contents, not to files: a file that is renamed or copied has them already. New
contents are committed some at a time, and nobody sees them before one last transaction says
which files there are now. So readers never see half an update, and what a killed run has done
is not done again.
"""

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from treecaps.errors import SearchError, tell

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

Vectors = NDArray[np.float32]


class Span(NamedTuple):
    """A function, or a whole file.

    Args:
        function: Its name; ``None`` for a file.
        line: Its first line, from 1.
        last_line: Its last line.
    """

    function: str | None
    line: int
    last_line: int


class Content(NamedTuple):
    """What the index knows of the contents of a file.

    Args:
        key: A digest of text and language.
        language: Its language.
        spans: What has a vector.
        vectors: ``[len(spans), E]``.
    """

    key: str
    language: str
    spans: list[Span]
    vectors: Vectors


class File(NamedTuple):
    """A file that was indexed.

    Args:
        stamp: Size and times, by which it counts as unchanged; empty if only contents can tell.
        key: The key of its contents.
    """

    stamp: str
    key: str


class Store:
    """An open index file. Use ``open_to_read`` and ``open_to_write``."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        with _told(path, "read"):
            _check_head(path, connection)
            # From here on, what is read is of one state.
            connection.execute("BEGIN")
            (text,) = connection.execute("SELECT value FROM about").fetchone()
            self.about: dict[str, Any] = dict(json.loads(text))

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
            rows = self._connection.execute("SELECT path, stamp, key FROM files ORDER BY path")
            files = {os.fsdecode(path): File(stamp, key) for path, stamp, key in rows}
        if self.about["checksum"] != _files_checksum(self.about, files):
            raise _damaged(self.path)
        return files

    def keys(self) -> set[str]:
        """Return the keys of all contents, whether files have them or not."""
        with _told(self.path, "read"):
            return {key for (key,) in self._connection.execute("SELECT key FROM contents")}

    def count(self, *, copies: bool = False) -> int:
        """Return how many vectors the contents of files have; those of copies once or each."""
        which = "JOIN files USING (key)" if copies else _USED
        with _told(self.path, "read"):
            query = f"SELECT total(size) FROM contents {which}"
            return int(self._connection.execute(query).fetchone()[0])

    def width(self) -> int:
        """Return how many numbers a vector has; 0 if there is none."""
        with _told(self.path, "read"):
            query = "SELECT length(vectors) / size FROM contents WHERE size LIMIT 1"
            row = self._connection.execute(query).fetchone()
            return int(row[0]) // 2 if row else 0

    def contents(self) -> Iterator[Content]:
        """Yield the contents of files, and check them."""
        width = self.width()
        with _told(self.path, "read"):
            rows = self._connection.execute(
                f"SELECT key, language, spans, vectors, checksum FROM contents {_USED}"
            )
            for key, language, text, blob, checksum in rows:
                if checksum != _checksum(key, language, text, blob):
                    raise _damaged(self.path)
                spans = [Span(*values) for values in json.loads(text)]
                vectors = np.frombuffer(blob, "<f2").astype(np.float32)
                yield Content(key, language, spans, vectors.reshape(len(spans), width))

    def add(self, contents: Iterable[Content]) -> None:
        """Keep contents for files that ``finish`` will name; some at a time, as they come."""
        remaining = map(_row, contents)
        while rows := list(islice(remaining, _ROWS)):
            with _told(self.path, "write"), self._connection:
                self._connection.executemany("INSERT INTO contents VALUES (?, ?, ?, ?, ?, ?)", rows)

    def finish(self, files: Mapping[str, File], about: dict[str, Any]) -> None:
        """Make these the files of the index, all at once, and forget the contents of others."""
        about = {**about, "checksum": _files_checksum(about, files)}
        rows = [(os.fsencode(path), *file) for path, file in files.items()]
        connection = self._connection
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


def _row(content: Content) -> tuple[str, str, str, int, bytes, str]:
    key, language, spans, vectors = content
    text = json.dumps(spans, separators=(",", ":"))
    blob = vectors.astype("<f2").tobytes()
    return key, language, text, len(spans), blob, _checksum(key, language, text, blob)


_USED = "WHERE key IN (SELECT key FROM files)"


@contextmanager
def open_to_read(path: Path) -> Iterator[Store]:
    """Open an index as it was when last finished, or raise ``SearchError``."""
    if not path.exists():
        raise SearchError(f"there is no index {path}; make one: treecaps index DIR --out {path}")
    with _connect(path) as store:
        if not store.finished:
            raise SearchError(
                f"{path} was never finished; go on with:"
                f" treecaps index {store.about.get('folder', 'DIR')} --out {path}"
            )
        yield store


@contextmanager
def open_to_write(path: Path, about: dict[str, Any]) -> Iterator[Store]:
    """Open an index, or begin one, that nobody else writes meanwhile.

    Args:
        path: The file.
        about: What a new index says of itself.
    """
    with _lock(path):
        if not path.exists():
            with _told(path, "write"):
                _create(path, about)
        with _connect(path) as store:
            store.end_reading()
            yield store


def _create(path: Path, about: dict[str, Any]) -> None:
    """Make a file that is an index from the moment it has its name."""
    building = path.with_name(f"{path.name}.building")
    building.unlink(missing_ok=True)
    with closing(sqlite3.connect(building)) as connection:
        connection.executescript(
            f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT}; {_SCHEMA}"
        )
        with connection:
            connection.execute("INSERT INTO about VALUES (?)", (json.dumps(about),))
    building.replace(path)


@contextmanager
def _connect(path: Path) -> Iterator[Store]:
    # Written to even by readers, if a killed process left a transaction to take back.
    address = f"{path.absolute().as_uri()}?mode=rw"
    with _told(path, "read"):
        connection = sqlite3.connect(address, timeout=_PATIENCE, uri=True)
    with closing(connection):
        yield Store(path, connection)


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


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Let nobody else write.

    The lock is a file beside: SQLite would lose its own locks when its file is closed here.
    """
    name = path.with_name(f"{path.name}.lock")
    with _told(path, "write"):
        descriptor = _wait_for(name, path)
    try:
        yield
    finally:
        name.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # workers have it open too
        os.close(descriptor)


def _wait_for(name: Path, path: Path) -> int:
    until = time.monotonic() + _LOCK_PATIENCE
    while True:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The one before may have removed the name after this was opened.
            if _is(name, descriptor):
                return descriptor
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                raise SearchError(
                    f"another treecaps is writing {path}; try again when it is done"
                ) from None
            time.sleep(0.05)
        os.close(descriptor)


def _is(name: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(name.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


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
    except (ValueError, TypeError):
        raise _damaged(path) from None
    except OSError as error:
        raise SearchError(
            f"cannot {what} {path}: {tell(error)}; choose another place for the index"
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


def _checksum(*values: str | bytes) -> str:
    digest = xxhash.xxh3_128()
    for value in values:
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def content_key(text: bytes, language: str) -> str:
    """Return the key of a program's contents."""
    return _checksum(language, text)


def _files_checksum(about: Mapping[str, Any], files: Mapping[str, File]) -> str:
    others = {name: value for name, value in about.items() if name != "checksum"}
    words = (word for path in sorted(files) for word in (os.fsencode(path), *files[path]))
    return _checksum(json.dumps(others, sort_keys=True), *words)
