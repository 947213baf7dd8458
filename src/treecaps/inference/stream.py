"""Programs through a model, some at a time, so there may be many."""

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from treecaps.cluster import Workers
from treecaps.data.parallel import Parsed, parse_in_chunks
from treecaps.errors import Failure, UsageError
from treecaps.inference.units import CodeUnit, units_of
from treecaps.models.engine import set_num_threads
from treecaps.models.trained import TrainedModel
from treecaps.syntax.functions import Function
from treecaps.syntax.program import Item, Program, ProgramFile

_Found = TypeVar("_Found")

Answer = Callable[[list[CodeUnit]], Iterable[_Found]]
"""Finds something for each of some programs or functions."""


def stream(
    model: TrainedModel,
    programs: Iterable[Item | str | Path],
    answer: Answer[_Found],
    *,
    functions: bool = False,
    skip: Callable[[Function], bool] | None = None,
    workers: Workers | None = None,
    times: dict[str, float] | None = None,
) -> Generator[_Found | Failure]:
    """Yield what is found in programs, in order.

    Programs are parsed in other processes. These answer too, if the model's engine can run there.

    Args:
        model: What answers.
        programs: Programs, or files to read; failures pass through.
        answer: Finds something for each program.
        functions: Whether to look at each function of a program, not at the whole.
        skip: Which functions are not looked at.
        workers: How many processes there are, or a ``RayCluster``; as many processes as there are
            cores by default.
        times: Is told the seconds spent so far on ``parsing`` and ``network``, by all processes.
    """
    if isinstance(programs, str | bytes | Path | Program | ProgramFile | Failure):
        raise UsageError("many programs are taken; give a list, even for one: [program]")
    finish = partial(_finish, answer, functions, skip)
    parse = partial(
        parse_in_chunks,
        map(_item, programs),
        model.frontend,
        model.comments,
        workers or os.cpu_count() or 1,
    )
    if getattr(model.engine, "fork_safe", False):  # engines of others need not say
        return _flatten(parse(finish, start=partial(set_num_threads, 1)), times)
    return _flatten(_finish_here(parse(_keep), finish), times)


class _Answers(NamedTuple, Generic[_Found]):
    """What was found in some programs, and the seconds that it took."""

    found: list[_Found | Failure]
    parsing: float
    network: float


def _finish(
    answer: Answer[_Found],
    functions: bool,
    skip: Callable[[Function], bool] | None,
    parsed: Parsed,
) -> _Answers[_Found]:
    """Answer for some programs that are parsed, around those that failed."""
    begun = time.perf_counter()
    units: list[CodeUnit | Failure] = []
    for one in parsed.outcomes:
        if isinstance(one, Failure):
            units.append(one)
        else:
            units += units_of(one[0].id, one[1], functions, skip)
    answers = iter(answer([unit for unit in units if isinstance(unit, CodeUnit)]))
    found = [unit if isinstance(unit, Failure) else next(answers) for unit in units]
    return _Answers(found, parsed.seconds, time.perf_counter() - begun)


def _keep(parsed: Parsed) -> Parsed:
    return parsed


def _finish_here(
    parsed: Generator[Parsed], finish: Callable[[Parsed], _Answers[_Found]]
) -> Generator[_Answers[_Found]]:
    with closing(parsed):
        yield from map(finish, parsed)


def _flatten(
    chunks: Generator[_Answers[_Found]], times: dict[str, float] | None
) -> Generator[_Found | Failure]:
    with closing(chunks):
        for found, parsing, network in chunks:
            if times is not None:
                times["parsing"] = times.get("parsing", 0.0) + parsing
                times["network"] = times.get("network", 0.0) + network
            yield from found


def _item(item: Item | str | Path) -> Item:
    return ProgramFile(item, str(item)) if isinstance(item, str | Path) else item
