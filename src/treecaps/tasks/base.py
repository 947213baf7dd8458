"""``Task``: what a network is trained for."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from treecaps.errors import UsageError
from treecaps.models.options import check_bounds
from treecaps.tasks.examples import Examples

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from treecaps.inputs.base import Input
    from treecaps.inputs.distinct import Longs
    from treecaps.models.network import Model
    from treecaps.models.trained import TrainedModel
    from treecaps.syntax.tree import Tree

Section = Literal["confusion", "mistakes", "map"]
"""A part of a training report beside the curves."""
Batches = Iterable[tuple[int, Any]]
"""Programs in batches of tensors, each with the number of its first program; to be gone through
once."""


@dataclass(frozen=True)
class Task:
    """What a network is trained for, and how well it does.

    A task is a frozen dataclass. Its fields are hyperparameters, which ``treecaps train --set``
    sets. It is one file: a subclass with the decorator ``register_task``.
    """

    name: ClassVar[str]
    metric: ClassVar[str]
    """The validation metric that chooses the epoch, as a name."""
    title: ClassVar[str]
    """The same metric, as people know it."""
    training: ClassVar[Mapping[str, Any]] = {}
    """Options of ``TrainingConfig`` that differ for this task."""
    answers: ClassVar[tuple[str, ...]] = ()
    """What a trained model can tell of a program: ``classes``, ``embeddings``."""
    commands: ClassVar[tuple[str, ...]] = ()
    """The commands that a trained model is used with; ``MODEL`` stands for its folder."""
    sections: ClassVar[tuple[Section, ...]] = ()
    """What a training report shows beside the curves."""
    needs_labels: ClassVar[bool] = True
    """Whether programs without a label are left out, and there must be two classes."""
    data: ClassVar[Literal["classes", "bugs"]] = "classes"
    """What the rows of data tell of programs: their classes, or the lines that have a bug."""
    takes_views: ClassVar[bool] = True
    """Whether programs can be seen blind and rewritten too."""
    takes_background: ClassVar[bool] = False
    """Whether programs of none of the classes can be learned from. Their target is ``BACKGROUND``;
    a task that inherits this, and whose loss takes classes alone, says that it does not."""
    min_programs: ClassVar[int] = 1
    """How many programs of a class stay in each part when validation data are split off."""

    def __post_init__(self) -> None:
        check_bounds(self)

    # What is learned from what.

    def check_model(self, model: "type[Model]") -> None:
        """Raise ``UsageError`` if an architecture cannot be trained for this task."""

    def classes(self, train: Iterable[str], val: Iterable[str]) -> list[str]:
        """Return the names of the classes that labels are numbered by, those of training first."""
        return sorted(set(train))

    def head_size(self, labels: Sequence[str]) -> int:
        """Return how many outputs the head of a network has."""
        return len(labels)

    def check_labels(self, label: "Longs") -> None:
        """Raise ``UsageError`` if nothing can be learned from labels ``[B]``."""

    def can_validate(self, label: "Longs") -> bool:
        """Return whether validation programs with labels ``[B]`` tell anything."""
        return len(label) > 0

    def targets(self, trees: "Sequence[Tree]", label: "Longs", names: Sequence[str] = ()) -> Any:
        """Return what is to be predicted; rows of it are taken for each training step.

        These rows are a NumPy array, which the training step gets as a tensor.

        Args:
            trees: B programs: all of a data set, and again in each of their other views.
            label: ``[B]``, their classes. They are the default.
            names: The names of the classes.
        """
        return label

    def renew(
        self,
        examples: Examples,
        trees: "Sequence[Tree]",
        read: "Callable[[list[Tree]], Input]",
        rng: "Generator",
    ) -> Examples:
        """Return the training programs of an epoch: by default, those of all epochs.

        Args:
            examples: All training programs.
            trees: Their trees.
            read: Returns other trees in the form that the network reads.
            rng: The random generator of the epoch.
        """
        return examples

    def num_epochs(self, programs: int) -> float:
        """Return how many epochs so many programs need."""
        # Up to 640 programs are seen 25,600 times in all, more of them more often in all.
        ratio = 640 / programs
        return max(40 * max(ratio, math.sqrt(ratio)), 8)

    def sample(self, label: "Longs", batch_size: int, rng: "Generator") -> "list[Longs]":
        """Divide training programs with labels ``[B]`` into the batches of an epoch."""
        return cut(rng.permutation(len(label)), batch_size)

    # Training and validation.

    def training_step(
        self, model: "Model", batch: Any, target: Any
    ) -> "tuple[Tensor, dict[str, Tensor]]":
        """Return the loss of a batch, and metrics of it; among them ``loss``."""
        raise NotImplementedError

    def outputs(self, model: "Model", batch: Any) -> "Tensor":
        """Return what the model is for; it must be finite."""
        raise NotImplementedError

    def validate(self, model: "Model", batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return metrics of validation programs, all ``None`` where there are no programs.

        The model is in evaluation mode, without gradients. The metrics are ``val_`` and the name
        of the metric, the same with ``_blind`` for programs that are there blind as well, and
        ``val_loss``.
        """
        raise NotImplementedError

    def finish(
        self,
        model: "TrainedModel",
        examples: Examples,
        nodes: "Longs",
        background: Examples | None = None,
        train: Examples | None = None,
    ) -> "tuple[TrainedModel, dict[str, float]]":
        """Weigh and calibrate trained networks by validation programs, and return their metrics.

        Args:
            model: The networks.
            examples: The validation programs.
            nodes: ``[B]``, how many nodes each of the training programs has.
            background: Programs of none of the classes, if there are any to validate with.
            train: The training programs, if they are at hand.
        """
        return model, {}

    # What a trained model is for.

    def labels(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the classes that a trained model knows by name."""
        return classes

    def summary(self, labels: Sequence[str]) -> str:
        """Return what a trained model with some classes does, in a sentence for its card."""
        raise NotImplementedError

    def describe(self, metrics: Mapping[str, float]) -> list[tuple[str, str]]:
        """Return rows of a table that tell people how well a trained model does."""
        rows = []
        for row, kind in (("validation", ""), ("validation, blind", "_blind")):
            value = metrics.get(f"validation_{self.metric}{kind}")
            if value is not None:
                rows.append((row, f"{self.title} {value:.1%}"))
        return rows


def cut(order: "Longs", size: int) -> "list[Longs]":
    """Cut a row of numbers into batches."""
    return [order[begin : begin + size] for begin in range(0, len(order), size)]


TASKS: dict[str, type[Task]] = {}
"""All tasks by name."""


def register_task(task: type[Task]) -> type[Task]:
    """Add a task, so that ``treecaps train --task`` and ``train(task=...)`` find it."""
    TASKS[task.name] = task
    return task


def check_answers(model: "TrainedModel", what: str) -> None:
    """Raise ``UsageError`` if a model was trained for a task that does not tell this."""
    task = get_task(model.task)
    if what not in task.answers:
        use = f"use it with {' or '.join(task.commands)}, or " if task.commands else ""
        raise UsageError(
            f"this model was trained for {task.name} and knows no {what}: {use}"
            "train another with: treecaps train DATA --out FOLDER"
        )


def get_task(name: str) -> type[Task]:
    """Return the task of a name."""
    if name not in TASKS:
        raise UsageError(f"there is no task {name!r}; there are {' and '.join(TASKS)}")
    return TASKS[name]
