"""Builds that are killed or interrupted, and several at once."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.data.examples import write_data
from treecaps.data.corpus import Corpus

BUILD = """
import sys, time
from treecaps.data import corpus, dataset
print("ready", flush=True)
corpus.Corpus.build(sys.argv[1], workers=2, progress=lambda done, share: time.sleep(0.05))
print("done", flush=True)
"""


def children_of(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


def is_running(process: int) -> bool:
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_build_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path, own_cache: Path
) -> None:
    data = write_data(tmp_path / "a.jsonl", 20_000)
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 20
    while not (workers := children_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(20) != 0
    assert "done" not in process.stdout.read()
    process.stdout.close()
    assert not list(own_cache.glob("corpus-*"))
    while time.monotonic() < deadline and any(is_running(worker) for worker in workers):
        time.sleep(0.05)
    assert workers
    assert not any(is_running(worker) for worker in workers)
    corpus = Corpus.build(data, workers=2)
    assert len(corpus) == 15_000
    assert not list(own_cache.glob("building-*"))


def test_an_interrupted_build_does_not_wait_for_its_work(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "a.c").write_text("x = " + "a<" * 3000)  # srcML takes for ever
    script = BUILD.replace("workers=2", "workers=2, frontend='srcml'")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0  # srcML itself would be given 30 s
    process.stdout.close()
    assert not list(own_cache.glob("corpus-*"))


def test_a_script_without_a_main_guard_may_build(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BUILD)
    data = write_data(tmp_path / "a.jsonl", 600)
    command = [sys.executable, str(script), str(data)]
    assert subprocess.check_output(command, text=True) == "ready\ndone\n"


def test_two_builds_at_once_agree(tmp_path: Path, own_cache: Path) -> None:
    data = write_data(tmp_path / "a.jsonl", 3000)
    command = [sys.executable, "-c", BUILD, str(data)]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(list(own_cache.glob("corpus-*"))) == 1
    assert not list(own_cache.glob("building-*"))
    assert len(Corpus.build(data)) == 2250
