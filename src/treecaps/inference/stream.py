"""Programs through a model, some at a time, so there may be many."""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar

from treecaps.chunks import chunked
from treecaps.data.parallel import parse_programs
from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.inference.units import CodeUnit, units_of
from treecaps.inputs.base import Input
from treecaps.models.trained import TrainedModel
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

# What is looked at together, and out of how much more it is chosen by language.
_PROGRAMS, _NODES = 256, 1 << 18
_CHOICE = 4
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def stream(
    model: TrainedModel,
    programs: Iterable[Program | Failure | str | Path],
    predict: Callable[[Input], Sequence[_Found]],
    *,
    functions: bool = False,
    workers: int | None = None,
    times: dict[str, float] | None = None,
) -> Generator[tuple[CodeUnit, _Found] | Failure]:
    """Yield what is found in programs, in order.

    Args:
        model: What shares the trees.
        programs: Programs, or files to read; failures pass through.
        predict: Finds something for each program.
        functions: Whether to predict at each function of a program, not at the whole.
        workers: How many processes parse; as many as there are cores by default.
        times: Is told the seconds spent so far on ``parsing`` (waiting for trees) and ``network``.
    """
    if isinstance(programs, str | bytes | Path | Program | Failure):
        raise UsageError("many programs are taken; give a list, even for one: [program]")
    clock = _Clock({} if times is None else times)
    return _stream(model, programs, predict, functions, workers or os.cpu_count() or 1, clock)


def _stream(
    model: TrainedModel,
    programs: Iterable[Program | Failure | str | Path],
    predict: Callable[[Input], Sequence[_Found]],
    functions: bool,
    workers: int,
    clock: "_Clock",
) -> Generator[tuple[CodeUnit, _Found] | Failure]:
    names: deque[str] = deque()  # of the programs that are being parsed

    def read() -> Iterator[Program | Failure]:
        for item in programs:
            program = item if isinstance(item, Program | Failure) else _read(item)
            names.append(program.id)
            yield program

    def prepare(results: Iterable[Tree | Failure]) -> Iterator[_Prepared]:
        for chunk in chunked(results, _CHOICE * _PROGRAMS, _CHOICE * _NODES, _nodes):
            units = [
                unit for result in chunk for unit in units_of(names.popleft(), result, functions)
            ]
            trees = [
                (unit.tree, number)
                for number, unit in enumerate(units)
                if isinstance(unit, CodeUnit)
            ]
            # Programs of one language share more windows, and each is looked at only once.
            trees.sort(key=lambda item: item[0].language)
            parts = list(chunked(trees, _PROGRAMS, _NODES, lambda item: len(item[0]))) or [[]]
            for part in parts:
                inputs = model.read_trees([tree for tree, _ in part])
                numbers = [number for _, number in part]
                yield _Prepared(units, numbers, inputs, part is parts[-1])

    parsed = parse_programs(read(), model.frontend, comments=model.comments, workers=workers)
    clock.start("parsing")
    with closing(parsed), closing(_ahead(prepare(parsed))) as prepared:
        found: dict[int, _Found] = {}
        for units, numbers, inputs, complete in prepared:
            clock.start("network")
            if numbers:
                found.update(zip(numbers, predict(inputs), strict=True))
            if complete:
                clock.start(None)
                for number, unit in enumerate(units):
                    yield (unit, found[number]) if isinstance(unit, CodeUnit) else unit
                found.clear()
            clock.start("parsing")
        clock.start(None)


def _ahead(items: Iterator[_Item]) -> Generator[_Item]:
    """Yield items while the next one is made in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


class _Clock:
    """Adds up what goes into one thing after the other."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times = times
        self._what: str | None = None
        self._since = 0.0

    def start(self, what: str | None) -> None:
        now = time.perf_counter()
        if self._what:
            self.times[self._what] = self.times.get(self._what, 0.0) + now - self._since
        self._what, self._since = what, now


class _Prepared(NamedTuple):
    """Trees that get their answers together.

    Args:
        units: What of some programs gets answers or has failed, in order.
        numbers: Which of them the trees are of.
        inputs: The trees.
        complete: Whether the others have had their answers before.
    """

    units: list[CodeUnit | Failure]
    numbers: list[int]
    inputs: Input
    complete: bool


def _read(path: str | Path) -> Program | Failure:
    try:
        return Program.read(path)
    except ProgramError as error:
        return Failure(str(path), error.code, str(error))


def _nodes(result: Tree | Failure) -> int:
    return len(result) if isinstance(result, Tree) else 0
