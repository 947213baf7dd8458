"""Parsing many programs in several processes, in order and in bounded memory."""

import gc
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from treecaps.chunks import chunked
from treecaps.cluster import NodeWork, RayCluster, Workers
from treecaps.errors import DataError, Failure, ProgramError
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.frontends.base import Frontend, describe_timeout, time_limit
from treecaps.syntax.languages import LANGUAGES, Language, register
from treecaps.syntax.program import Item, Program, ProgramFile
from treecaps.syntax.tree import Tree
from treecaps.workers import NO_ITEM, Pending, Pool, Timer, Work, WorkerLostError, WorkerPool

_Result = TypeVar("_Result")

Chunk = list[Item]
Outcome = tuple[Program, Tree] | Failure
"""What was parsed and its tree, or what is wrong with it."""
Change = Callable[[Program], Program]
"""Returns what is parsed instead of a program."""


class Parsed(NamedTuple):
    """Some programs that a worker has parsed, in order, and the seconds that it took."""

    outcomes: list[Outcome]
    seconds: float


Finish = Callable[[Parsed], _Result]
"""What a worker makes of some programs that it has parsed; it is called in the worker."""

_CHUNK_PROGRAMS = 128
_CHUNK_BYTES = 1 << 18
_GRACE = 1.0
"""How many seconds later than its time limit a parser is ended together with its worker."""


def parse_in_chunks(
    programs: Iterable[Item],
    frontend: str,
    comments: bool,
    workers: Workers,
    finish: Finish[_Result],
    *,
    change: Change | None = None,
    start: Callable[[], None] | None = None,
) -> Generator[_Result]:
    """Parse programs some at a time, and yield what workers make of them, in order.

    Only a few chunks are under way at a time, so memory does not grow with the data.

    Args:
        programs: What to parse; failures pass through.
        frontend: The name of the front end.
        comments: Whether comments become nodes.
        workers: How many processes parse, or a Ray cluster.
        finish: What they make of some programs in a row.
        change: What is done to programs first.
        start: Called first in each worker.
    """
    chunks = chunked(programs, _CHUNK_PROGRAMS, _CHUNK_BYTES, _size)
    languages = tuple(LANGUAGES.values())
    setup = partial(_start_worker, languages, start, frontend, comments, change, finish)
    if not isinstance(workers, RayCluster):
        yield from _run(WorkerPool[Chunk, _Result](workers, setup), chunks)
        return
    versions = get_frontend(frontend, comments=comments).versions()
    pool = workers.pool(partial(_Node[_Result], setup, frontend, versions))
    # Nodes need not see the files that this machine sees.
    with closing(_run(pool, map(_read_all, chunks))) as found:
        for results in found:
            yield from results


def _start_worker(
    languages: Iterable[Language],
    start: Callable[[], None] | None,
    frontend: str,
    comments: bool,
    change: Change | None,
    finish: Finish[_Result],
) -> Work[Chunk, _Result]:
    gc.freeze()  # what was inherited need not be looked through, and copied, again and again
    for language in languages:
        register(language)
    if start:
        start()
    return partial(_parse_chunk, get_frontend(frontend, comments=comments), change, finish)


class _Node(NodeWork[Chunk, list[_Result]]):
    """Does chunks in a process of a node, which has a process of its own that may crash.

    Args:
        setup: Called in that process.
        frontend: The name of the front end.
        versions: Its versions on the machine that the programs are from.
    """

    def __init__(
        self, setup: Callable[[], Work[Chunk, _Result]], frontend: str, versions: Mapping[str, str]
    ) -> None:
        for package, version in get_frontend(frontend).versions().items():
            if version != versions.get(package):
                wanted = versions.get(package)
                raise DataError(f"has {package} {version}; install {wanted} there, as it is here")
        self._pool = WorkerPool[Chunk, _Result](1, setup)

    def do(self, chunk: Chunk) -> list[_Result]:
        return list(_finish(chunk, self._pool.submit(chunk), self._pool))

    def close(self) -> None:
        self._pool.close()


