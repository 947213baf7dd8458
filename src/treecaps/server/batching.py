"""Jobs of many requests, done together by one thread."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class _Waiting(NamedTuple, Generic[Job, Answer]):
    job: Job
    future: "Future[Answer]"


class Batcher(Generic[Job, Answer]):
    """A thread that takes all jobs that wait, up to a bound, and does them in one go.

    It never waits for more to come: while it works on some, others gather.

    Args:
        work: Does jobs, and returns an answer for each.
        most: How many it does together, at most.
        weigh: Tells how heavy a job is.
        heaviest: How heavy those may be that it does together; one job may be heavier.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Job]], Sequence[Answer]],
        most: int,
        weigh: Callable[[Job], int] = lambda _: 0,
        heaviest: int = 1 << 18,
    ) -> None:
        self._work, self._most, self._weigh, self._heaviest = work, most, weigh, heaviest
        self._jobs: deque[_Waiting[Job, Answer]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="batcher", daemon=True)
        self._thread.start()

    async def answer(self, job: Job) -> Answer:
        """Have a job done; one that is cancelled before its turn is left undone."""
        waiting = _Waiting[Job, Answer](job, Future())
        with self._changed:
            self._jobs.append(waiting)
            self._changed.notify()
        return await asyncio.wrap_future(waiting.future)

    def close(self, seconds: float | None = None) -> None:
        """Do what waits and end the thread; go on without it if it takes longer than that."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds and max(seconds, 0))

    def _run(self) -> None:
        while taken := self._take():
            self._do(taken)
            del taken  # or the last jobs would stay in memory until others come

    def _take(self) -> list[_Waiting[Job, Answer]]:
        """Wait for jobs and return some, or nothing when all is over."""
        taken: list[_Waiting[Job, Answer]] = []
        weight = 0
        while not taken:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closed)
                if not self._jobs:
                    return []
                while self._jobs and len(taken) < self._most:
                    weight += self._weigh(self._jobs[0].job)
                    if taken and weight > self._heaviest:
                        break
                    waiting = self._jobs.popleft()
                    if waiting.future.set_running_or_notify_cancel():
                        taken.append(waiting)
        return taken

    def _do(self, taken: list[_Waiting[Job, Answer]]) -> None:
        try:
            answers = self._work([waiting.job for waiting in taken])
        except Exception as error:  # whoever asked gets it, and the thread goes on
            if len(taken) == 1:
                taken[0].future.set_exception(error)
                return
            # One job must not spoil the others.
            for waiting in taken:
                self._do([waiting])
            return
        for waiting, answer in zip(taken, answers, strict=True):
            waiting.future.set_result(answer)
