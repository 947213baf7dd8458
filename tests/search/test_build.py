import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.inference.examples import save_small_model
from tests.search.examples import PROGRAMS, copy_programs, open_index, update
from treecaps.errors import SearchError, UsageError
from treecaps.search import Index, Match
from treecaps.search.build import update_index
from treecaps.search.sqlite import open_to_write


def assert_as_if_new(folder: Path, path: Path) -> None:
    """An updated index says what a new one does."""
    fresh = path.with_name("fresh")
    update(folder, fresh)
    expected, index = open_index(fresh), open_index(path)
    everything = index.search(expected.vectors[0], 1000)
    wanted = expected.search(expected.vectors[0], 1000)
    assert [replace(match, similarity=0) for match in sorted(everything, key=place)] == [
        replace(match, similarity=0) for match in sorted(wanted, key=place)
    ]
    np.testing.assert_allclose(
        [match.similarity for match in everything],
        [match.similarity for match in wanted],
        atol=2e-3,  # programs that are embedded together differ in the last digits
    )


def place(match: Match) -> tuple[str, int]:
    return match.path, match.line or 0


def test_only_what_changed_is_embedded_again(tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    done = update(folder, path)
    assert (done.files, done.added, done.embedded, done.failures) == (13, 13, 13, ())
    done = update(folder, path)
    assert (done.files, done.added, done.changed, done.removed, done.embedded) == (13, 0, 0, 0, 0)
    (folder / "gcd.c").write_text("int twice(int a)\n{\n    return 2 * a;\n}\n")
    (folder / "gcd.py").rename(folder / "renamed.py")
    (folder / "gcd.js").unlink()
    (folder / "more").mkdir()
    (folder / "more" / "new.go").write_text("package a\n\nfunc f() int {\n\treturn 1\n}\n")
    done = update(folder, path)
    assert (done.files, done.added, done.changed, done.removed) == (13, 2, 1, 2)
    assert done.embedded == 2
    assert_as_if_new(folder, path)


def test_contents_count_where_times_do_not(tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    file = folder / "gcd.c"
    file.write_text("int one(int a)\n{\n    return 1 * a;\n}\n")
    update(folder, path)
    status = file.stat()
    file.write_text("int two(int a)\n{\n    return 2 + a;\n}\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size
    done = update(folder, path)
    assert (done.changed, done.embedded) == (1, 1)
    os.utime(file, ns=(0, 0))  # touched, and nothing else
    done = update(folder, path)
    assert (done.changed, done.embedded) == (0, 0)


def test_the_same_text_in_another_language_is_another(tmp_path: Path) -> None:
    folder, path = tmp_path / "programs", tmp_path / "index"
    folder.mkdir()
    code = "int f(int a)\n{\n    return a;\n}\n"
    (folder / "a.c").write_text(code)
    (folder / "a.cpp").write_text(code)
    done = update(folder, path)
    assert done.embedded == 2
    index = open_index(path)
    assert {match.language for match in index.search(index.vectors[0])} == {"c", "cpp"}


def test_files_without_functions_or_code_are_known_and_not_found(tmp_path: Path) -> None:
    folder, path = tmp_path / "programs", tmp_path / "index"
    folder.mkdir()
    (folder / "empty.c").write_text("")
    (folder / "table.py").write_text("x = 1\n")
    (folder / "binary.c").write_bytes(bytes(range(32)) * 100)
    for embedded in (2, 0):
        done = update(folder, path)
        assert (done.files, done.vectors, done.embedded) == (2, 0, embedded)
        assert [(one.id, one.code) for one in done.failures] == [("binary.c", "binary")]
    index = open_index(path)
    assert len(index) == 0
    assert index.search(np.zeros(7, np.float32)) == []


def test_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "index"
    done = update(PROGRAMS / "gcd", path, functions=False)
    assert (done.files, done.vectors) == (13, 13)
    index = open_index(path)
    match = index.search(index.vectors[0], 1)[0]
    text = (PROGRAMS / "gcd" / match.path).read_text()
    assert (match.function, match.line) == (None, 1)
    assert index.code(match) == text.rstrip()
    with pytest.raises(SearchError, match="an index of files, not of functions"):
        update(PROGRAMS / "gcd", path)


def test_an_index_belongs_to_its_folder_and_moves_with_it(tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    update(folder, path)
    with pytest.raises(SearchError, match=r"is the index of .*programs; choose another file"):
        update(PROGRAMS / "stack", path)
    folder.rename(tmp_path / "moved")
    done = update(tmp_path / "moved", path)
    assert (done.files, done.embedded) == (13, 0)
    assert open_index(path).folder == tmp_path / "moved"


def test_other_models_do_not_write_into_it(tmp_path: Path) -> None:
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    update(folder, path)
    with pytest.raises(SearchError, match="made by another model"):
        update_index(folder, path, workers=1)


def test_what_cannot_be_indexed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no programs in a known language"):
        update(tmp_path, tmp_path / "index")
    with pytest.raises(UsageError, match="does not exist"):
        update(tmp_path / "none", tmp_path / "index")
    assert list(tmp_path.iterdir()) == []
    text = tmp_path / "notes.txt"
    text.write_text("do not touch\n" * 100)
    with pytest.raises(SearchError, match="is no index"):
        update(PROGRAMS / "gcd", text)
    assert text.read_text() == "do not touch\n" * 100
    with pytest.raises(SearchError, match=r"cannot write .* choose another place"):
        update(PROGRAMS / "gcd", tmp_path / "none" / "index")


def test_when_all_files_vanish_the_index_is_empty(tmp_path: Path) -> None:
    folder, path = tmp_path / "programs", tmp_path / "index"
    shutil.copytree(PROGRAMS, folder)
    update(folder, path)
    size = path.stat().st_size
    shutil.rmtree(folder)
    folder.mkdir()
    done = update(folder, path)
    assert (done.files, done.removed) == (0, 52)
    assert len(open_index(path)) == 0
    assert path.stat().st_size < size


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder, path = tmp_path / "programs", tmp_path / "index"
    folder.mkdir()
    strange = folder / "gcd\udcff.c"
    strange.write_bytes((PROGRAMS / "gcd" / "gcd.c").read_bytes())
    update(folder, path)
    index = open_index(path)
    match = index.search(index.vectors[0], 1)[0]
    assert match.path == strange.name
    assert index.code(match)


def test_two_at_once(tmp_path: Path) -> None:
    path = tmp_path / "index"
    about = {"treecaps": "", "model": "", "fingerprint": "", "functions": True, "folder": ""}
    with (
        open_to_write(path, about),
        pytest.raises(SearchError, match=r"another treecaps is writing .* try again"),
    ):
        update(PROGRAMS / "gcd", path)
    assert sorted(tmp_path.iterdir()) == [path]
    with pytest.raises(SearchError, match="was never finished; go on with: treecaps index"):
        open_index(path)


_SLOW = """
import sys
from treecaps.search.build import update_index

def step(share, name):
    print("writing", flush=True)
    sys.stdin.readline()

folder, path, model = sys.argv[1:]
update_index(folder, path, model=model, workers=1, step=step)
"""
_COMMAND = [sys.executable, "-c", "from treecaps.cli.main import run; run()"]


def test_of_two_processes_one_writes_and_the_other_is_told(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    slow = [sys.executable, "-c", _SLOW, str(folder), str(path), str(model)]
    second = ["index", str(folder), "--out", str(path), "--model", str(model), "--workers", "1"]
    with subprocess.Popen(slow, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "writing\n"
            done = subprocess.run(_COMMAND + second, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == (
                f"treecaps: error: another treecaps is writing {path}; try again when it is done\n"
            )
            first.communicate()  # the end of its input lets it go on
        finally:
            first.kill()
    assert first.returncode == 0
    assert len(names_of(Index.open(path))) == 13
    assert update_index(folder, path, model=model, workers=1).embedded == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["index", "model", "programs"]


_KILLED = """
import json, os, shutil, sqlite3, sys
from pathlib import Path
from treecaps.inference.embed import Embedder
from treecaps.search import Index, sqlite
from treecaps.search.build import update_index

folder, path, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
embedder = Embedder(model)
sqlite._ROWS = 8
connect, limit = sqlite3.connect, sqlite._limit
steps = last = 0

def step():
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), 9)

def connect_to_be_killed(*words, **options):
    connection = connect(*words, **options)
    connection.execute("PRAGMA cache_size = 2")  # so that half a transaction is on the disk
    return connection

def limit_to_be_killed(connection, *bounds):
    limit(connection, *bounds)
    connection.set_progress_handler(step, 20)  # a connection has but one

def index(name):
    return update_index(folder, name, model=embedder.model, workers=1)

def run_and_be_killed(at):
    global last, steps
    if (child := os.fork()) == 0:
        last, steps = at, 0
        sqlite.sqlite3.connect, sqlite._limit = connect_to_be_killed, limit_to_be_killed
        index(path)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

saved = path.read_bytes()
sqlite.sqlite3.connect, sqlite._limit = connect_to_be_killed, limit_to_be_killed
index(path)  # to count the steps
sqlite.sqlite3.connect, sqlite._limit = connect, limit
results = []
for part in range(1, 9):
    path.write_bytes(saved)
    status = run_and_be_killed(part * steps // 9)
    journal = Path(f"{path}-journal")
    hot = journal.exists() and journal.stat().st_size > 0
    found = Index.open(path, embedder)
    names = sorted({match.path for match in found.search(found.vectors[0], 10000)})
    again = index(path)
    results.append([status, hot, names, again.embedded])
print(json.dumps(results))
"""


def test_killed_at_any_moment_it_is_the_old_or_the_new(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    update_index(folder, path, model=model, workers=1)
    old = names_of(Index.open(path))
    shutil.copytree(PROGRAMS, folder / "more")
    (folder / "gcd.c").unlink()
    words = [sys.executable, "-c", _KILLED, str(folder), str(path), str(model)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    results = json.loads(done.stdout.splitlines()[-1])
    new = names_of(Index.open(path))
    assert old - new == {"gcd.c"}
    assert len(new) > 60
    killed = [result for result in results if result[0] == -signal.SIGKILL]
    assert len(killed) == 8
    assert any(hot for _, hot, *_ in killed)  # in the midst of writing
    states = [set(names) for _, _, names, _ in killed]
    assert all(state in (old, new) for state in states)
    assert old in states
    # What was done before is not done again.
    embedded = [count for *_, count in killed]
    assert embedded[0] > embedded[-1]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["index", "model", "programs"]


def test_killed_from_outside_it_is_finished_by_the_next(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    folder, path = tmp_path / "programs", tmp_path / "index"
    for number in range(12):
        shutil.copytree(PROGRAMS, folder / str(number))
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    for number, file in enumerate(files):
        file.write_bytes(file.read_bytes() + b"\n" * number)  # or all would have the same contents
    words = [*_COMMAND, "index", str(folder), "--out", str(path), "--model", str(model)]

    def look() -> tuple[int, int] | None:
        return (path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None

    # As soon as the file is there, and twice as soon as something is written to it.
    for _ in range(3):
        before, until = look(), time.monotonic() + 120
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while look() == before:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until
            process.kill()
        assert process.returncode == -signal.SIGKILL
        with pytest.raises(SearchError, match=r"was never finished; go on with: treecaps index"):
            Index.open(path)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{path}: ")
    assert len(names_of(Index.open(path))) == len(files)
    assert update_index(folder, path, model=model).embedded == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["index", "model", "programs"]


def test_without_room_the_index_stays_what_it_was(tmp_path: Path) -> None:
    model = save_small_model(tmp_path / "model")
    folder, path = copy_programs(tmp_path / "programs"), tmp_path / "index"
    update_index(folder, path, model=model, workers=1)
    old = names_of(Index.open(path))
    shutil.copytree(PROGRAMS, folder / "more")
    size = path.stat().st_size

    def leave_no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    words = ["index", str(folder), "--out", str(path), "--model", str(model), "--workers", "1"]
    done = subprocess.run(
        _COMMAND + words, capture_output=True, text=True, check=False, preexec_fn=leave_no_room
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"treecaps: error: cannot write {path}: ")
    assert done.stderr.endswith("the index is as it was, make room or choose another place\n")
    assert done.stderr.count("\n") == 1
    assert names_of(Index.open(path)) == old


def names_of(index: Index) -> set[str]:
    return {match.path for match in index.search(index.vectors[0], 10_000)}
