"""Worker processes for calls that may crash or never return."""

import ctypes
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from ctypes import Array, c_double
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.sharedctypes import RawArray
from typing import Any, Generic, Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
_Result_co = TypeVar("_Result_co", covariant=True)
Shared = Array[c_double]

NO_ITEM = -1
_DEADLINE, _ITEM = 0, 1  # what the numbers shared with a worker are
_SET_PARENT_DEATH_SIGNAL = 1  # as prctl numbers it
_START_SECONDS = 60.0
"""How long a worker may take to start, to read a task and to write its result."""
_GRACE = 2.0
"""How much later than its own alarm a worker is killed from outside."""
_CHECK_SECONDS = 0.5
_AHEAD = 8
"""How many tasks a worker may be ahead of whoever takes the results."""

# A worker must not inherit the ends of a pipe that is just being made for another: the pipe would
# stay open after the other has died.
_starting = threading.Lock()


class WorkerLostError(Exception):
    """A task whose worker died or had to be killed.

    Args:
        item: The item of the task that it was at, or ``NO_ITEM``.
        timed_out: Whether that took too long.
    """

    def __init__(self, item: int, timed_out: bool) -> None:
        super().__init__("a worker process was lost")
        self.item, self.timed_out = item, timed_out


class Timer:
    """Ends a worker process that takes too long, even inside a call that never returns."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def start(self, seconds: float, item: int = 0) -> None:
        """Begin an item of the task, which has so many seconds."""
        self._shared[_ITEM] = item
        self._shared[_DEADLINE] = time.monotonic() + seconds
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def pause(self) -> None:
        """End the last item; what comes next is of no item, and takes as long as it does."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._shared[_ITEM], self._shared[_DEADLINE] = NO_ITEM, math.inf

    def stop(self) -> None:
        """End the last item."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._shared[_DEADLINE] = time.monotonic() + _START_SECONDS


Work = Callable[[Task, Timer], Result]


class Pending(Protocol[_Result_co]):
    """A task that is being done, such as a ``Future``."""

    def result(self) -> _Result_co:
        """Wait for the result; ``WorkerLostError`` if the worker does not live to return it."""


class Pool(ABC, Generic[Task, Result]):
    """Workers that do tasks, wherever they are."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tasks are done at a time."""

    @abstractmethod
    def submit(self, task: Task) -> Pending[Result]:
        """Have a worker do a task."""

    @abstractmethod
    def close(self) -> None:
        """End; tasks that were not done are lost or cancelled."""

    def submit_all(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Pending[Result]]]:
        """Have workers do tasks, and yield them in order.

        Workers are a few tasks ahead of whoever takes the results, so memory does not grow with
        their number.
        """
        waiting: deque[tuple[Task, Pending[Result]]] = deque()
        for task in tasks:
            if len(waiting) > _AHEAD * self.size:
                yield waiting.popleft()
            waiting.append((task, self.submit(task)))
        while waiting:
            yield waiting.popleft()


class WorkerPool(Pool[Task, Result]):
    """Worker processes, each with a thread that waits for it.

    A worker that dies or is late is replaced when the next task comes, and only its own task is
    lost. Workers start when they are first needed and end with this process, however that ends.

    Args:
        size: How many processes.
        setup: Called in a new worker; returns the function that does its tasks.
        context: How processes are started: the name of a start method of ``multiprocessing``.
    """

    def __init__(
        self, size: int, setup: Callable[[], Work[Task, Result]], context: str = "fork"
    ) -> None:
        self._size, self._setup = size, setup
        self._context = multiprocessing.get_context(context)
        self._threads = ThreadPoolExecutor(size, "worker")
        self._own = threading.local()
        self._workers: set[_Worker] = set()
        self._changing = threading.Lock()
        self._closed = False

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self._size

    def submit(self, task: Task) -> "Future[Result]":
        """Have a worker do a task; ``WorkerLostError`` if it does not live to."""
        return self._threads.submit(self._run, task)

    def is_stuck(self, seconds: float) -> bool:
        """Whether all workers have been at their tasks for longer than some seconds."""
        latest = time.monotonic() - seconds
        with self._changing:
            return sum(worker.busy_since < latest for worker in self._workers) >= self._size

    def close(self) -> None:
        """End all workers at once; tasks that were not done are lost or cancelled."""
        with self._changing:
            self._closed = True
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown(cancel_futures=True)

    def _run(self, task: Task) -> Result:
        good, result = self._worker().run(task)
        if not good:
            raise result
        found: Result = result
        return found

    def _worker(self) -> "_Worker":
        """Return the worker of this thread, a new one if it has none that lives."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None or not worker.is_alive():
            new = self._own.worker = _Worker(self._context, self._setup)
            with self._changing:
                self._workers = {*(self._workers - {worker}), new}
                if self._closed:
                    new.kill()
            return new
        return worker


class _Worker:
    """A process, and this side of the pipe to it."""

    def __init__(self, context: BaseContext, setup: Callable[[], Work[Any, Any]]) -> None:
        self.busy_since = math.inf
        self._shared: Shared = RawArray("d", 2)
        with _starting:
            self._pipe, other = context.Pipe()
            self._process = context.Process(  # type: ignore[attr-defined]
                target=_main, args=(other, self._shared, setup), daemon=True
            )
            self._process.start()
            other.close()

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def kill(self) -> None:
        self._process.kill()

    def run(self, task: Any) -> tuple[bool, Any]:
        """Send a task and wait for its result or error, for as long as the worker may take."""
        self._shared[:] = [time.monotonic() + _START_SECONDS, 0.0]
        self.busy_since = time.monotonic()
        try:
            self._pipe.send(task)
            while not wait((self._pipe, self._process.sentinel), _CHECK_SECONDS):
                if time.monotonic() > self._shared[_DEADLINE] + _GRACE:
                    raise self._lost(late=True)
            answer: tuple[bool, Any] = self._pipe.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        finally:
            self.busy_since = math.inf
        return answer

    def _lost(self, *, late: bool = False) -> WorkerLostError:
        """Make sure that the process is gone, and say where it was."""
        if late:
            self.kill()
        self._pipe.close()
        self._process.join(_START_SECONDS)
        timed_out = late or self._process.exitcode == -signal.SIGALRM
        return WorkerLostError(int(self._shared[_ITEM]), timed_out)


def _main(pipe: Connection, shared: Shared, setup: Callable[[], Work[Any, Any]]) -> None:
    """Do tasks until the process is killed: the parent hears signals and ends its workers."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    end_with_parent()
    timer = Timer(shared)
    work: Work[Any, Any] | None = None
    with suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            try:
                work = work or setup()
                answer = True, work(task, timer)
            except Exception as error:  # whoever waits for the result gets it
                error.add_note(traceback.format_exc())
                answer = False, error
            timer.stop()
            pipe.send(answer)


def end_with_parent() -> None:
    """Have the system kill this process as soon as the thread that started it ends.

    A thread that watches the parent would not do: a call that never returns may keep Python's
    lock, and with it all other threads, for ever.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent and not parent.is_alive():  # it died before that
        os._exit(1)
