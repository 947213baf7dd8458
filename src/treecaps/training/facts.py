"""What is known of a training at its end, for those who want to show it."""

import json
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treecaps.inputs.distinct import Longs
from treecaps.models.trained import TrainedModel
from treecaps.syntax.tree import Tree

log = logging.getLogger("treecaps")

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


def read_histories(path: Path) -> Histories:
    """Return the metrics that a training kept, or none if they cannot be used."""
    with suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
        found = json.loads(path.read_bytes())["members"]
        if isinstance(found, list) and found and all(map(_is_history, found)):
            return found
    log.warning("%s is missing or damaged: there will be no curves in the report", path)
    return []


def _is_history(found: Any) -> bool:
    """Whether something is a list of epochs, all with the same metrics."""
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(epoch, dict) and epoch.keys() == found[0].keys() for epoch in found)
        and all(_is_metric(value) for epoch in found for value in epoch.values())
    )


def _is_metric(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and abs(value) <= sys.float_info.max)
