"""What is known of a training at its end, for those who want to show it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from treecaps.inputs.distinct import Longs
from treecaps.models.trained import TrainedModel
from treecaps.syntax.tree import Tree

Histories = list[list[dict[str, Any]]]
"""The metrics of each epoch of each network."""


@dataclass(frozen=True)
class TrainingFacts:
    """What a training ends with.

    Args:
        model: The model that was trained.
        histories: The metrics of each epoch of each network; none if they were lost.
        trees: The validation programs.
        label: Their classes, -1 where the model does not know it.
        names: The names of the classes.
    """

    model: TrainedModel
    histories: Histories = field(repr=False)
    trees: Sequence[Tree] = field(repr=False)
    label: Longs = field(repr=False)
    names: Sequence[str] = field(repr=False)


MakeReport = Callable[[TrainingFacts], str]
"""Returns the report of a training as HTML."""