def _run(pool: Pool[Chunk, _Result], chunks: Iterable[Chunk]) -> Generator[_Result]:
    with closing(pool):
        for chunk, pending in pool.submit_all(chunks):
            yield from _finish(chunk, pending, pool)


def parse_programs(
    programs: Iterable[Item],
    frontend: str,
    *,
    comments: bool = False,
    change: Change | None = None,
    workers: Workers = 1,
) -> Generator[Tree | Failure]:
    """Parse programs in other processes, in order: no parser takes this one down with it."""
    found = parse_in_chunks(programs, frontend, comments, workers, _only_trees, change=change)
    tables: dict[tuple[str, ...], tuple[str, ...]] = {}
    with closing(found):
        for one in chain.from_iterable(found):
            if isinstance(one, Failure):
                yield one
            else:
                # Every chunk brings the same names of kinds; they are kept once.
                yield replace(one, kinds=tables.setdefault(one.kinds, one.kinds))


def _only_trees(parsed: Parsed) -> list[Tree | Failure]:
    return [one if isinstance(one, Failure) else one[1] for one in parsed.outcomes]


def _finish(
    chunk: Chunk, pending: Pending[_Result], pool: Pool[Chunk, _Result]
) -> Iterator[_Result]:
    """Yield the results of a chunk, in order, around programs that cost a worker its life."""
    parts = [(chunk, pending)]
    while parts:
        chunk, pending = parts.pop()
        try:
            yield pending.result()
        except WorkerLostError as lost:
            if lost.item == NO_ITEM:
                halves = _halve(chunk)
                parts += [(half, pool.submit(half)) for half in reversed(halves)]
                continue
            before, program, after = chunk[: lost.item], chunk[lost.item], chunk[lost.item + 1 :]
            failure = None
            if isinstance(program, ProgramFile):
                program = program.read()
            if lost.timed_out and isinstance(program, Program):
                failure = Failure(program.id, "timeout", describe_timeout(program.text))
            elif len(chunk) == 1:
                failure = Failure(program.id, "crash", "the parser crashed on it")
            # What else than the program ended the worker does not end the next one too.
            again: list[Chunk] = [after, [failure or program], before]
            parts += [(part, pool.submit(part)) for part in again if part]


def _halve(chunk: Chunk) -> list[Chunk]:
    """Divide programs that cost a worker its life after it had parsed them; one alone failed."""
    if len(chunk) == 1:
        name = chunk[0].id
        return [[Failure(name, "crash", "the process that looked at it died, perhaps of memory")]]
    middle = len(chunk) // 2
    return [chunk[:middle], chunk[middle:]]


def _size(program: Item) -> int:
    if isinstance(program, ProgramFile):
        try:
            return min(os.stat(program.path).st_size, program.max_bytes)
        except OSError:
            return 0
    return len(program.text) if isinstance(program, Program) else 0


def _parse_chunk(
    parser: Frontend,
    change: Change | None,
    finish: Finish[_Result],
    chunk: Chunk,
    timer: Timer,
) -> _Result:
    outcomes: list[Outcome] = []
    begun = time.perf_counter()
    for number, item in enumerate(chunk):
        program = _read(item, timer)
        if isinstance(program, Program):
            # Parsers that can keep to the limit by themselves do; the timer ends the others.
            timer.start(time_limit(program.text) + _GRACE, number)
            try:
                shown = change(program) if change else program
                outcomes.append((shown, parser.parse(shown)))
            except ProgramError as error:
                outcomes.append(Failure(program.id, error.code, str(error)))
        else:
            outcomes.append(program)
    timer.pause()
    return finish(Parsed(outcomes, time.perf_counter() - begun))


def _read_all(chunk: Chunk) -> Chunk:
    return [item.read() if isinstance(item, ProgramFile) else item for item in chunk]


def _read(item: Item, timer: Timer) -> Program | Failure:
    if not isinstance(item, ProgramFile):
        return item
    timer.pause()  # a slow disk is not the fault of the program before
    return item.read()
