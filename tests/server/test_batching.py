import asyncio
import threading
from collections.abc import Sequence

import pytest

from treecaps.server.batching import Batcher


def _run(batcher: Batcher[int, int], jobs: Sequence[int]) -> list[int | BaseException]:
    async def ask() -> list[int | BaseException]:
        return await asyncio.gather(*map(batcher.answer, jobs), return_exceptions=True)

    return asyncio.run(ask())


class _Recorder:
    """Squares numbers, once it is let, and remembers which it was given together."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.together: list[list[int]] = []

    def __call__(self, jobs: Sequence[int]) -> list[int]:
        self.go.wait()
        self.together.append(list(jobs))
        if 13 in jobs:
            raise ValueError("unlucky")
        return [job * job for job in jobs]


@pytest.mark.parametrize("most", [1, 3, 100])
def test_what_waits_is_done_together_in_order(most: int) -> None:
    work = _Recorder()
    batcher = Batcher(work, most)
    threading.Timer(0.2, work.go.set).start()
    assert _run(batcher, range(10)) == [job * job for job in range(10)]
    assert [job for jobs in work.together for job in jobs] == list(range(10))
    assert max(map(len, work.together)) <= most
    assert len(work.together) <= 2 + 9 // most
    batcher.close()


def test_heavy_jobs_are_done_in_smaller_lots() -> None:
    work = _Recorder()
    batcher = Batcher(work, 100, weigh=lambda job: job, heaviest=20)
    threading.Timer(0.2, work.go.set).start()
    _run(batcher, [1, 9, 9, 9, 50, 1])
    assert all(sum(jobs) <= 20 or len(jobs) == 1 for jobs in work.together)
    assert [job for jobs in work.together for job in jobs] == [1, 9, 9, 9, 50, 1]
    batcher.close()


def test_one_that_fails_does_not_spoil_the_others() -> None:
    work = _Recorder()
    work.go.set()
    batcher = Batcher(work, 100)
    found = _run(batcher, [3, 13, 4])
    assert (found[0], found[2]) == (9, 16)
    assert isinstance(found[1], ValueError)
    assert _run(batcher, [5]) == [25]
    batcher.close()


def test_what_nobody_waits_for_is_left_undone() -> None:
    work = _Recorder()
    batcher = Batcher(work, 1)

    async def ask() -> int:
        first, second, third = (asyncio.ensure_future(batcher.answer(job)) for job in (1, 2, 3))
        await asyncio.sleep(0.1)
        second.cancel()
        await asyncio.sleep(0)
        work.go.set()
        return await first + await third

    assert asyncio.run(ask()) == 10
    assert work.together == [[1], [3]]
    batcher.close()


def test_what_waits_is_done_before_the_end() -> None:
    work = _Recorder()
    batcher = Batcher(work, 2)
    threading.Timer(0.2, work.go.set).start()

    async def ask() -> list[int]:
        asked = [asyncio.ensure_future(batcher.answer(job)) for job in range(5)]
        await asyncio.sleep(0)
        await asyncio.to_thread(batcher.close)
        return await asyncio.gather(*asked)

    assert asyncio.run(ask()) == [0, 1, 4, 9, 16]
