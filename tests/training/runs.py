"""Short trainings, and what they leave behind."""

import json
from pathlib import Path
from typing import Any

import torch

from tests.training.examples import example_labels, example_trees, small
from treecaps.models.trained import TrainedModel
from treecaps.rendering.training import train
from treecaps.training.presets import Preset

TIMES = ("seconds", "programs_per_second")


def learn(preset: Preset | None = None, **options: Any) -> TrainedModel:
    return train(example_trees(), example_labels(), preset=preset or small(), **options)


def weights(model: TrainedModel) -> dict[str, torch.Tensor]:
    return {
        f"{number}.{name}": value
        for number, member in enumerate(model.members)
        for name, value in member.state_dict().items()
    }


def same(one: TrainedModel, other: TrainedModel) -> bool:
    first, second = weights(one), weights(other)
    return one.engine.weights == other.engine.weights and all(
        torch.equal(first[name], second[name]) for name in first | second
    )


def history(folder: Path) -> list[list[dict[str, Any]]]:
    """Return the metrics of all epochs, without what differs from run to run."""
    members = json.loads((folder / "history.json").read_text())["members"]
    return [
        [{key: epoch[key] for key in epoch if key not in TIMES} for epoch in member]
        for member in members
    ]


class StopError(Exception):
    """What stops a training in the midst of it."""


def stop_after(epochs: int, error: BaseException) -> Any:
    """Return what raises an error after some epochs, counted over all networks."""
    seen = 0

    def on_epoch(member: int, metrics: dict[str, Any]) -> None:
        nonlocal seen
        seen += 1
        if seen == epochs:
            raise error

    return on_epoch
