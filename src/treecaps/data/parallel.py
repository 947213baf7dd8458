"""Parsing many programs in several processes, in order and in bounded memory."""

import gc
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from treecaps.chunks import chunked
from treecaps.errors import Failure, ProgramError
from treecaps.syntax.frontends import get_frontend
from treecaps.syntax.frontends.base import Frontend, describe_timeout, time_limit
from treecaps.syntax.languages import LANGUAGES, Language, register
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Ints, Tree
from treecaps.text import replace_surrogates
from treecaps.workers import Timer, WorkerLostError, WorkerPool

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
_GRACE = 1.0
"""How many seconds later than its time limit a parser is ended together with its worker."""


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
    setup = partial(_start_worker, *setting, tuple(LANGUAGES.values()))
    pool = WorkerPool[Chunk, Parsed](workers, setup)
    waiting: deque[tuple[Chunk, Future[Parsed]]] = deque()
    with closing(pool):
        for chunk in chunked(programs, _CHUNK_PROGRAMS, _CHUNK_BYTES, _size):
            if len(waiting) > _AHEAD * workers:
                yield from _finish(*waiting.popleft(), pool)
            waiting.append((chunk, pool.submit(chunk)))
        while waiting:
            yield from _finish(*waiting.popleft(), pool)


def _finish(
    chunk: Chunk, future: "Future[Parsed]", pool: WorkerPool[Chunk, Parsed]
) -> Iterator[Parsed]:
    """Yield the results of a chunk, in order, around programs that cost a worker its life."""
    parts = [(chunk, future)]
    while parts:
        chunk, future = parts.pop()
        try:
            yield future.result()
        except WorkerLostError as lost:
            before, program, after = chunk[: lost.item], chunk[lost.item], chunk[lost.item + 1 :]
            failure = None
            if lost.timed_out and isinstance(program, Program):
                failure = Failure(program.id, "timeout", describe_timeout(program.text))
            elif len(chunk) == 1:
                failure = Failure(program.id, "crash", "the parser crashed on it")
            # What else than the program ended the worker does not end the next one too.
            again = [after, [failure or program], before]
            parts += [(part, pool.submit(part)) for part in again if part]


def _size(program: Program | Failure) -> int:
    return len(program.text) if isinstance(program, Program) else 0


def _start_worker(
    frontend: str, comments: bool, change: Change | None, languages: tuple[Language, ...]
) -> Callable[[Chunk, Timer], Parsed]:
    gc.freeze()  # what was inherited need not be looked through, and copied, again and again
    for language in languages:
        register(language)
    return partial(_parse_chunk, get_frontend(frontend, comments=comments), change)


def _parse_chunk(parser: Frontend, change: Change | None, chunk: Chunk, timer: Timer) -> Parsed:
    results: list[tuple[Program, Tree] | Failure] = []
    for number, program in enumerate(chunk):
        if isinstance(program, Program):
            # Parsers that can keep to the limit by themselves do; the timer ends the others.
            timer.start(time_limit(program.text) + _GRACE, number)
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
        values = [value and replace_surrogates(value) for value in values]
    if field.type != _INTS:
        return pa.array(values, field.type)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(values)))
