"""Classes of programs, as a trained model sees them."""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from treecaps.data.forest import Forest
from treecaps.data.parallel import parse_programs
from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.models.calibration import UNKNOWN
from treecaps.models.trained import TrainedModel
from treecaps.syntax.functions import find_functions
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

# What is looked at together, and out of how much more it is chosen by language.
_PROGRAMS, _NODES = 256, 1 << 18
_CHOICE = 4
_Item = TypeVar("_Item")


class Candidate(NamedTuple):
    """A class that a program may belong to."""

    label: str
    probability: float
    length: float


@dataclass(frozen=True)
class Classification:
    """What a model says of one program.

    Args:
        id: The program's name.
        label: The class of the program, or ``unknown`` where no class is present enough.
        known: Whether one is.
        guess: The class whose code capsule is the longest, present enough or not.
        probability: Its calibrated probability, if the program is of any of the classes.
        length: The length of its code capsule, from 0 to 1: how present the class is, whatever
            is true of the others.
        top: The classes with the longest code capsules, longest first.
        function: The name of the function that this is about; ``None`` for a whole program.
        line: The line where that begins, from 1.
    """

    id: str
    label: str
    known: bool
    guess: str
    probability: float
    length: float
    top: tuple[Candidate, ...]
    function: str | None = None
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {**vars(self), "top": [candidate._asdict() for candidate in self.top]}
        return {name: value for name, value in values.items() if value is not None}


def classify(
    model: TrainedModel,
    programs: Iterable[Program | Failure | str | Path],
    *,
    top: int = 3,
    functions: bool = False,
    workers: int | None = None,
    times: dict[str, float] | None = None,
) -> Generator[Classification | Failure]:
    """Tell the classes of programs, in order; some at a time, so there may be many.

    Args:
        model: What classifies.
        programs: Programs, or files to read; failures pass through.
        top: How many classes to name for each program.
        functions: Whether to tell the class of each function of a program, not of the whole.
        workers: How many processes parse; as many as there are cores by default.
        times: Is told the seconds spent so far on ``parsing`` (waiting for trees) and ``network``.
    """
    if isinstance(programs, str | bytes | Path | Program | Failure):
        raise UsageError("classify takes many programs; give a list, even for one: [program]")
    if top < 1:
        raise UsageError(f"cannot name {top} classes; name one or more")
    if workers is None:
        # All workers start at once, so one program should not start many.
        most = len(programs) if isinstance(programs, Sized) else _PROGRAMS
        workers = max(1, min(os.cpu_count() or 1, most))
    clock = _Clock({} if times is None else times)
    return _classify(model, programs, top, functions, workers, clock)


def _classify(
    model: TrainedModel,
    programs: Iterable[Program | Failure | str | Path],
    top: int,
    functions: bool,
    workers: int,
    clock: "_Clock",
) -> Generator[Classification | Failure]:
    names: deque[str] = deque()  # of the programs that are being parsed

    def read() -> Iterator[Program | Failure]:
        for item in programs:
            program = item if isinstance(item, Program | Failure) else _read(item)
            names.append(program.id)
            yield program

    def prepare(results: Iterable[Tree | Failure]) -> Iterator[_Prepared]:
        for chunk in _chunks(results, _nodes, _CHOICE):
            pieces = [
                piece for result in chunk for piece in _pieces(names.popleft(), result, functions)
            ]
            trees = [
                (piece.tree, number)
                for number, piece in enumerate(pieces)
                if isinstance(piece, _Piece)
            ]
            # Programs of one language share more windows, and each is looked at only once.
            trees.sort(key=lambda item: item[0].language)
            parts = list(_chunks(trees, lambda item: len(item[0]))) or [[]]
            for part in parts:
                forest = model.forest([tree for tree, _ in part])
                numbers = [number for _, number in part]
                yield _Prepared(pieces, numbers, forest, part is parts[-1])

    parsed = parse_programs(read(), model.frontend, comments=model.comments, workers=workers)
    clock.start("parsing")
    with closing(parsed), closing(_ahead(prepare(parsed))) as prepared:
        answers: dict[int, tuple[Candidate, ...]] = {}
        for pieces, numbers, forest, complete in prepared:
            clock.start("network")
            answers.update(zip(numbers, _answer(model, forest, top), strict=True))
            if complete:
                clock.start(None)
                for number, piece in enumerate(pieces):
                    if isinstance(piece, _Piece):
                        yield _classification(model, answers[number], piece)
                    else:
                        yield piece
                answers.clear()
            clock.start("parsing")
        clock.start(None)


def answer(model: TrainedModel, tree: Tree, name: str = "program", top: int = 3) -> Classification:
    """Tell the class of one program that is parsed."""
    (best,) = _answer(model, model.forest([tree]), top)
    return _classification(model, best, _Piece(name, tree))


def _classification(
    model: TrainedModel, best: "tuple[Candidate, ...]", piece: "_Piece"
) -> Classification:
    known = best[0].length >= model.calibration.threshold
    label = best[0].label if known else UNKNOWN
    return Classification(piece.id, label, known, *best[0], best, piece.function, piece.line)


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


class _Piece(NamedTuple):
    """What gets an answer: a program, or a function of one."""

    id: str
    tree: Tree
    function: str | None = None
    line: int | None = None


class _Prepared(NamedTuple):
    """Trees that get their answers together.

    Args:
        pieces: What of some programs gets answers or has failed, in order.
        numbers: Which of them the trees are of.
        forest: The trees.
        complete: Whether the others have had their answers before.
    """

    pieces: list[_Piece | Failure]
    numbers: list[int]
    forest: Forest
    complete: bool


def _pieces(name: str, result: Tree | Failure, functions: bool) -> list[_Piece | Failure]:
    if isinstance(result, Failure):
        return [replace(result, id=name)]
    if not functions:
        return [_Piece(name, result)]
    found: list[_Piece | Failure] = [
        _Piece(name, function.tree, function.name, function.line)
        for function in find_functions(result)
    ]
    return found or [Failure(name, "functions", "has no functions")]


def _read(path: str | Path) -> Program | Failure:
    try:
        return Program.read(path)
    except ProgramError as error:
        return Failure(str(path), error.code, str(error))


def _nodes(result: Tree | Failure) -> int:
    return len(result) if isinstance(result, Tree) else 0


def _chunks(
    items: Iterable[_Item], nodes: Callable[[_Item], int], times: int = 1
) -> Iterator[list[_Item]]:
    """Divide items into lists of as many as are looked at together, or some times as many."""
    chunk: list[_Item] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += nodes(item)
        if len(chunk) == times * _PROGRAMS or total >= times * _NODES:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


def _answer(model: TrainedModel, forest: Forest, top: int) -> list[tuple[Candidate, ...]]:
    """Return the first classes of each tree."""
    if not len(forest):
        return []
    lengths = model.scores(forest)
    probabilities = model.calibration.probabilities(lengths)
    longest, classes = lengths.topk(min(top, len(model.labels)), 1)
    return [
        tuple(map(Candidate, (model.labels[number] for number in numbers), shares, sizes))
        for numbers, shares, sizes in zip(
            classes.tolist(),
            probabilities.gather(1, classes).tolist(),
            longest.tolist(),
            strict=True,
        )
    ]
