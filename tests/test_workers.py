import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from treecaps import workers
from treecaps.workers import Timer, WorkerLostError, WorkerPool

Task = tuple[str, float]


def setup() -> Callable[[Task, Timer], object]:
    return work


def work(task: Task, timer: Timer) -> object:
    """Do what a parser may do: answer, crash, fail, or never return."""
    what, number = task
    timer.start(0.5 if what == "hang" else 30.0, int(number))
    if what == "hang":
        # As in a parser, Python's lock is kept meanwhile.
        ctypes.PyDLL(None).sleep(1000)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fail":
        raise OSError("no luck")
    if what == "stop":
        timer.stop()
        os.kill(os.getpid(), signal.SIGSTOP)
    if what == "large":
        return b"x" * int(number)
    return os.getpid() if what == "pid" else number


@contextmanager
def pool(size: int = 1, context: str = "fork") -> Iterator[WorkerPool[Task, object]]:
    with closing(WorkerPool[Task, object](size, setup, context)) as made:
        yield made


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_only_the_task_of_a_lost_worker_is_lost(context: str) -> None:
    with pool(2, context) as some:
        numbers = range(20)
        good = [some.submit(("number", number)) for number in numbers]
        bad = [some.submit((what, 7)) for what in ("crash", "hang", "crash")]
        more = [some.submit(("number", number)) for number in numbers]
        assert [future.result() for future in (*good, *more)] == [*numbers, *numbers]
        lost = [future.exception() for future in bad]
    assert [(one.item, one.timed_out) for one in lost if isinstance(one, WorkerLostError)] == [
        (7, False),
        (7, True),
        (7, False),
    ]


def test_a_call_that_never_returns_ends_at_its_limit() -> None:
    with pool() as some:
        some.submit(("number", 1)).result()
        begun = time.monotonic()
        with pytest.raises(WorkerLostError):
            some.submit(("hang", 0)).result()
        assert 0.5 <= time.monotonic() - begun < 5


def test_errors_come_back_and_the_worker_goes_on() -> None:
    with pool() as some:
        before = some.submit(("pid", 0)).result()
        with pytest.raises(OSError, match="no luck") as caught:
            some.submit(("fail", 0)).result()
        assert "in work" in caught.value.__notes__[0]
        assert some.submit(("pid", 0)).result() == before


def test_a_worker_that_is_late_is_killed_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_START_SECONDS", 0.5)
    monkeypatch.setattr(workers, "_GRACE", 0.1)
    with pool() as some:
        before = some.submit(("pid", 0)).result()
        error = some.submit(("stop", 3)).exception(timeout=30)
        assert isinstance(error, WorkerLostError)
        assert error.timed_out
        assert some.submit(("pid", 0)).result() != before


def test_closing_does_not_wait_for_a_call_that_never_returns() -> None:
    with pool(2) as some:
        pids = {some.submit(("pid", 0)).result() for _ in range(8)}
        hanging = [some.submit(("stop", 0)) for _ in range(3)]
        time.sleep(0.2)
        begun = time.monotonic()
    assert time.monotonic() - begun < 5
    assert all(future.done() for future in hanging)
    assert not any(map(is_running, pids))


def test_a_worker_killed_in_the_midst_of_a_result_is_not_waited_for() -> None:
    with pool() as some:
        pid = int(str(some.submit(("pid", 0)).result()))
        begun = _read_so_far()
        future = some.submit(("large", 1 << 29))
        while _read_so_far() - begun < 1 << 26:
            assert not future.done()
        os.kill(pid, signal.SIGKILL)
        assert isinstance(future.exception(timeout=60), WorkerLostError)
        assert some.submit(("number", 1)).result() == 1


def _read_so_far() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def is_running(pid: object) -> bool:
    """Tell whether there is a process that has not ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_all_workers_busy_for_long_means_stuck() -> None:
    with pool(2) as some:
        assert not some.is_stuck(0.1)
        one = some.submit(("hang", 0))
        time.sleep(0.3)
        assert not some.is_stuck(0.1)
        other = some.submit(("hang", 0))
        patience = time.monotonic() + 5  # a busy machine takes its time to start a worker
        while not some.is_stuck(0.1) and time.monotonic() < patience:
            time.sleep(0.02)
        assert some.is_stuck(0.1)
        assert not some.is_stuck(10)
        one.exception()
        other.exception()
        assert not some.is_stuck(0.1)


_PARENT = """
import sys, time
from tests.test_workers import setup
from treecaps.workers import WorkerPool

if __name__ == "__main__":
    pool = WorkerPool(1, setup, sys.argv[1])
    print(pool.submit(("pid", 0)).result(), flush=True)
    pool.submit((sys.argv[2], 0))
    time.sleep(1000)
"""


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("what", ["hang", "number"])
def test_workers_die_with_their_parent(context: str, what: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, str(script), context, what]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.1)
        parent.kill()
    until = time.monotonic() + 0.3  # the worker's own alarm would come later
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_running(pid)


def test_a_process_without_a_pool_left_ends() -> None:
    script = (
        "from tests.test_workers import setup\n"
        "from treecaps.workers import WorkerPool\n"
        "pool = WorkerPool(2, setup)\n"
        "print(pool.submit(('number', 1)).result())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_worker_that_died_while_it_waited_costs_no_task() -> None:
    with pool() as some:
        pid = int(str(some.submit(("pid", 0)).result()))
        os.kill(pid, signal.SIGKILL)
        while is_running(pid):
            time.sleep(0.01)
        assert some.submit(("number", 1)).result() == 1
