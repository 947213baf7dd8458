"""Bugs: whether a program has one, and where."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from treecaps.data.bugs import lines_of
from treecaps.errors import UsageError
from treecaps.models.options import option
from treecaps.tasks.base import Batches, Task, cut, register_task
from treecaps.tasks.examples import Examples

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from treecaps.inputs.base import Input
    from treecaps.inputs.distinct import Longs
    from treecaps.models.network import Model
    from treecaps.models.trained import TrainedModel
    from treecaps.syntax.mutations import Mutant
    from treecaps.syntax.tree import Tree
    from treecaps.tasks.bug_targets import BugTargets


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

    def classes(self, train: Iterable[str], val: Iterable[str]) -> list[str]:
        """Return the labels of both parts: those of validation programs may be new."""
        known = sorted(set(train))
        return known + sorted(set(val).difference(known))

    def head_size(self, labels: Sequence[str]) -> int:
        """Return how many kinds of mistakes are told apart."""
        from treecaps.tasks.bug_targets import MISTAKES

        return len(MISTAKES)

    def labels(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the kinds of mistakes."""
        from treecaps.tasks.bug_targets import MISTAKES

        return MISTAKES

    def targets(
        self, trees: "Sequence[Tree]", label: "Longs", names: Sequence[str] = ()
    ) -> "BugTargets":
        """Return the lines of nodes, and those that labels tell of."""
        from treecaps.tasks.bug_targets import BugTargets

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
        import numpy as np

        from treecaps.syntax.mutations import mutate
        from treecaps.tasks.bug_targets import BugTargets
        from treecaps.tasks.lines import lines_of_nodes

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
        import numpy as np

        pairs = rng.permutation((len(label) + 1) // 2)
        order = np.stack([2 * pairs, 2 * pairs + 1], 1).ravel()
        return cut(order[order < len(label)], batch_size)

    def training_step(
        self, model: "Model", batch: Any, target: "BugTargets"
    ) -> "tuple[Tensor, dict[str, Tensor]]":
        """Return the loss of a batch."""
        from treecaps.nn.bug_loss import bug_loss
        from treecaps.tasks.bug_targets import to_labels

        output = model.score_bugs(batch)
        parts = bug_loss(output, *to_labels(target, output.none.device))
        return parts["loss"], {name: part.detach() for name, part in parts.items()}

    def outputs(self, model: "Model", batch: Any) -> "Tensor":
        """Return all scores in one row."""
        return model.score_bugs(batch).joined()

    def validate(self, model: "Model", batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return how high the lines with bugs rank, and how well programs with bugs are told."""
        import numpy as np

        from treecaps.models.engine import BugScores
        from treecaps.nn.bug_loss import bug_loss
        from treecaps.nn.tensors import to_numpy
        from treecaps.tasks.bug_targets import measure, to_labels

        parts, loss = [], 0.0
        for begin, batch in batches:
            output = model.score_bugs(batch)
            programs = len(output.none)
            target = examples.target[range(begin, begin + programs)]
            found = bug_loss(output, *to_labels(target, output.none.device))
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
        from treecaps.tasks.bug_targets import (
            EVEN,
            find_threshold,
            fit_temperature,
            margins,
            measure,
            most_probable,
        )

        if not len(examples):
            return replace(model, calibration=replace(model.calibration, threshold=EVEN)), {}
        scores, target = model.score_bugs(examples.inputs), examples.target
        temperature = fit_temperature(margins(scores), target.buggy)
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
