"""Bugs: whether a program has one, and where."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from treecaps.data.bugs import lines_of
from treecaps.errors import UsageError
from treecaps.models.options import option
from treecaps.syntax.mutations import KINDS, Mutant, mutate
from treecaps.tasks.base import Batches, Task, cut, register_task
from treecaps.tasks.examples import Examples
from treecaps.tasks.lines import area_under_curve, line_ranks, lines_of_nodes, log_sum

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from treecaps.inputs.base import Input
    from treecaps.inputs.distinct import Longs
    from treecaps.models.engine import BugScores
    from treecaps.models.network import Model
    from treecaps.models.trained import TrainedModel
    from treecaps.syntax.tree import Tree

MISTAKES = tuple(sorted(KINDS))
"""The kinds of mistakes, in the order in which networks number them."""
FALSE_ALARMS = 0.02
"""The share of programs without a bug that may be reported."""
_BOUNDS = math.log(1e-1), math.log(1e2)
_FIRST = 5
_EVEN = 0.5
"""The threshold where there is nothing to set it by."""


@dataclass(frozen=True)
class BugTargets:
    """What is known of B programs: the line of each node, and where there are bugs.

    Args:
        line: For each program ``[n]``, the line on which each node begins.
        wrong: For each program the lines with a bug, all of which hold code; none without one.
        node: ``[B]``, the very node with the bug, or -1 where that is not known.
        kind: ``[B]``, the kind of mistake it is, a place in ``MISTAKES``, or -1.
    """

    line: Sequence[NDArray[np.int32]]
    wrong: Sequence[tuple[int, ...]]
    node: NDArray[np.int64]
    kind: NDArray[np.int64]

    def __getitem__(self, rows: Any) -> "BugTargets":
        chosen = np.asarray(rows).tolist()
        line, wrong = [self.line[row] for row in chosen], [self.wrong[row] for row in chosen]
        return BugTargets(line, wrong, self.node[chosen], self.kind[chosen])

    @classmethod
    def of(
        cls, trees: Iterable["Tree"], wrong: Iterable[tuple[int, ...]], mutants: Sequence[Any] = ()
    ) -> "BugTargets":
        """Look at the lines of trees.

        Args:
            trees: The programs.
            wrong: For each the lines that are said to have a bug. One without code stands for the
                next that has some: there something is missing.
            mutants: For each, what was done to it, or ``None``; nothing was by default.
        """
        line = [lines_of_nodes(tree) for tree in trees]
        found = [_with_code(own, lines) for own, lines in zip(line, wrong, strict=True)]
        node = np.full(len(line), -1, np.int64)
        kind = node.copy()
        for row, mutant in enumerate(mutants):
            if mutant is not None:
                node[row], kind[row] = mutant.node, MISTAKES.index(mutant.kind)
        return cls(line, found, node, kind)

    @property
    def buggy(self) -> NDArray[np.bool_]:
        """``[B]``, whether each has a bug."""
        return np.array([bool(lines) for lines in self.wrong], bool)


def _with_code(line: NDArray[np.int32], wrong: tuple[int, ...]) -> tuple[int, ...]:
    """Return lines that hold code for lines that perhaps do not."""
    if not wrong or np.isin(wrong, line).all():
        return wrong
    code = np.unique(line)
    place = np.minimum(np.searchsorted(code, wrong), len(code) - 1)
    return tuple(np.unique(code[place]).tolist())


@register_task
@dataclass(frozen=True)
class Bugs(Task):
    """Learn where bugs are: from programs into which they are put, and from real ones.

    Programs without a known bug are taken for right. Those with one are learned from as they are.
    """

    name: ClassVar = "bugs"
    metric: ClassVar = "mrr"
    title: ClassVar = "mean reciprocal rank of the line with the bug"
    training: ClassVar = {"epochs": 4, "batch_size": 32, "learning_rate": 2e-3}
    answers: ClassVar = ("bugs",)
    commands: ClassVar = ("treecaps bugs --model MODEL FILE",)
    data: ClassVar = "bugs"
    needs_labels: ClassVar = False
    takes_background: ClassVar = True
    takes_views: ClassVar = False

    mutation_probability: float = option(
        1.0,
        "share of the programs without a bug that an epoch sees a second time, with a bug that is"
        " drawn anew; 0 to learn from real bugs alone",
        ge=0,
        le=1,
    )
    epoch_size: int = option(20_000, "how many programs an epoch sees at most, drawn anew", ge=2)

    def check_model(self, model: "type[Model]") -> None:
        """Complain of an architecture without a read-out for nodes."""
        from treecaps.models.network import Model

        if model.score_bugs is Model.score_bugs:
            raise UsageError(
                "only the architectures treecaps and ggnn find bugs: choose model='treecaps'",
                arguments=("model=treecaps",),
            )

    def head_size(self, labels: Sequence[str]) -> int:
        """Return how many kinds of mistakes are told apart."""
        return len(MISTAKES)

    def labels(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the kinds of mistakes."""
        return MISTAKES

    def targets(
        self, trees: "Sequence[Tree]", label: "Longs", names: Sequence[str] = ()
    ) -> BugTargets:
        """Return the lines of nodes, and those that labels tell of."""
        wrong = [lines_of(names[number]) if number >= 0 else () for number in label.tolist()]
        return BugTargets.of(trees, wrong)

    def num_epochs(self, programs: int) -> float:
        """Return few epochs: each sees other bugs."""
        return 4

    def renew(
        self,
        examples: Examples,
        trees: "Sequence[Tree]",
        read: "Callable[[list[Tree]], Input]",
        rng: "Generator",
    ) -> Examples:
        """Return programs of an epoch: some of all, and beside those without a bug mutants."""
        buggy = examples.target.buggy
        pairs = rng.permutation((len(examples) + 1) // 2)[: self.epoch_size // 2]
        rows = np.sort(np.concatenate([2 * pairs, 2 * pairs + 1]))
        rows = rows[rows < len(examples)]
        mutated = ~buggy[rows] & (rng.random(len(rows)) < self.mutation_probability)
        if not mutated.any() and len(rows) == len(examples):
            return examples
        chosen: list[Tree] = []
        wrong: list[tuple[int, ...]] = []
        mutants: list[Mutant | None] = []
        origin: list[int] = []
        for row, is_mutated in zip(rows.tolist(), mutated.tolist(), strict=True):
            tree = trees[row]
            mutant = mutate(tree, rng) if is_mutated else None
            if mutant:
                chosen.append(mutant.tree)
                wrong.append((int(lines_of_nodes(mutant.tree)[mutant.node]),))
                mutants.append(mutant)
                origin.append(row)
            chosen.append(tree)
            wrong.append(examples.target.wrong[row])
            mutants.append(None)
            origin.append(row)
        target = BugTargets.of(chosen, wrong, mutants)
        return Examples(read(chosen), examples.label[origin], target)

    def sample(self, label: "Longs", batch_size: int, rng: "Generator") -> "list[Longs]":
        """Divide programs into batches; neighbours, which are often twins, stay together."""
        pairs = rng.permutation((len(label) + 1) // 2)
        order = np.stack([2 * pairs, 2 * pairs + 1], 1).ravel()
        return cut(order[order < len(label)], batch_size)

    def training_step(
        self, model: "Model", batch: Any, target: BugTargets
    ) -> "tuple[Tensor, dict[str, Tensor]]":
        """Return the loss of a batch."""
        from treecaps.nn.bug_loss import bug_loss

        output = model.score_bugs(batch)
        parts = bug_loss(output, *_to_labels(target, output.none.device))
        return parts["loss"], {name: part.detach() for name, part in parts.items()}

    def outputs(self, model: "Model", batch: Any) -> "Tensor":
        """Return all scores in one row."""
        return model.score_bugs(batch).joined()

    def validate(self, model: "Model", batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return how high the lines with bugs rank, and how well programs with bugs are told."""
        from treecaps.models.engine import BugScores
        from treecaps.nn.bug_loss import bug_loss
        from treecaps.nn.tensors import to_numpy

        parts, loss = [], 0.0
        for begin, batch in batches:
            output = model.score_bugs(batch)
            programs = len(output.none)
            target = examples.target[range(begin, begin + programs)]
            found = bug_loss(output, *_to_labels(target, output.none.device))
            loss += programs * found["loss"].item()
            offsets = np.cumsum([0, *map(len, target.line)])
            parts.append(BugScores(offsets, *map(to_numpy, output)))
        if not parts:
            return {"val_mrr": None, "val_loss": None}
        metrics = measure(BugScores.join(parts), examples.target)
        return {
            **{f"val_{name}": value for name, value in metrics.items()},
            "val_loss": loss / len(examples),
        }

    def finish(
        self,
        model: "TrainedModel",
        examples: Examples,
        nodes: "Longs",
        background: Examples | None = None,
        train: Examples | None = None,
    ) -> "tuple[TrainedModel, dict[str, float]]":
        """Calibrate how probable bugs are, and set the threshold by ordinary code."""
        if not len(examples):
            return replace(model, calibration=replace(model.calibration, threshold=_EVEN)), {}
        scores, target = model.score_bugs(examples.inputs), examples.target
        temperature = _fit_temperature(margins(scores), target.buggy)
        model = replace(model, calibration=replace(model.calibration, temperature=temperature))
        if background is not None and len(background):
            right = most_probable(model, model.score_bugs(background.inputs), background.target)
        else:
            right = most_probable(model, scores, target)[~target.buggy]
        threshold = find_threshold(right)
        model = replace(model, calibration=replace(model.calibration, threshold=threshold))
        found = measure(scores, target)
        return model, {
            f"validation_{name}": value for name, value in found.items() if value is not None
        }

    def summary(self, labels: Sequence[str]) -> str:
        """Say what it does, and how often it may be wrong."""
        return (
            "It says where in a program a bug may be. Of 50 functions without a bug, it should"
            " report something in one."
        )


def _to_labels(target: BugTargets, device: Any) -> Any:
    """Return the program of each node of a batch, and the labels, as ``bug_loss`` takes them."""
    from treecaps.nn.bug_loss import BugLabels
    from treecaps.nn.tensors import ToTensor

    convert = ToTensor(device)

    sizes = np.array([len(line) for line in target.line])
    begins = np.cumsum(sizes) - sizes
    wrong = [
        begin + np.flatnonzero(np.isin(line, lines))
        for begin, line, lines in zip(begins, target.line, target.wrong, strict=True)
    ]
    known = np.flatnonzero(target.node >= 0)
    arrays = (
        np.concatenate(wrong),
        np.repeat(np.arange(len(sizes)), [len(one) for one in wrong]),
        begins[known] + target.node[known],
        target.kind[known],
        known,
    )
    program = convert(np.repeat(np.arange(len(sizes)), sizes))
    return program, BugLabels(*map(convert, arrays))


def margins(scores: "BugScores") -> NDArray[np.float64]:
    """Return ``[B]``, how much more speaks for a bug somewhere than for none."""
    begins, ends = scores.offsets[:-1].tolist(), scores.offsets[1:].tolist()
    every = [log_sum(scores.bug[slice(*span)]) for span in zip(begins, ends, strict=True)]
    return np.array(every) - scores.none


def probability_of_bug(model: "TrainedModel", margin: Any) -> Any:
    """Return how probable a bug is in a program, if half of all programs had one."""
    return 1 / (1 + np.exp(-np.clip(margin / model.calibration.temperature, -60, 60)))


def most_probable(
    model: "TrainedModel", scores: "BugScores", target: BugTargets
) -> NDArray[np.float64]:
    """Return ``[B]``, the probability of the most suspicious line of each program."""
    chance = probability_of_bug(model, margins(scores))
    share = []
    for row, line in enumerate(target.line):
        values = scores.bug[scores.offsets[row] : scores.offsets[row + 1]]
        _, sums = line_ranks(values, line)
        share.append(math.exp(sums[0] - log_sum(values)))
    found: NDArray[np.float64] = chance * np.array(share)
    return found


def find_threshold(right: NDArray[np.float64]) -> float:
    """Return the least probability that few enough programs without a bug exceed."""
    if not len(right):
        return _EVEN
    allowed = int(FALSE_ALARMS * len(right))
    return float(np.sort(right)[::-1][min(allowed, len(right) - 1)])


def measure(scores: "BugScores", target: BugTargets) -> dict[str, float | None]:
    """Return how high lines with bugs rank, and the area under the curve of programs with bugs."""
    ranks = []
    for row, wrong in enumerate(target.wrong):
        if wrong:
            values = scores.bug[scores.offsets[row] : scores.offsets[row + 1]]
            lines, _ = line_ranks(values, target.line[row])
            ranks.append(int(np.flatnonzero(np.isin(lines, wrong))[0]))
    if not ranks:
        return {"mrr": None}
    found = np.array(ranks)
    return {
        "mrr": float((1 / (1 + found)).mean()),
        "first_line": float((found == 0).mean()),
        "first_five_lines": float((found < _FIRST).mean()),
        "auc": area_under_curve(margins(scores), target.buggy),
    }


def _fit_temperature(margin: NDArray[np.float64], buggy: NDArray[np.bool_]) -> float:
    """Return the temperature under which it is most probable which programs have a bug."""
    if buggy.all() or not buggy.any():
        return 1.0
    from scipy.optimize import minimize_scalar  # slow to load

    sign = np.where(buggy, -1, 1)

    def cost(exponent: float) -> float:
        return float(np.logaddexp(0, sign * margin / math.exp(exponent)).mean())

    best = minimize_scalar(cost, bounds=_BOUNDS, method="bounded")
    return math.exp(float(best.x))
