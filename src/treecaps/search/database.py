"""A connection to an index in PostgreSQL: its tables, what it says of itself, and what goes wrong.

The tables are in a schema of their own, ``treecaps``. A database holds one index, of as many
folders as there are. pgvector has the type of the vectors, 16 bits a number as in a file, and the
graph of near ones (HNSW).
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from treecaps.errors import SearchError, UsageError
from treecaps.search.place import Address
from treecaps.search.store import Span

FORMAT = 1
CANDIDATES = 4
"""How many times as many as wanted the graph is asked for."""
GRAPH = "functions_graph"
"""The name of the graph, in the schema."""

Connection = psycopg.Connection[tuple[Any, ...]]

_CREATE = """
CREATE TABLE treecaps.about (value text NOT NULL);
CREATE TABLE treecaps.folders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, folder bytea NOT NULL UNIQUE,
    files bigint NOT NULL, vectors bigint NOT NULL
);
CREATE TABLE treecaps.contents (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
    language text NOT NULL
);
CREATE TABLE treecaps.functions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    content bigint NOT NULL REFERENCES treecaps.contents ON DELETE CASCADE,
    name text, line integer NOT NULL, last_line integer NOT NULL, vector halfvec NOT NULL
);
CREATE TABLE treecaps.files (
    folder bigint NOT NULL REFERENCES treecaps.folders, path bytea NOT NULL, stamp text NOT NULL,
    content bigint NOT NULL REFERENCES treecaps.contents, PRIMARY KEY (folder, path)
);
CREATE INDEX functions_content ON treecaps.functions (content);
CREATE INDEX files_content ON treecaps.files (content);
"""
_DEFAULTS = {"connect_timeout": "10", "tcp_user_timeout": "30000", "application_name": "treecaps"}
_LEAST_VERSION = (0, 8)
_EXPANSION_SEARCH = 128


@dataclass(frozen=True)
class State:
    """What an index in a database says of itself.

    Args:
        about: What made it.
        folders: The folders that it is of, by their numbers.
        files: How many files these have.
        vectors: How many functions or files can be found.
        width: How many numbers each vector has; 0 if there are none.
        graph: Whether it has a graph of near vectors.
    """

    about: dict[str, Any]
    folders: dict[int, str]
    files: int
    vectors: int
    width: int
    graph: bool


@dataclass(frozen=True)
class Near:
    """A function or file that is near to a vector, and how it is kept."""

    id: int
    content: int
    language: str
    span: Span
    vector: NDArray[np.float32]


@contextmanager
def telling(address: Address, what: str) -> Iterator[None]:
    """Say in words for people what the database complains about.

    Args:
        address: Where it is.
        what: What is done with it: ``read`` or ``write``.
    """
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise SearchError(
            f"no rights to {what} {address}: {_spell(error)}; ask for the role that may {what} it"
        ) from None
    except errors.LockNotAvailable:
        raise SearchError(f"another treecaps keeps {address} busy; try again later") from None
    except errors.QueryCanceled:
        raise SearchError(f"{address} took too long to answer; try again later") from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        code = getattr(error, "sqlstate", None) or ""
        if code[:2] == "53":  # no room, no memory, too many connections
            raise SearchError(
                f"cannot {what} {address}: {_spell(error)}; the index is as it was"
            ) from None
        raise SearchError(
            f"the connection to {address} was lost: the index is as it was; try again, and what is"
            " done already is not done again"
        ) from None
    except psycopg.Error as error:
        raise SearchError(f"cannot {what} {address}: {_spell(error)}") from None


def _spell(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).partition("\n")[0]


def connect(address: Address) -> Connection:
    """Connect to a database that can hold an index, or raise ``SearchError``."""
    try:
        given = conninfo_to_dict(address.secret)
        left = {name: value for name, value in _DEFAULTS.items() if name not in given}
        connection = psycopg.connect(make_conninfo(address.secret, **left), autocommit=True)
    except psycopg.ProgrammingError:  # its message may hold a part of a password
        raise UsageError(
            "the address of the database cannot be read:"
            " it is postgresql://USER@HOST:PORT/NAME?OPTION=VALUE"
        ) from None
    except psycopg.OperationalError as error:
        raise SearchError(f"cannot connect to {address}: {_spell_refusal(error)}") from None
    try:
        with telling(address, "read"):
            connection.prepare_threshold = None  # poolers in between may not know statements
            _check_extension(address, connection)
            connection.execute(f"SET hnsw.ef_search = {_EXPANSION_SEARCH}")
            connection.execute("SET hnsw.iterative_scan = relaxed_order")
    except BaseException:
        connection.close()
        raise
    return connection


def _spell_refusal(error: psycopg.OperationalError) -> str:
    said = str(error).strip().splitlines() or [""]
    _, fatal, reason = said[0].partition("FATAL: ")
    if fatal:
        return f"{reason.strip()}; name another user or database, or put the password in ~/.pgpass"
    reason = said[0].rpartition(": ")[2] or "no answer"
    return (
        f"nobody answers ({reason[:1].lower()}{reason[1:]}); start the database, or name another"
        " address"
    )


def _check_extension(address: Address, connection: Connection) -> None:
    query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    row = connection.execute(query).fetchone()
    if not row:
        raise SearchError(
            f"{address} has no pgvector extension; install it, and add it as the owner of the"
            " database: CREATE EXTENSION vector"
        )
    if tuple(map(int, row[0].split(".")[:2])) < _LEAST_VERSION:
        raise SearchError(
            f"{address} has pgvector {row[0]}, and 0.8 or newer is needed; install it, and:"
            " ALTER EXTENSION vector UPDATE"
        )


def has_tables(connection: Connection) -> bool:
    """Whether there is an index."""
    found = connection.execute("SELECT to_regclass('treecaps.about') IS NOT NULL").fetchone()
    return bool(found and found[0])


def create_tables(connection: Connection, about: dict[str, Any]) -> None:
    """Begin an index; the schema may be there."""
    there = connection.execute("SELECT to_regnamespace('treecaps') IS NOT NULL").fetchone()
    if not (there and there[0]):
        connection.execute("CREATE SCHEMA treecaps")
    connection.execute(_CREATE)
    connection.execute("INSERT INTO treecaps.about VALUES (%s)", [to_text(about)])


def to_text(about: dict[str, Any]) -> str:
    """Return what is kept of what an index says of itself; each folder is by itself."""
    kept = {name: value for name, value in about.items() if name != "folder"}
    return json.dumps({**kept, "format": FORMAT}, sort_keys=True)


def read_about(address: Address, connection: Connection) -> dict[str, Any]:
    """Return what an index says of itself, or raise ``SearchError`` if it is none."""
    row = connection.execute("SELECT value FROM treecaps.about").fetchone()
    try:
        about: dict[str, Any] = json.loads(row[0]) if row else {}
        number = about["format"]
        kinds = [type(about[name]) for name in ("treecaps", "model", "fingerprint", "functions")]
    except (ValueError, TypeError, KeyError, RecursionError):
        number, kinds = FORMAT, []
    if number != FORMAT:
        raise SearchError(
            f"{address} was written by another version of treecaps; update yours, or index the"
            " folders again into another database"
        )
    if kinds != [str, str, str, bool]:
        raise SearchError(f"{address} is damaged; drop its schema treecaps, and index again")
    return about


def read_state(address: Address, connection: Connection) -> State:
    """Return what an index says of itself and of its folders."""
    about = read_about(address, connection)
    rows = connection.execute("SELECT id, folder, files, vectors FROM treecaps.folders ORDER BY id")
    folders, files, vectors = {}, 0, 0
    for number, folder, some_files, some_vectors in rows:
        folders[number] = os.fsdecode(folder)
        files += some_files
        vectors += some_vectors
    return State(about, folders, files, vectors, _read_width(connection), has_graph(connection))


def _read_width(connection: Connection) -> int:
    query = "SELECT vector_dims(vector) FROM treecaps.functions LIMIT 1"
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def has_graph(connection: Connection) -> bool:
    """Whether there is a graph of near vectors."""
    query = f"SELECT to_regclass('treecaps.{GRAPH}') IS NOT NULL"
    row = connection.execute(query).fetchone()
    return bool(row and row[0])


def find_near(
    connection: Connection, vector: NDArray[np.float32], count: int, *, graph: bool
) -> list[Near]:
    """Return at least so many of what is nearest to a vector, and what may be as near as the last.

    The database compares with the vector as rounded to 16 bits; the order is left to the caller.

    Args:
        connection: The database.
        vector: ``[E]``.
        count: How many are wanted.
        graph: Whether the graph finds them, which may miss some; otherwise all are compared.
    """
    rounded = vector.astype(np.float16)
    width, used = len(vector), "EXISTS (SELECT FROM treecaps.files WHERE content = one.content)"
    columns = "one.id, content, name, line, last_line, vector, language"
    rest = "JOIN treecaps.contents ON contents.id = one.content"
    # Vectors have length 1: so much may the order of two be another because of the rounding.
    margin = 2.02 * float(np.linalg.norm(vector - rounded)) + 2e-5
    if graph:  # written as the graph is, or it would not be used
        query = f"""
            SELECT {columns} FROM (
                SELECT * FROM treecaps.functions
                ORDER BY vector::halfvec({width}) <#> %(vector)s::halfvec({width}) LIMIT %(count)s
            ) one {rest} WHERE {used}
        """
        count *= CANDIDATES
    else:
        query = f"""
            WITH far AS MATERIALIZED (
                SELECT id, vector <#> %(vector)s::halfvec AS distance
                FROM treecaps.functions one WHERE {used}
            ) SELECT {columns} FROM far JOIN treecaps.functions one USING (id) {rest}
            WHERE distance <= %(margin)s + (
                SELECT max(distance) FROM (
                    SELECT distance FROM far ORDER BY distance LIMIT %(count)s
                ) best
            )
        """
    text = f"[{','.join(map(repr, rounded.tolist()))}]"
    values = {"vector": text, "count": count, "margin": margin}
    with connection.cursor(binary=True) as cursor:
        return [
            Near(id_, content, language, Span(name, line, last_line), from_bytes(found))
            for id_, content, name, line, last_line, found, language in cursor.execute(
                query, values
            )
        ]


def to_bytes(vector: NDArray[np.floating[Any]]) -> bytes:
    """Return a vector as pgvector sends and takes its type ``halfvec``."""
    return len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f2").tobytes()


def from_bytes(found: bytes) -> NDArray[np.float32]:
    """Return what ``to_bytes`` was given, to 16 bits."""
    return np.frombuffer(found, ">f2", offset=4).astype(np.float32)
