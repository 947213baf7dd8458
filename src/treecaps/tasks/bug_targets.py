"""Where programs have bugs, and what scores of nodes say of it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.mutations import KINDS
from treecaps.tasks.lines import area_under_curve, line_ranks, lines_of_nodes, log_sum

if TYPE_CHECKING:
    from treecaps.models.engine import BugScores
    from treecaps.models.trained import TrainedModel
    from treecaps.syntax.tree import Tree

MISTAKES = tuple(sorted(KINDS))
"""The kinds of mistakes, in the order in which networks number them."""
FALSE_ALARMS = 0.02
"""The share of programs without a bug that may be reported."""
EVEN = 0.5
"""The threshold where there is nothing to set it by."""
_BOUNDS = math.log(1e-1), math.log(1e2)
_FIRST = 5


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


def to_labels(target: BugTargets, device: Any) -> Any:
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
        return EVEN
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


def fit_temperature(margin: NDArray[np.float64], buggy: NDArray[np.bool_]) -> float:
    """Return the temperature under which it is most probable which programs have a bug."""
    if buggy.all() or not buggy.any():
        return 1.0
    from scipy.optimize import minimize_scalar  # slow to load

    sign = np.where(buggy, -1, 1)

    def cost(exponent: float) -> float:
        return float(np.logaddexp(0, sign * margin / math.exp(exponent)).mean())

    best = minimize_scalar(cost, bounds=_BOUNDS, method="bounded")
    return math.exp(float(best.x))
