"""Classes of programs, as a trained model sees them."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treecaps.cluster import Workers
from treecaps.errors import Failure, UsageError
from treecaps.inference.stream import stream
from treecaps.inference.units import CodeUnit, is_broken, is_empty
from treecaps.inputs.base import Input
from treecaps.models.calibration import UNKNOWN
from treecaps.models.trained import ModelLike, TrainedModel, as_model
from treecaps.syntax.functions import find_functions
from treecaps.syntax.program import Item
from treecaps.syntax.tree import Tree
from treecaps.tasks import check_answers
from treecaps.text import html_table, short_repr

_DOUBTFUL = (0.005, 0.98)
"""If the guess of a program is so probable, perhaps its functions are of several classes. Where it
is less probable than that, the program is nearly always ordinary code."""
_CLEAR = 0.9
"""How probable the class of a function must be to be named beside that of its program."""
_SURE, _MAIN = 0.97, 0.25
"""How probable it must be to make a guess of its program an answer, and how much of the program the
function must make up."""

LIKELY = 0.05
"""A class that is less probable is not worth a word to people, unless it is the answer."""


class Candidate(NamedTuple):
    """A class that a program may belong to."""

    label: str
    probability: float
    length: float


class Part(NamedTuple):
    """A function that is of another class than its program."""

    function: str
    line: int
    label: str
    probability: float


@dataclass(frozen=True)
class Classification:
    """What a model says of one program.

    Args:
        id: The program's name.
        label: The class of the program, or ``unknown`` where no class is present enough or nothing
            can be told.
        known: Whether one is.
        guess: The class whose code capsule is the longest, present enough or not; ``None`` where
            nothing can be told.
        probability: Its calibrated probability: of being right, if the model has learned from
            background; otherwise of being right if the program is of any of the classes.
        length: The length of its code capsule, from 0 to 1: how present the class is, whatever
            is true of the others.
        top: The classes with the longest code capsules, longest first; none where nothing can be
            told.
        function: The name of the function that this is about; ``None`` for a whole program.
        line: The line where that begins, from 1.
        reason: Why nothing can be told, as ``find_reason`` says it; ``None`` otherwise.
        title: What the guess is in words, if the model tells more than its name.
        parts: For a whole program whose guess is doubtful: functions of other classes, the most
            probable one of each class, in order. If a guess is clearly the class of a main
            function, the answer is that of the function.
    """

    id: str
    label: str
    known: bool
    guess: str | None
    probability: float
    length: float
    top: tuple[Candidate, ...]
    function: str | None = None
    line: int | None = None
    reason: str | None = None
    title: str | None = None
    parts: tuple[Part, ...] = ()

    @property
    def verdict(self) -> str:
        """The answer in words: the class, or unknown and why, or unknown and a likely guess."""
        if self.known:
            return self.label
        guess = f"perhaps {self.guess}" if self.probability >= LIKELY else None
        return ", ".join(filter(None, (self.label, self.reason or guess)))

    def __repr__(self) -> str:
        where = {} if self.function is None else {"function": self.function}
        return short_repr(
            self, self.id, self.label, probability=round(self.probability, 3), **where
        )

    def _repr_html_(self) -> str:
        where = "" if self.function is None else f", {self.function} in line {self.line}"
        rows = [(one.label, f"{one.probability:.1%}") for one in self.top]
        return html_table(f"{self.id}{where}: {self.verdict}", ("class", "probability"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {**vars(self), "top": [candidate._asdict() for candidate in self.top]}
        if self.function is None:
            del values["function"], values["line"]
        values["parts"] = [part._asdict() for part in self.parts]
        for name in ("reason", "title", "parts"):
            if not values[name]:
                del values[name]
        return values


_Answered = tuple[CodeUnit, Classification]


def find_reason(model: TrainedModel, tree: Tree) -> str | None:
    """Return why nothing can be told of a program, or ``None``: it is empty, short or broken."""
    if is_empty(tree):
        return "the program is empty"
    if len(tree) < model.calibration.min_nodes:
        return "there is too little code to tell"
    if is_broken(tree):
        return f"most of it is not {tree.language}"
    return None


def classify(
    model: ModelLike,
    programs: Iterable[Item | str | Path],
    *,
    top: int = 3,
    functions: bool = False,
    trivial: bool = True,
    workers: Workers | None = None,
    times: dict[str, float] | None = None,
) -> Generator[Classification | Failure]:
    """Tell the classes of programs, in order; some at a time, so there may be many.

    Args:
        model: A trained model, its folder, or the name of a bundled one.
        programs: Programs, or files to read; failures pass through.
        top: How many classes to name for each program.
        functions: Whether to tell the class of each function of a program, not of the whole.
        trivial: Whether constructors and accessors are among these functions.
        workers: How many processes there are, or a ``RayCluster``; as many processes as there are
            cores by default.
        times: Is told the seconds spent so far on ``parsing`` and ``network``, by all processes.
    """
    if top < 1:
        raise UsageError(f"cannot name {top} classes; name one or more")
    model = as_model(model)
    check_answers(model, "classes")
    answer = partial(classify_units, model, top=top)
    skip = None
    if functions and not trivial:
        from treecaps.syntax.trivial import is_trivial  # takes a moment

        skip = is_trivial
    return stream(
        model, programs, answer, functions=functions, skip=skip, workers=workers, times=times
    )


def classify_tree(
    model: TrainedModel, tree: Tree, name: str = "program", top: int = 3
) -> Classification:
    """Tell the class of one program that is parsed."""
    return classify_units(model, [CodeUnit(name, tree)], top)[0]


def classify_units(
    model: TrainedModel, units: Sequence[CodeUnit], top: int = 3
) -> list[Classification]:
    """Tell the classes of programs that are parsed, or of functions, all in one go."""
    answers = _answer(model, units, top)
    low, high = _DOUBTFUL
    doubtful = [
        place
        for place, (unit, answer) in enumerate(zip(units, answers, strict=True))
        if unit.function is None and low <= answer.probability < high
    ]
    if doubtful:
        found = _clear_functions(model, [units[place] for place in doubtful], top)
        for place, functions in zip(doubtful, found, strict=True):
            nodes = len(units[place].tree)
            answers[place] = _beside_functions(answers[place], nodes, functions)
    return answers


def _clear_functions(
    model: TrainedModel, units: Sequence[CodeUnit], top: int
) -> list[list[_Answered]]:
    """Return for each program its functions that clearly have a class, with the answers."""
    functions = [
        CodeUnit(str(number), one.tree, one.name, one.line)
        for number, unit in enumerate(units)
        for one in find_functions(unit.tree)
    ]
    found: list[list[_Answered]] = [[] for _ in units]
    for unit, answer in zip(functions, _answer(model, functions, top), strict=True):
        if answer.known and answer.probability >= _CLEAR:
            found[int(unit.id)].append((unit, answer))
    return found


def _beside_functions(
    answer: Classification, nodes: int, functions: Sequence[_Answered]
) -> Classification:
    """Return the answer for a program of so many nodes, now that those for its functions are known.

    A guess is right if it is the class of the main function. Functions of other classes, the most
    probable of each, are named beside the answer.
    """
    best: dict[str, _Answered] = {}
    for one in sorted(functions, key=lambda one: one[1].probability):
        best[one[1].label] = one
    if not answer.known and answer.guess in best:
        unit, main = best[answer.guess]
        if main.probability >= _SURE and len(unit.tree) >= _MAIN * nodes:
            answer = replace(main, id=answer.id, function=None, line=None)
    parts = [
        Part(one.function, one.line, one.label, one.probability)
        for _, one in best.values()
        if one.label != answer.label and one.function is not None and one.line is not None
    ]
    return replace(answer, parts=tuple(sorted(parts, key=lambda part: part.line)))


def _answer(model: TrainedModel, units: Sequence[CodeUnit], top: int) -> list[Classification]:
    if not units:
        return []
    found = _predict(model, model.read_trees([unit.tree for unit in units]), top)
    return [_classification(model, *one) for one in zip(units, found, strict=True)]


def _classification(
    model: TrainedModel, unit: CodeUnit, best: tuple[Candidate, ...]
) -> Classification:
    reason = find_reason(model, unit.tree)
    if reason:
        nothing = (UNKNOWN, False, None, 0.0, 0.0, ())
        return Classification(unit.id, *nothing, unit.function, unit.line, reason)
    known = best[0].length >= model.calibration.threshold
    label = best[0].label if known else UNKNOWN
    where, title = (unit.function, unit.line), model.title(best[0].label)
    return Classification(unit.id, label, known, *best[0], best, *where, title=title)


def _predict(model: TrainedModel, inputs: Input, top: int) -> list[tuple[Candidate, ...]]:
    """Return the first classes of each tree."""
    lengths = model.scores(inputs)
    probabilities = model.calibration.probabilities(lengths)
    classes = np.argsort(-lengths, axis=1, kind="stable")[:, :top]
    return [
        tuple(map(Candidate, (model.labels[number] for number in numbers), shares, sizes))
        for numbers, shares, sizes in zip(
            classes.tolist(),
            np.take_along_axis(probabilities, classes, 1).tolist(),
            np.take_along_axis(lengths, classes, 1).tolist(),
            strict=True,
        )
    ]
