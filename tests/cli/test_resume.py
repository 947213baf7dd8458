import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import PYTHON
from tests.inference.examples import save_small_model
from tests.search.examples import PROGRAMS
from treecaps.files import FileLock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    shutil.copytree(PROGRAMS, folder)
    (folder / "broken.c").write_bytes(b"\0\1\2\3")
    save_small_model(tmp_path / "model")
    return folder


@pytest.mark.parametrize("words", [("classify",), ("classify", "--functions"), ("embed",)])
def test_a_file_that_was_cut_short_becomes_whole(
    words: tuple[str, ...], folder: Path, tmp_path: Path, run_here: Run
) -> None:
    out = tmp_path / "answers.jsonl"
    command = (*words, folder, "--model", tmp_path / "model", "--append", out)
    done = run_here(*command)
    assert done.stdout == ""
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len({json.loads(line)["id"] for line in lines}) >= 52
    for cut in (0, 1, len(lines[0]), len(whole) // 2, len(whole) - 1, len(whole)):
        out.write_bytes(whole[:cut])
        done = run_here(*command)
        assert_same(out.read_bytes(), whole)
        passed = len({json.loads(line)["id"] for line in whole[:cut].split(b"\n")[:-1]})
        assert (f"has {passed - 1:,} of 53 inputs already" in done.stderr) == (passed > 1)


def assert_same(found: bytes, expected: bytes) -> None:
    """Other programs share a batch when a run goes on, which is seen in the last digits."""
    rows, others = (list(map(json.loads, text.splitlines())) for text in (found, expected))
    assert [(row["id"], row.get("label")) for row in rows] == [
        (row["id"], row.get("label")) for row in others
    ]
    for row, other in zip(rows, others, strict=True):
        values = [row.get("probability", 0.0), *row.get("vector", [])]
        assert values == pytest.approx(
            [other.get("probability", 0.0), *other.get("vector", [])], abs=1e-5
        )


def test_a_run_that_is_killed_is_gone_on_with(folder: Path, tmp_path: Path, run_here: Run) -> None:
    many = [folder / f"{number}" for number in range(40)]
    for place in many:
        shutil.copytree(PROGRAMS, place)
    words = ("classify", folder, "--model", tmp_path / "model", "--workers", "1", "--append")
    out = tmp_path / "answers.jsonl"
    with subprocess.Popen([PYTHON, "-m", "treecaps", *words, out]) as process:
        while not out.exists() or not out.stat().st_size:
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    at_once = tmp_path / "at-once.jsonl"
    run_here(*words, at_once)
    assert out.stat().st_size < at_once.stat().st_size
    done = run_here(*words, out)
    assert f" of {41 * 52 + 1:,} inputs already" in done.stderr
    assert_same(out.read_bytes(), at_once.read_bytes())


def test_other_answers_are_not_mixed(folder: Path, tmp_path: Path, run_here: Run) -> None:
    out = tmp_path / "answers.jsonl"
    command = ("classify", folder, "--model", tmp_path / "model", "--append", out)
    run_here(*command)
    before = out.read_bytes()
    for more in (("--functions",), ("--model", "algorithms")):
        done = run_here(*command, *more)
        assert done.returncode == 2
        assert "choose another file (--append)" in done.stderr
    lock = FileLock(out.with_name("answers.jsonl.lock"))
    assert "another process appends to" in run_here(*command).stderr
    lock.close()
    assert "in the order of the inputs" in run_here(*command, "--sort", "class").stderr
    assert out.read_bytes() == before
    done = run_here(*command[:-1], tmp_path / "none" / "answers.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such file or directory" in done.stderr


def test_a_full_disk_is_told_and_what_was_written_stays(
    folder: Path, tmp_path: Path, run_here: Run
) -> None:
    out = tmp_path / "full.jsonl"
    words = ("classify", folder, "--model", tmp_path / "model", "--append", out)
    done = subprocess.run(
        [PYTHON, "-m", "treecaps", *words, "--workers", "1"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
    )
    assert done.returncode == 2
    assert done.stderr.endswith("error: cannot write the output: file too large\n")
    assert out.stat().st_size == 5000
    assert "of 53 inputs already" in run_here(*words).stderr
    assert len(out.read_bytes().splitlines()) == 53


def test_a_place_that_is_no_file_is_refused(folder: Path, tmp_path: Path, run_here: Run) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = ("classify", folder, "--model", tmp_path / "model", "--append")
    for place in (tmp_path / "pipe", Path("/dev/full")):
        assert f"{place} is no file; choose another one" in run_here(*words, place).stderr
