"""Where programs may have bugs, as a trained model sees them."""

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treecaps.cluster import Workers
from treecaps.errors import Failure, UsageError
from treecaps.inference.stream import stream
from treecaps.inference.units import CodeUnit
from treecaps.inputs.base import Floats
from treecaps.models.trained import ModelLike, TrainedModel, as_model
from treecaps.syntax.functions import find_functions
from treecaps.syntax.program import Item
from treecaps.syntax.tree import Tree
from treecaps.tasks import check_answers
from treecaps.tasks.bug_targets import margins, probability_of_bug
from treecaps.tasks.lines import line_ranks, lines_of_nodes, log_sum
from treecaps.text import html_table, short_repr

_WHOLE = 2_000
"""Larger programs are looked at function by function, as models know them from training."""
_SURE = 0.5
"""How probable the kind of a mistake must be to be named."""
_SHOWN = 80
_WITH_MACROS = frozenset(("c", "cpp"))
"""In these a parser may not understand what is right: macros are not what they look like."""
_BROKEN = 0.1


@dataclass(frozen=True)
class Bug:
    """A place where a program may have a bug.

    Args:
        line: The line where the suspicious piece of code begins, from 1.
        column: The column there, in characters, from 1.
        end_line: The line where it ends.
        end_column: The column behind its last character.
        probability: How probable it is that the bug is on this line, if half of all programs had
            one. In ordinary code that is too much: see the docs.
        kind: The kind of mistake, one of the model's labels; ``None`` if the model is not sure.
        code: The piece of code, or its beginning.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    probability: float
    kind: str | None
    code: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: value for name, value in vars(self).items() if name != "code"}


@dataclass(frozen=True)
class BugReport:
    """The places of one program where it may have a bug, the most suspicious first.

    Args:
        id: The program's name.
        language: Its language.
        bugs: The places; none if nothing is suspicious enough.
    """

    id: str
    language: str
    bugs: tuple[Bug, ...]

    def __repr__(self) -> str:
        return short_repr(self, self.id, bugs=len(self.bugs))

    def _repr_html_(self) -> str:
        rows = [
            (f"{bug.line}:{bug.column}", bug.code, bug.kind or "", f"{bug.probability:.1%}")
            for bug in self.bugs
        ]
        return html_table(self.id, ("place", "code", "kind", "probability"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"id": self.id, "bugs": [bug.to_dict() for bug in self.bugs]}


def find_bugs(
    model: ModelLike,
    programs: Iterable[Item | str | Path],
    *,
    every: bool = False,
    workers: Workers | None = None,
) -> Generator[BugReport | Failure]:
    """Tell where programs may have bugs, in order; some at a time, so there may be many.

    A program that cannot be parsed, or is in a language that the model has not learned from, is a
    failure. One of more than 2,000 nodes is looked at function by function.

    Args:
        model: A model trained for bugs, or its folder.
        programs: Programs, or files to read; failures pass through.
        every: Rank every line that holds code, however unlikely, instead of those above the
            model's threshold.
        workers: How many processes there are, or a ``RayCluster``; as many processes as there are
            cores by default.
    """
    model = as_model(model)
    check_answers(model, "bugs")
    return stream(model, programs, partial(_answer, model, every=every), workers=workers)


def find_bugs_in_tree(
    model: TrainedModel, tree: Tree, name: str = "program", *, every: bool = False
) -> BugReport:
    """Tell where one program that is parsed may have bugs.

    Raises:
        UsageError: It is not in a language of the model, or cannot be parsed.
    """
    found = _answer(model, [CodeUnit(name, tree)], every)[0]
    if isinstance(found, Failure):
        raise UsageError(found.message)
    return found


def known_languages(model: TrainedModel) -> tuple[str, ...]:
    """Return the languages that a model has learned from."""
    data = model.card.get("data", {}).get("training", {})
    return tuple(data.get("languages", ()))


def _answer(
    model: TrainedModel, units: Sequence[CodeUnit], every: bool
) -> list[BugReport | Failure]:
    known = known_languages(model)
    found: list[BugReport | Failure] = []
    for name, tree, *_ in units:
        failure = _refuse(name, tree, known)
        found.append(failure or BugReport(name, tree.language, _find(model, tree, every)))
    return found


def _refuse(name: str, tree: Tree, known: tuple[str, ...]) -> Failure | None:
    """Return why nothing can be told of a program, if so."""
    if known and tree.language not in known:
        message = f"the model has not learned from {tree.language}, only from {', '.join(known)}"
        return Failure(name, "unknown-language", message)
    allowed = _BROKEN if tree.language in _WITH_MACROS else 0.0
    if len(tree.errors) and (tree.error_share > allowed or not allowed):
        line, column = tree.line_and_column(int(tree.errors[0]))
        return Failure(name, "syntax", f"syntax error in line {line}, column {column}")
    return None


def _find(model: TrainedModel, tree: Tree, every: bool) -> tuple[Bug, ...]:
    """Return the suspicious places of a program."""
    parts = [(tree, 0)]
    if len(tree) > _WHOLE and (functions := find_functions(tree)):
        parts = [(one.tree, one.node) for one in functions]
    parts = [(part, node) for part, node in parts if len(part) > 1]  # empty programs have none
    if not parts:
        return ()
    scores = model.score_bugs(model.read_trees(part for part, _ in parts))
    chance = probability_of_bug(model, margins(scores))
    found: list[tuple[float, int]] = []
    kinds: dict[int, str | None] = {}
    for number, (part, first) in enumerate(parts):
        rows = slice(scores.offsets[number], scores.offsets[number + 1])
        bug, line = scores.bug[rows], lines_of_nodes(part)
        total = log_sum(bug)
        for where, score in zip(*line_ranks(bug, line), strict=True):
            probability = float(chance[number]) * math.exp(score - total)
            if not every and probability <= model.calibration.threshold:
                break
            own = np.flatnonzero(line == where)
            node = int(own[bug[own].argmax()])
            found.append((probability, first + node))
            kinds[first + node] = _kind(model, scores.kinds[rows][node])
    found.sort(key=lambda one: (-one[0], one[1]))
    return tuple(_describe(tree, node, chance, kinds[node]) for chance, node in found)


def _kind(model: TrainedModel, logits: Floats) -> str | None:
    """Return the kind of a mistake, if the model is sure."""
    shares = np.exp(logits - logits.max())
    best = int(shares.argmax())
    return model.labels[best] if shares[best] > _SURE * shares.sum() else None


def _describe(tree: Tree, node: int, probability: float, kind: str | None) -> Bug:
    begin, end = int(tree.start[node]), int(tree.end[node])
    line, column = tree.line_and_column(node)
    piece = tree.text[begin:end].decode("utf-8", "replace")
    last = tree.text[tree.text.rfind(b"\n", 0, end) + 1 : end].decode("utf-8", "replace")
    end_line = line + piece.count("\n")
    end_column = (column + len(piece)) if end_line == line else len(last) + 1
    shown = piece.partition("\n")[0].rstrip("\r")
    code = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
    return Bug(line, column, end_line, end_column, probability, kind, code)
