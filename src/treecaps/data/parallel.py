"""Parsing many programs in several processes, in order and in bounded memory."""

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from treecaps.errors import Failure, ProgramError
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.frontends.base import Frontend
from treecaps.syntax.languages import LANGUAGES, Language, register
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Ints, Tree

_NOTHING = np.zeros(0, np.int32)
_INTS = pa.list_(pa.int32())
_LISTS = ("kind", "parent", "start", "end", "errors")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("label", pa.string()),
        ("language", pa.string()),
        ("text", pa.binary()),
        ("replaced", pa.int32()),
        ("kind", _INTS),
        ("parent", _INTS),
        ("start", _INTS),
        ("end", _INTS),
        ("errors", _INTS),
        ("failure_code", pa.string()),
        ("failure", pa.string()),
    ]
)
"""One row a program. A failed program has its ``failure_code`` and no nodes."""

Chunk = list[Program | Failure]
Parsed = tuple[pa.RecordBatch, list[str]]
Change = Callable[[Program], Program]
"""Returns what is parsed instead of a program; a function that other processes find by its name."""
Setting = tuple[str, bool, Change | None]
"""The front end's name, whether comments become nodes, what is done to programs first."""

_CHUNK_PROGRAMS = 128
_CHUNK_BYTES = 1 << 17
_AHEAD = 8
"""How many chunks a worker may be ahead of whoever takes what they hold."""


def parse_in_batches(
    programs: Iterable[Program | Failure],
    frontend: str,
    comments: bool,
    kinds: dict[str, int],
    workers: int,
    *,
    change: Change | None = None,
) -> Generator[pa.RecordBatch]:
    """Parse programs into record batches, in order.

    Only a few chunks are under way at a time, so memory does not grow with the data.

    Args:
        programs: What to parse; failures pass through.
        frontend: The name of the front end.
        comments: Whether comments become nodes.
        kinds: Numbers of kinds, shared by all batches; new kinds are added.
        workers: How many processes parse.
        change: What is done to programs first.
    """
    parsed = _parse_in_pool(programs, (frontend, comments, change), workers)
    for batch, names in parsed:
        # A worker numbers the kinds as it meets them; here they get their numbers for good.
        column = batch.column("kind")
        numbers = np.array([kinds.setdefault(name, len(kinds)) for name in names], np.int32)
        values = numbers[column.values.to_numpy()]
        place = SCHEMA.get_field_index("kind")
        yield batch.set_column(
            place, SCHEMA.field(place), pa.ListArray.from_arrays(column.offsets, pa.array(values))
        )


def parse_programs(
    programs: Iterable[Program | Failure],
    frontend: str,
    *,
    comments: bool = False,
    change: Change | None = None,
    workers: int = 1,
) -> Generator[Tree | Failure]:
    """Parse programs in other processes, in order: no parser takes this one down with it."""
    kinds: dict[str, int] = {}
    with closing(
        parse_in_batches(programs, frontend, comments, kinds, workers, change=change)
    ) as batches:
        for batch in map(Batch, batches):
            table = tuple(kinds)
            for row in range(batch.rows):
                yield batch.failure(row) or batch.tree(row, table, frontend)


class Batch:
    """Views of one record batch: for each list column its values, and where each row's begin."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.rows: int = batch.num_rows
        self._batch = batch
        self.values: dict[str, Ints] = {}
        self.offsets: dict[str, Ints] = {}
        for name in _LISTS:
            column = batch.column(name)
            self.values[name] = column.values.to_numpy()
            self.offsets[name] = column.offsets.to_numpy()

    def tree(self, row: int, kinds: tuple[str, ...], frontend: str) -> Tree:
        """Return the tree of one row."""
        arrays = {
            name: values[self.offsets[name][row] : self.offsets[name][row + 1]]
            for name, values in self.values.items()
        }
        return Tree(
            language=self._batch.column("language")[row].as_py(),
            frontend=frontend,
            text=self._batch.column("text")[row].as_py(),
            kinds=kinds,
            **arrays,
        )

    def failure(self, row: int) -> Failure | None:
        """Return what is wrong with one row, if anything is."""
        names = ("id", "failure_code", "failure")
        values = [self._batch.column(name)[row].as_py() for name in names]
        return None if values[1] is None else Failure(*values)


def _parse_in_pool(
    programs: Iterable[Program | Failure], setting: Setting, workers: int
) -> Iterator[Parsed]:
    def new_pool(size: int) -> ProcessPoolExecutor:
        initargs = (*setting, tuple(LANGUAGES.values()))
        return ProcessPoolExecutor(size, initializer=_start_worker, initargs=initargs)

    waiting: deque[tuple[Chunk, Future[Parsed]]] = deque()
    pool = new_pool(workers)

    def submit(chunk: Chunk) -> Future[Parsed]:
        try:
            return pool.submit(_work, chunk)
        except BrokenProcessPool as error:
            broken: Future[Parsed] = Future()
            broken.set_exception(error)
            return broken

    def finish_oldest() -> Iterator[Parsed]:
        nonlocal pool
        chunk, future = waiting.popleft()
        try:
            yield future.result()
        except BrokenProcessPool:
            # Some program took a worker down, and all chunks under way with it. Go through the
            # oldest program by program, and start the others again.
            pool.shutdown()
            yield from _parse_carefully(chunk, new_pool)
            pool = new_pool(workers)
            again = [(other, submit(other)) for other, _ in waiting]
            waiting.clear()
            waiting.extend(again)

    try:
        for chunk in _chunks(programs):
            if len(waiting) > _AHEAD * workers:
                yield from finish_oldest()
            waiting.append((chunk, submit(chunk)))
        while waiting:
            yield from finish_oldest()
    except BaseException:
        _kill(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _parse_carefully(
    chunk: Chunk, new_pool: Callable[[int], ProcessPoolExecutor]
) -> Iterator[Parsed]:
    pool: ProcessPoolExecutor | None = None
    try:
        for program in chunk:
            pool = pool or new_pool(1)
            try:
                yield pool.submit(_work, [program]).result()
            except BrokenProcessPool:
                pool.shutdown()
                pool = None
                yield _to_batch([Failure(program.id, "crash", "the parser crashed on it")])
    except BaseException:
        _kill(pool)
        raise
    finally:
        if pool:
            pool.shutdown()


def _kill(pool: ProcessPoolExecutor | None) -> None:
    """End a pool's workers at once: after an interruption nobody waits for their work."""
    if not pool:
        return
    # Of one that dies in the midst of a result, the pool would wait for the rest for ever, as long
    # as anybody could write it, this process among them.
    if pool._result_queue is not None:  # as it is after the pool has been shut down
        pool._result_queue._writer.close()  # type: ignore[attr-defined]
    for process in list((pool._processes or {}).values()):
        process.kill()


