"""Graphs of large indexes: what they find, and that none is used which is not in step."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.inference.examples import save_small_model
from tests.limits import in_place_of_a_file
from tests.search.examples import PROGRAMS, copy_programs, embedder, open_index, update
from tests.search.test_sqlite import ABOUT, rewrite_about
from treecaps.errors import SearchError
from treecaps.search import Index, graph
from treecaps.search.clones import find_clones
from treecaps.search.file_graph import write_graph
from treecaps.search.graph import GraphRecord, graph_path
from treecaps.search.sqlite import open_to_read, open_to_write
from treecaps.search.store import Content, File, Span
from treecaps.server.following import FollowedIndex

pytest.importorskip("usearch")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an index of a few vectors count as large."""
    monkeypatch.setattr(graph, "FROM", 10)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a graph."""
    path = tmp_path_factory.mktemp("search") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "FROM", 10)
        update(PROGRAMS, path)
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    path = tmp_path / "index"
    shutil.copy(made, path)
    shutil.copy(graph_path(made), graph_path(path))
    return path


def assert_exact(index: Index) -> None:
    """Without a graph, an index answers as one that never had any."""
    assert index.graph is None
    assert index.vectors.dtype == np.float32
    queries = index.vectors[::10]
    assert index.search_many(queries, 5) == index.search_exactly(queries, 5)


def recall_of(index: Index, queries: NDArray[np.float32]) -> float:
    """Compare with an exact search: which are found, and how alike they are said to be."""
    hits = 0
    for query, best in zip(queries, index.search_exactly(queries, 10), strict=True):
        found = index.search(query, 10)
        assert len(found) == len(best) == 10
        everything = {
            (match.path, match.line): match.similarity
            for match in index.search_exactly(query[None], len(index))[0]
        }
        values = [match.similarity for match in found]
        exact = [everything[match.path, match.line] for match in found]
        np.testing.assert_allclose(values, exact, atol=1e-6)
        assert values == sorted(values, reverse=True)
        hits += sum(value >= best[-1].similarity - 1e-6 for value in values)
    return hits / (10 * len(queries))


def write_clusters(path: Path, size: int, width: int = 96) -> NDArray[np.float32]:
    """Write an index of vectors around common centres, with its graph, and return more of them."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(40, width))
    vectors = centres[generator.integers(40, size=size + 50)]
    vectors = vectors + generator.normal(0, 0.7, vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    single: NDArray[np.float32] = vectors.astype(np.float32)
    with open_to_write(path, ABOUT) as store:
        files = {f"{number:05}": File("", str(number)) for number in range(size)}
        span = Span("f", 1, 9)
        store.add(Content(str(n), "c", [span], single[n : n + 1]) for n in range(size))
        store.finish(files, ABOUT)
        record = write_graph(store, files)
        store.finish(files, store.about | {"graph": record.to_dict()})
    return single[size:]


def read(path: Path) -> Index:
    with open_to_read(path) as store:
        return Index.read(store, store.files(), embedder())


def record_of(path: Path) -> GraphRecord:
    with open_to_read(path) as store:
        record = GraphRecord.of_index(store.about)
    assert record
    return record


def test_a_graph_finds_what_an_exact_search_finds(path: Path) -> None:
    index = open_index(path)
    assert index.graph
    assert index.note is None
    assert recall_of(index, index.vectors[::5].astype(np.float32)) >= 0.9


def test_among_thousands(tmp_path: Path) -> None:
    queries = write_clusters(tmp_path / "index", 3000)
    index = read(tmp_path / "index")
    assert index.graph
    recall = recall_of(index, queries)
    assert recall >= 0.9
    assert record_of(tmp_path / "index").recall == pytest.approx(recall, abs=0.1)
    # So many are not asked of a graph.
    assert len(index.search(queries[0], 2000)) == 2000


def test_clones_are_those_of_an_index_without_a_graph(path: Path) -> None:
    index = open_index(path)
    groups = find_clones(index, 0.9, min_lines=1)
    graph_path(path).unlink()
    exact = open_index(path)
    assert exact.graph is None
    assert find_clones(exact, 0.9, min_lines=1) == groups


def test_strange_vectors_are_answered(path: Path) -> None:
    index = open_index(path)
    width = index.vectors.shape[1]
    for value in (0, 1e30, -1):
        assert len(index.search(np.full(width, value, np.float32), 3)) == 3
    assert len(index.search(index.vectors[0].astype(np.float32), 900)) == len(index)


def test_a_graph_is_made_again_only_if_the_index_changes(path: Path) -> None:
    file = graph_path(path)
    before = file.stat()
    done = update(PROGRAMS, path)
    assert (done.recall, done.note) == (record_of(path).recall, None)
    assert file.stat().st_ino == before.st_ino
    assert open_index(path).graph


def test_changes_are_found_in_the_graph(tmp_path: Path) -> None:
    folder, path = tmp_path / "programs", tmp_path / "index"
    shutil.copytree(PROGRAMS, folder)
    update(folder, path)
    (folder / "gcd" / "gcd.c").write_text("int twice(int a)\n{\n    return 2 * a;\n}\n")
    (folder / "gcd" / "gcd.py").unlink()
    for _ in range(2):  # from what was read of a file, and of a changed one
        assert update(folder, path).recall
        index = open_index(path)
        assert index.graph
        assert recall_of(index, index.vectors[::5].astype(np.float32)) >= 0.9
        found = {match.path for match in index.search(index.vectors[0].astype(np.float32), 900)}
        assert "gcd/gcd.c" in found
        assert "gcd/gcd.py" not in found
        (folder / "gcd" / "gcd.java").unlink(missing_ok=True)
    shutil.rmtree(folder / "stack")  # much has gone: made anew
    assert update(folder, path).recall
    assert recall_of(open_index(path), open_index(path).vectors[::5].astype(np.float32)) >= 0.9


def test_an_index_that_is_no_longer_large_has_no_graph(tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    mine = graph_path(path)
    mine.write_text("of somebody else")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "FROM", 1000)
        assert update(folder, path).recall is None
        assert mine.read_text() == "of somebody else"
        mine.unlink()
        assert_exact(open_index(path))
    assert update(folder, path).recall
    assert open_index(path).graph
    for file in sorted(folder.iterdir())[2:]:
        file.unlink()
    done = update(folder, path)
    assert (done.recall, done.note) == (None, None)
    assert open_index(path).note is None
    assert sorted(tmp_path.iterdir()) == [path, folder]


def test_a_graph_is_beside_the_file_that_a_link_leads_to(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link"
    link.symlink_to(path)
    assert open_index(link).graph


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "is damaged": flip,
    "is damaged; make it": lambda file: os.truncate(file, 1000),
    "is damaged; make it: treecaps index": lambda file: os.truncate(file, 0),
    "cannot be read: no such file": Path.unlink,
}


@pytest.mark.parametrize("words", DAMAGES)
def test_a_damaged_graph_is_not_used_and_made_again(path: Path, words: str) -> None:
    DAMAGES[words](graph_path(path))
    index = open_index(path)
    assert words in (index.note or "")
    assert_exact(index)
    assert update(PROGRAMS, path).recall
    assert open_index(path).graph


@in_place_of_a_file
def test_anything_in_place_of_a_graph(path: Path, make: Callable[[Path], None], words: str) -> None:
    file = graph_path(path)
    file.unlink()
    make(file)
    index = open_index(path)
    assert words in (index.note or "")
    assert_exact(index)
    done = update(PROGRAMS, path)
    if file.is_dir():
        assert done.recall is None
        assert f"cannot write {file}: " in (done.note or "")
    else:
        assert open_index(path).graph


def test_a_graph_of_another_index_or_state_or_library(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    update(PROGRAMS / "gcd", other)
    foreign = record_of(other).to_dict()
    for words, change in {
        "is the graph of another index": {**foreign, "state": record_of(path).state},
        "is of an older state": foreign,
        "was made by another usearch than": {**record_of(path).to_dict(), "usearch": "2.0.0"},
        "does not exist yet": {"state": 1},
    }.items():
        damaged = tmp_path / "damaged"
        shutil.copy(path, damaged)
        shutil.copy(graph_path(other if "another index" in words else path), graph_path(damaged))
        rewrite_about(damaged, partial(_with_graph, change))
        index = open_index(damaged)
        assert words in (index.note or "")
        assert_exact(index)
        assert update(PROGRAMS, damaged).recall
        if "another index" not in words:  # its state is what the index says
            assert open_index(damaged).graph


def _with_graph(graph: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    return about | {"graph": graph}


def test_a_server_uses_the_graph(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("treecaps.search.index.load_embedder", lambda name, index: embedder())
    for there in (True, False):
        followed = FollowedIndex(path)
        followed.close()
        assert isinstance(followed.current, Index)
        assert (followed.current.graph is not None) == there
        said = capsys.readouterr().err
        assert ("treecaps: looking at each vector, because " in said) == (not there)
        graph_path(path).unlink(missing_ok=True)


_KILLED = """
import json, os, shutil, sys
from pathlib import Path
from treecaps.inference.embed import Embedder
from treecaps.search import Index, graph, sqlite
from treecaps.search.build import update_index

folder, path, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
graph.FROM = 10
file = graph.graph_path(path)
embedder = Embedder(model)
saved = path.read_bytes(), file.read_bytes()

def kill(*words, **options):
    os.kill(os.getpid(), 9)

def kill_the_second_time(old):
    calls = []
    def finish(*words):
        calls.append(words)
        return kill() if len(calls) == 2 else old(*words)
    return finish

def run(when):
    if when == "the index is new, the graph is not":
        graph._add = kill
    elif when == "the graph is being written":
        graph.digest_file = kill
    elif when == "the graph has its name":
        sqlite.FileStore.finish = kill_the_second_time(sqlite.FileStore.finish)
    update_index(folder, path, model=embedder.model, workers=1)

results = []
for when in sys.argv[4:]:
    path.write_bytes(saved[0])
    file.write_bytes(saved[1])
    if (child := os.fork()) == 0:
        run(when)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = Index.open(path, embedder)
    names = sorted({match.path for match in found.search_exactly(found.vectors[:1], 1000)[0]})
    again = update_index(folder, path, model=embedder.model, workers=1)
    last = Index.open(path, embedder)
    results.append([status, found.note, names, again.embedded, last.note, last.graph is not None])
print(json.dumps(results))
"""


def test_killed_at_any_moment_no_graph_is_used_that_is_out_of_step(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    script = "from treecaps.search import graph\ngraph.FROM = 10\n"
    command = [sys.executable, "-c", f"{script}from treecaps.cli.main import run; run()"]
    words = ["index", folder, "--out", path, "--model", model, "--workers", "1"]
    done = subprocess.run([*command, *map(str, words)], capture_output=True, text=True, check=True)
    assert "; graph: recall@10 1.00\n" in done.stdout
    (folder / "new.c").write_text("int twice(int a)\n{\n    return 2 * a;\n}\n")
    moments = {
        "the index is new, the graph is not": "is of an older state",
        "the graph is being written": "is of an older state",
        "the graph has its name": "is of an older state",
    }
    killed = [sys.executable, "-c", _KILLED, str(folder), str(path), str(model), *moments]
    done = subprocess.run(killed, capture_output=True, text=True, check=True)
    for result, note in zip(json.loads(done.stdout), moments.values(), strict=True):
        status, said, names, embedded, *last = result
        assert status == -signal.SIGKILL
        assert note in said
        assert "new.c" in names
        assert embedded == 0
        assert last == [None, True]
    left = sorted(one.name for one in tmp_path.iterdir())
    assert left == ["index", "index.graph", "model", "programs"]


_SLOW = """
import sys
from treecaps.search import graph
from treecaps.search.build import update_index

graph.FROM = 10

def step(share, name):
    if name == "graph of neighbours":
        print("writing", flush=True)
        sys.stdin.readline()

folder, path, model = sys.argv[1:]
update_index(folder, path, model=model, workers=1, step=step)
"""


def test_while_a_graph_is_made_nobody_else_writes_and_everybody_reads(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    slow = [sys.executable, "-c", _SLOW, str(folder), str(path), str(model)]
    with subprocess.Popen(slow, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "writing\n"
            with pytest.raises(SearchError, match="another treecaps is writing"):
                update(folder, path)
            index = Index.open(path)
            assert "does not exist yet" in (index.note or "")
            assert_exact(index)
            first.communicate()  # the end of its input lets it go on
        finally:
            first.kill()
    assert first.returncode == 0
    assert Index.open(path).graph
