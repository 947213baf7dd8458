"""Another loss: a task like classification, with labels smoothed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from torch import Tensor
from torch.nn.functional import cross_entropy

from tests.training.examples import example_labels, example_trees
from treecaps import train
from treecaps.models.network import Model
from treecaps.models.options import option
from treecaps.tasks import TASKS, Classification, register_task
from treecaps.training.presets import apply_settings, get_preset


@dataclass(frozen=True)
class Smoothed(Classification):
    """Classification with the cross-entropy of smoothed labels."""

    name: ClassVar = "smoothed"
    takes_background: ClassVar = False

    smoothing: float = option(0.1, "share of a label that all classes get")

    def training_step(
        self, model: Model, batch: Any, target: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores = self.outputs(model, batch)
        loss = cross_entropy(10 * scores, target, label_smoothing=self.smoothing)
        return loss, {"loss": loss.detach()}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register_task(Smoothed)
    yield
    del TASKS["smoothed"]


def test_another_loss_is_learned_with() -> None:
    small = {"channels": 8, "hidden": (), "epochs": 3, "windows": 0, "smoothing": 0.2}
    preset = apply_settings(get_preset(task="smoothed"), small)
    model = train(example_trees(), example_labels(), preset=preset)
    assert model.task == "smoothed"
    assert model.card["run"]["task"]["smoothing"] == 0.2
    # What is recommended for classification stays.
    assert model.card["run"]["task"]["cross_entropy_weight"] == 1.0
    assert model.card["metrics"]["validation_accuracy"] > 0.3
