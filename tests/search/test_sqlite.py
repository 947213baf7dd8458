"""Indexes from anybody: whatever is in them is refused, soon and in plain words."""

import json
import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.limits import error_of, in_place_of_a_file
from tests.search.examples import PROGRAMS, copy_programs, open_index, update
from treecaps.errors import SearchError
from treecaps.hashing import digest_fields
from treecaps.search import sqlite, store

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SIZE = 4096  # of a page
ABOUT = {"treecaps": "", "model": "", "fingerprint": "", "functions": True, "folder": ""}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("search") / "index"
    update(PROGRAMS / "gcd", path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, whole: bytes) -> Path:
    path = tmp_path / "index"
    path.write_bytes(whole)
    return path


def refuse(path: Path) -> str:
    """Return the message with which an index is refused."""
    error = error_of(lambda: open_index(path))
    assert isinstance(error, SearchError)
    return str(error)


def alter(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def rewrite_about(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what an index says of itself, and its checksum too."""
    with closing(sqlite3.connect(path)) as connection, connection:
        about = json.loads(connection.execute("SELECT value FROM about").fetchone()[0])
        rows = connection.execute("SELECT path, stamp, key FROM files")
        files = {os.fsdecode(name): store.File(stamp, key) for name, stamp, key in rows}
        changed = change(about)
        if isinstance(changed, dict) and isinstance(changed.get("checksum"), str):
            changed["checksum"] = sqlite._files_checksum(changed, files)
        connection.execute("UPDATE about SET value = ?", (json.dumps(changed),))


def rewrite_contents(path: Path, **changes: Callable[[Any], Any]) -> None:
    """Change the columns of one of the contents, and its checksum too."""
    names = ("key", "language", "spans", "size", "vectors", "checksum")
    with closing(sqlite3.connect(path)) as connection, connection:
        query = f"SELECT {', '.join(names)} FROM contents WHERE size > 1 LIMIT 1"
        row = dict(zip(names, connection.execute(query).fetchone(), strict=True))
        key = row["key"]
        row |= {name: change(row[name]) for name, change in changes.items()}
        words = [row[name] for name in ("key", "language", "spans", "vectors")]
        if all(isinstance(word, str | bytes) for word in words):
            row["checksum"] = digest_fields(*words)
        values = ", ".join(f"{name} = :{name}" for name in names)
        connection.execute(f"UPDATE contents SET {values} WHERE key = :old", {**row, "old": key})


def test_what_is_only_written_anew_is_read(path: Path) -> None:
    expected = open_index(path)
    rewrite_about(path, lambda about: about)
    rewrite_contents(path)
    index = open_index(path)
    assert index.rows == expected.rows
    np.testing.assert_array_equal(index.vectors, expected.vectors)


@in_place_of_a_file
def test_anything_but_a_file_of_bounded_size_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "index"
    make(path)
    for use in (lambda: open_index(path), lambda: update(PROGRAMS / "gcd", path)):
        error = error_of(use)
        assert isinstance(error, SearchError)
        assert f"cannot read {path}: {words}" in str(error)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
@pytest.mark.parametrize("linked", [False, True])
def test_files_beside_it_are_looked_at_too(path: Path, ending: str, linked: bool) -> None:
    os.mkfifo(f"{path}{ending}")
    name = path
    if linked:
        name = path.parent / "other" / "link"
        name.parent.mkdir()
        name.symlink_to(path)
    assert "is a FIFO, not a file" in refuse(name)


def test_a_fifo_for_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    os.mkfifo(tmp_path / "index.lock")
    assert update(folder, path).files == 13


def test_no_journal_makes_sqlite_remove_other_files(path: Path) -> None:
    precious = path.with_name("precious")
    precious.write_text("not part of the index")
    # The journal of a change to several databases ends in the name of another file, which is
    # removed when the change is taken back.
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(precious)
    page, pages = path.read_bytes()[:SIZE], path.stat().st_size // SIZE
    head = magic + struct.pack(">5I", 1, 0, pages, 512, SIZE)
    record = struct.pack(">I", 1) + page + struct.pack(">I", sum(page[SIZE - 200 : 0 : -200]))
    last = struct.pack(">I", 0x40000000 // SIZE + 1) + name
    last += struct.pack(">2I", len(name), sum(name)) + magic
    Path(f"{path}-journal").write_bytes(head.ljust(512, b"\0") + record + last)
    assert "index-journal is not the journal of an index; remove it" in refuse(path)
    assert precious.exists()


@pytest.mark.parametrize(
    "script",
    [
        f"DROP TABLE about; CREATE VIEW about (value) AS {ENDLESS}",
        f"ALTER TABLE contents RENAME TO others; CREATE VIEW contents (key) AS {ENDLESS}",
        f"CREATE VIEW more AS {ENDLESS}",
        "CREATE TRIGGER t AFTER DELETE ON files BEGIN DELETE FROM contents; END",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON contents (abs(size))",
        "ALTER TABLE contents ADD COLUMN more AS (zeroblob(1000000000))",
        "DROP TABLE files",
        "DROP TABLE files; CREATE TABLE files (path, stamp, key)",
        "DELETE FROM about",
    ],
)
def test_only_our_own_tables_are_read(path: Path, script: str) -> None:
    alter(path, script)
    assert "is damaged; remove it" in refuse(path)
    error = error_of(lambda: update(PROGRAMS / "gcd", path))
    assert isinstance(error, SearchError)
    assert "is damaged; remove it" in str(error)


@pytest.mark.parametrize("name", sorted(ABOUT))
def test_an_index_says_what_it_is_of(path: Path, name: str) -> None:
    rewrite_about(path, lambda about: {**about, name: [about[name]]})
    assert "is damaged; remove it" in refuse(path)
    rewrite_about(path, lambda about: {key: about[key] for key in about if key != name})
    assert "is damaged; remove it" in refuse(path)


@pytest.mark.parametrize(
    "about", [[], 3, None, {}, {**ABOUT, "checksum": 3}, {**ABOUT, "checksum": None}]
)
def test_an_index_says_it_in_a_record(path: Path, about: Any) -> None:
    rewrite_about(path, lambda _: about)
    assert "is damaged; remove it" in refuse(path)


@pytest.mark.parametrize("text", ["", "{", "[" * 200 + "]" * 200, "[" * 100_000])
def test_what_is_no_json_is_refused(path: Path, text: str) -> None:
    alter(path, f"UPDATE about SET value = '{text}'")
    assert "is damaged; remove it" in refuse(path)


def test_an_index_that_was_never_finished_can_be_finished(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with sqlite.open_to_write(path, ABOUT) as begun:
        assert not begun.finished
        assert begun.files() == {}
    assert "was never finished" in refuse(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": lambda size: 10**15},
        {"size": lambda size: 2**62},
        {"size": lambda size: -size},
        {"size": lambda size: 0},
        {"size": lambda size: 1e999},
        {"size": lambda size: "many"},
        {"size": lambda size: size - 1},
        {"size": lambda _: "none", "spans": lambda _: "[]", "vectors": lambda _: b""},
        {"vectors": lambda blob: blob[:-2]},
        {"vectors": lambda blob: blob + b"\0"},
        {"vectors": lambda blob: b""},
        {"vectors": lambda blob: blob.decode("latin-1")},
        {"vectors": lambda blob: b"\0\x7e" + blob[2:]},  # not a number
        {"vectors": lambda blob: b"\0\x7c" + blob[2:]},  # infinite
        {"vectors": lambda blob: 2 * blob, "size": lambda size: 2 * size},
        {"language": lambda language: language.encode()},
        {"language": lambda language: 3},
        {"spans": lambda text: "[]"},
        {"spans": lambda text: "3"},
        {"spans": lambda text: "[" * 200 + "]" * 200},
        {"spans": lambda text: "[" * 100_000},
        {"spans": lambda text: text.encode()},
        {"spans": lambda text: with_span(text, ["f", 1])},
        {"spans": lambda text: with_span(text, ["f", 1, 2, 3])},
        {"spans": lambda text: with_span(text, "abc")},
        {"spans": lambda text: with_span(text, [["f"], 1, 2])},
        {"spans": lambda text: with_span(text, ["f", "1", 2])},
        {"spans": lambda text: with_span(text, ["f", 1.5, 2])},
        {"spans": lambda text: with_span(text, ["f", 0, 2])},
        {"spans": lambda text: with_span(text, ["f", 3, 2])},
        {"spans": lambda text: with_span(text, ["f", 1, 10**15])},
    ],
)
def test_contents_are_checked_and_not_believed(
    path: Path, changes: dict[str, Callable[[Any], Any]]
) -> None:
    rewrite_contents(path, **changes)
    assert "is damaged; remove it" in refuse(path)


def with_span(text: str, span: Any) -> str:
    return json.dumps([span, *json.loads(text)[1:]])


@pytest.mark.parametrize("column", ["path = CAST(path AS TEXT)", "stamp = x'00'", "key = x'00'"])
def test_files_are_checked_and_not_believed(path: Path, column: str) -> None:
    alter(path, f"UPDATE files SET {column}")
    rewrite_about(path, lambda about: about)
    assert "is damaged; remove it" in refuse(path)


def test_pages_that_lead_to_each_other_again_and_again_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    empty = np.zeros((0, 0), np.float32)
    files = {f"{number}": store.File("", f"{number}") for number in range(4000)}
    with sqlite.open_to_write(path, ABOUT) as begun:
        begun.add(store.Content(name, "", [], empty) for name in files)
        begun.finish(files, ABOUT)
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'files'"
        (root,) = connection.execute(query).fetchone()
    content = path.read_bytes()
    page = content[(root - 1) * SIZE : root * SIZE]
    leaf, last = int.from_bytes(page[8:12], "big"), len(content) // SIZE
    # The root leads to a page after the last, this to another, and so on; each many times.
    levels = [last + 1, last + 2, last + 3, last + 4, leaf]
    first, *others = [lead_to(page, number) for number in levels]
    content = content[: (root - 1) * SIZE] + first + content[root * SIZE :] + b"".join(others)
    path.write_bytes(content[:28] + (last + 4).to_bytes(4, "big") + content[32:])
    assert "is damaged; remove it" in refuse(path)


def lead_to(page: bytes, number: int) -> bytes:
    """Return an inner page of SQLite all of whose children are one other page."""
    changed, child = bytearray(page), number.to_bytes(4, "big")
    changed[8:12] = child
    for cell in range(12, 12 + 2 * int.from_bytes(page[3:5], "big"), 2):
        place = int.from_bytes(page[cell : cell + 2], "big")
        changed[place : place + 4] = child
    return bytes(changed)
