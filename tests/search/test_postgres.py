"""An index in a database finds what one in a file finds, and is never half written."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'treecaps[postgres]'")

from tests.conftest import PYTHON
from tests.inference.examples import save_small_model, small_model
from tests.postgres import PASSWORD, Postgres
from tests.search.examples import PROGRAMS, copy_programs, embedder
from treecaps.errors import SearchError, UsageError
from treecaps.inference.embed import Embedder
from treecaps.search import AnyIndex, Index, Match, graph, open_index
from treecaps.search.build import Update, update_index
from treecaps.search.database import connect, from_bytes, to_bytes
from treecaps.search.place import Address, to_place
from treecaps.search.postgres import DatabaseStore, open_to_write
from treecaps.search.store import Content, Span


@pytest.fixture
def address(postgres: Postgres) -> str:
    return postgres.address(postgres.create())


def update(folder: Path, place: str | Path) -> Update:
    return update_index(folder, place, model=small_model(), workers=1)


def opened(place: str | Path) -> AnyIndex:
    return open_index(place, embedder())


def names(index: AnyIndex) -> list[str]:
    query = np.ones(index.width, np.float32)
    return sorted({match.path for match in index.search(query, 10_000)})


def begin(address: str, folder: Path) -> "tuple[Address, dict[str, object]]":
    """Return what opens a store."""
    place = to_place(address)
    assert isinstance(place, Address)
    index = open_index(address, embedder())
    about = {"treecaps": "", "model": "", "fingerprint": "", "functions": index.functions}
    return place, {**about, "folder": str(folder.resolve())}


def assert_same(found: list[Match], expected: list[Match]) -> None:
    assert [replace(one, similarity=0) for one in found] == [
        replace(one, similarity=0) for one in expected
    ]
    np.testing.assert_allclose(
        [one.similarity for one in found], [one.similarity for one in expected], atol=1e-6
    )


def test_it_finds_what_a_file_finds(address: str, tmp_path: Path) -> None:
    done = update(PROGRAMS, address)
    assert replace(done, embedded=0) == replace(update(PROGRAMS, tmp_path / "file"), embedded=0)
    file, index = Index.open(tmp_path / "file", embedder()), opened(address)
    assert (len(index), index.files, index.folder) == (len(file), file.files, file.folder)
    assert repr(index).replace("SharedIndex", "Index") == repr(file)
    queries = file.vectors[::9]
    for top in (1, 7, 1000):
        for found, expected in zip(
            index.search_many(queries, top), file.search_many(queries, top), strict=True
        ):
            assert_same(found, expected)
    match = index.search(queries[0], 1)[0]
    assert index.code(match) == file.code(match) is not None
    assert index.code(replace(match, path="../conftest.py")) is None
    with pytest.raises(UsageError, match="numbers each, not 3"):
        index.search(np.ones(3, np.float32))


def test_only_what_changed_is_embedded_again(address: str, tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    assert (update(folder, address).embedded, update(folder, address).embedded) == (13, 0)
    index = opened(address)
    (folder / "gcd.py").rename(folder / "renamed.py")
    (folder / "gcd.js").unlink()
    (folder / "gcd.c").write_text("int twice(int a)\n{\n    return 2 * a;\n}\n")
    done = update(folder, address)
    assert (done.added, done.changed, done.removed, done.embedded) == (1, 1, 2, 1)
    update(folder, tmp_path / "file")
    expected = Index.open(tmp_path / "file", embedder())
    # An index that was opened before searches what there is now.
    assert names(index) == names(expected)
    assert (len(index), index.files) == (len(expected), expected.files)


def test_folders_share_a_database(address: str, tmp_path: Path) -> None:
    one, two = copy_programs(tmp_path / "team" / "one"), copy_programs(tmp_path / "team" / "two")
    assert update(one, address).embedded == 13
    assert update(two, address).embedded == 0  # their contents are there
    index = opened(address)
    assert index.folder == tmp_path / "team"
    match = index.search(np.ones(index.width, np.float32), 1)[0]
    assert index.code(match)
    assert index.folder_of("two/gcd.c") == two
    assert names(index) == sorted(
        f"{name}/{file.name}" for name in ("one", "two") for file in one.iterdir()
    )
    shutil.rmtree(one)
    one.mkdir()
    assert update(one, address).removed == 13
    assert names(index) == sorted(f"two/{file.name}" for file in two.iterdir())


def test_several_write_at_once(address: str, tmp_path: Path, postgres: Postgres) -> None:
    model = save_small_model(tmp_path / "model")
    folders = [copy_programs(tmp_path / "team" / name) for name in "abc"]
    script = "from treecaps.cli.main import run; run()"
    words = [PYTHON, "-c", script, "index", "--out", address, "--workers", "1", "--model"]
    writing = [
        subprocess.Popen([*words, str(model), str(folder)], stderr=subprocess.PIPE, text=True)
        for folder in folders
    ]
    said = [one.communicate(timeout=120)[1] for one in writing]
    assert ([one.returncode for one in writing], said) == ([0] * 3, [""] * 3)
    index = open_index(address)
    assert names(index) == sorted(
        f"{one.name}/{file.name}" for one in folders for file in one.iterdir()
    )
    with postgres.connect(address.rpartition("/")[2]) as connection:
        assert connection.execute("SELECT count(*) FROM treecaps.contents").fetchone() == (13,)


def test_one_folder_is_written_once_at_a_time(address: str, tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    update(folder, address)
    with open_to_write(*begin(address, folder)):
        with pytest.raises(
            SearchError, match=r"another treecaps is writing .*/programs into"
        ) as said:
            update(folder, address)
        assert PASSWORD not in str(said.value)
        copy_programs(tmp_path / "other")
        update(tmp_path / "other", address)
    assert update(folder, address).embedded == 0


def test_what_is_under_way_is_not_found_and_not_forgotten(address: str, tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    update(folder, address)
    index = opened(address)
    before = names(index)
    vectors = np.ones((1, index.width), np.float32)
    content = Content("new", "c", [Span("f", 1, 2)], vectors)
    with open_to_write(*begin(address, tmp_path / "other")) as store:
        store.add([content])
        update(folder, address)  # finishes meanwhile
        known = store.keys()
        assert "new" in known
        assert names(index) == before
    update(folder, address)
    with open_to_write(*begin(address, tmp_path / "other")) as store:
        known = store.keys()
        assert "new" not in known


def test_a_killed_server_loses_nothing(
    address: str, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_programs(tmp_path / "programs")
    update(folder, address)
    index = opened(address)
    before = names(index)
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes() + b"\n\n")
    monkeypatch.setattr("treecaps.search.postgres._ROWS", 4)
    insert, calls = DatabaseStore._insert, []

    def insert_and_kill(store: DatabaseStore, contents: list[Content]) -> None:
        insert(store, contents)
        calls.append(len(contents))
        if len(calls) == 3:
            postgres.kill()

    with monkeypatch.context() as patch:
        patch.setattr(DatabaseStore, "_insert", insert_and_kill)
        with pytest.raises(
            SearchError, match=r"the connection to .* was lost: the index is as it was"
        ):
            update(folder, address)
    with pytest.raises(SearchError, match="nobody answers"):
        index.refresh()
    postgres.start()
    assert names(index) == before  # it connects again
    done = update(folder, address)
    # 8 of 13 were committed; so are 4 more, if what the server was doing outlived it by a moment.
    assert done.changed == 13
    assert done.embedded in (5, 1)
    assert names(index) == before


def test_a_large_index_has_a_graph(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(PROGRAMS, address)
    monkeypatch.setattr(graph, "FROM", 100)
    note = opened(address).note
    assert note is not None
    assert "has no graph yet" in note
    done = update(PROGRAMS, address)
    assert done.recall is not None
    assert done.recall > 0.9
    update(PROGRAMS, tmp_path / "file")
    expected, index = Index.open(tmp_path / "file", embedder()), opened(address)
    assert (index.note, explain(address)) == (None, True)
    for vector in expected.vectors[::20]:
        found = index.search(vector, 5)
        assert found[0].similarity == pytest.approx(1, abs=1e-3)
        assert_same(
            index.search_exactly(vector[None], 5)[0], expected.search_exactly(vector[None], 5)[0]
        )
    # More than it can reach are all there.
    assert len(index.search(expected.vectors[0], 900)) == len(expected)
    monkeypatch.setattr(graph, "FROM", 1000)
    assert update(PROGRAMS, address).recall is None
    assert explain(address) is False


def explain(address: str) -> bool:
    """Whether there is a graph, and the database would use it."""
    place = to_place(address)
    assert isinstance(place, Address)
    with closing(connect(place)) as connection:
        connection.execute("SET enable_seqscan = off")
        width = connection.execute(
            "SELECT vector_dims(vector) FROM treecaps.functions LIMIT 1"
        ).fetchall()[0][0]
        plan = connection.execute(
            f"EXPLAIN SELECT id FROM treecaps.functions ORDER BY vector::halfvec({width})"
            f" <#> '[{','.join('1' * width)}]'::halfvec({width}) LIMIT 4"
        )
        return "functions_graph" in str(plan.fetchall())


def test_another_model_is_refused(address: str, tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    update(folder, address)
    for use in (
        lambda: open_index(address, Embedder()),
        lambda: update_index(folder, address, workers=1),
        lambda: update_index(PROGRAMS, address, workers=1),
    ):
        refuse(use, "was made by another model or with other parsers")
    refuse(
        lambda: update_index(folder, address, model=small_model(), functions=False),
        "is an index of functions",
    )


def refuse(use: Callable[[], object], words: str) -> None:
    """Check that something is refused, in such words and without a password."""
    with pytest.raises((SearchError, UsageError), match=words) as refused:
        use()
    assert PASSWORD not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_databases_that_cannot_be_used(postgres: Postgres, tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    nowhere = f"postgresql://owner:{PASSWORD}@127.0.0.1:1/code"
    refuse(lambda: opened(nowhere), r"nobody answers \(connection refused\); start the database")
    refuse(lambda: update(folder, nowhere), "cannot connect to postgresql://owner@127.0.0.1:1/code")
    refuse(lambda: opened(postgres.address("none")), 'database "none" does not exist; name another')
    refuse(
        lambda: opened(postgres.address(word=f"{PASSWORD}x")),
        'password authentication failed for user "owner"; name another',
    )
    for wrong in (f"/db?x={PASSWORD}", f":{PASSWORD}%zz@db/db"):
        refuse(
            partial(opened, f"postgresql://{wrong}"), "the address of the database cannot be read"
        )
    with postgres.connect() as connection:
        connection.execute("CREATE DATABASE plain")
    plain = postgres.address("plain")
    refuse(lambda: opened(plain), "has no pgvector extension; install it, and .* CREATE EXTENSION")
    refuse(lambda: update(folder, plain), "has no pgvector extension")
    empty = postgres.address(postgres.create())
    refuse(
        lambda: opened(empty), "there is no index .*; make one: treecaps index DIR --out postgre"
    )
    (tmp_path / "empty").mkdir()
    refuse(lambda: update(tmp_path / "empty", empty), "holds no programs")
    assert PASSWORD not in postgres.log()


@pytest.mark.parametrize("value", ["{}", "no", '{"format": 1}', '{"format": 2}', "[]"])
def test_an_index_that_says_nothing_sensible_is_refused(
    address: str, tmp_path: Path, postgres: Postgres, value: str
) -> None:
    update(copy_programs(tmp_path / "programs"), address)
    with postgres.connect(address.rpartition("/")[2]) as connection:
        connection.execute("UPDATE treecaps.about SET value = %s", [value])
    refuse(lambda: opened(address), "is damaged|another version")


def test_vectors_are_sent_as_pgvector_keeps_them(address: str) -> None:
    vector = np.array([1, -0.5, 3e-5, 65504, 0], np.float16)
    place = to_place(address)
    assert isinstance(place, Address)
    with closing(connect(place)) as connection, connection.cursor(binary=True) as cursor:
        text = f"[{','.join(map(repr, vector.tolist()))}]"
        (row,) = cursor.execute("SELECT %s::halfvec, %s::halfvec::text", [text, text]).fetchall()
    assert row[0] == to_bytes(vector)
    np.testing.assert_array_equal(from_bytes(row[0]), vector.astype(np.float32))
    np.testing.assert_allclose(np.array(row[1].strip("[]").split(","), float), vector, rtol=1e-3)


def test_threads_may_search_at_once(address: str, tmp_path: Path) -> None:
    update(copy_programs(tmp_path / "programs"), address)
    index = opened(address)
    vector = np.ones(index.width, np.float32)
    expected, found = index.search(vector, 5), []
    threads = [
        threading.Thread(target=lambda: found.append(index.search(vector, 5))) for _ in "1234"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [expected] * 4