def _chunks(programs: Iterable[Program | Failure]) -> Iterator[Chunk]:
    chunk: Chunk = []
    size = 0
    for program in programs:
        chunk.append(program)
        size += len(program.text) if isinstance(program, Program) else 0
        if len(chunk) == _CHUNK_PROGRAMS or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


_parser: Frontend | None = None
_change: Change | None = None


def _start_worker(
    frontend: str, comments: bool, change: Change | None, languages: tuple[Language, ...]
) -> None:
    global _parser, _change  # noqa: PLW0603
    # The parent hears Ctrl-C and ends its workers; should it be killed, they end by themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    gc.freeze()  # what was inherited need not be looked through, and copied, again and again
    for language in languages:
        register(language)
    _parser = get_frontend(frontend, comments=comments)
    _change = change


def end_with_parent() -> None:
    """End this process as soon as the one that started it does."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def _work(chunk: Chunk) -> Parsed:
    assert _parser is not None
    return _parse_chunk(_parser, chunk, _change)


def _parse_chunk(parser: Frontend, chunk: Chunk, change: Change | None) -> Parsed:
    results: list[tuple[Program, Tree] | Failure] = []
    for program in chunk:
        if isinstance(program, Program):
            try:
                shown = change(program) if change else program
                results.append((shown, parser.parse(shown)))
            except ProgramError as error:
                results.append(Failure(program.id, error.code, str(error)))
        else:
            results.append(program)
    return _to_batch(results)


def _to_batch(results: Sequence[tuple[Program, Tree] | Failure]) -> Parsed:
    """Return results as a record batch, and the names of the kinds as it numbers them."""
    kinds: dict[str, int] = {}
    tables: dict[int, Ints] = {}
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for result in results:
        row: dict[str, Any] = dict.fromkeys(_LISTS, _NOTHING)
        if isinstance(result, Failure):
            row |= {"id": result.id, "failure_code": result.code, "failure": result.message}
        else:
            program, tree = result
            # Trees of one grammar share one table of kinds, which is worth the work once.
            table = tables.get(id(tree.kinds))
            if table is None:
                numbers = [kinds.setdefault(name, len(kinds)) for name in tree.kinds]
                table = tables[id(tree.kinds)] = np.array(numbers, np.int32)
            row |= {
                "id": program.id,
                "label": program.label,
                "language": program.language,
                "text": program.text,
                "replaced": program.replaced,
                "kind": table[tree.kind],
                **{name: getattr(tree, name) for name in ("parent", "start", "end", "errors")},
            }
        for name, column in columns.items():
            column.append(row.get(name))
    columns["kind"], names = _only_used(columns["kind"], list(kinds))
    arrays = [_to_column(SCHEMA.field(name), column) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), names


def _only_used(columns: list[Ints], names: list[str]) -> tuple[list[Ints], list[str]]:
    """Give kinds new numbers, without those that do not occur: a grammar names many more."""
    used = np.zeros(len(names), bool)
    for column in columns:
        used[column] = True
    numbers = (np.cumsum(used) - 1).astype(np.int32)
    return [numbers[column] for column in columns], [names[k] for k in np.flatnonzero(used)]


def _to_column(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_string(field.type):
        # Names of files need not be text.
        values = [value and value.encode("utf-8", "replace").decode() for value in values]
    if field.type != _INTS:
        return pa.array(values, field.type)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(values)))
