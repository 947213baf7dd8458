"""Classification: which class a program belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from treecaps.models.engine import Floats
from treecaps.models.network import Network, NetworkOutput
from treecaps.models.options import option
from treecaps.models.trained import TrainedModel
from treecaps.nn.batch import Batch
from treecaps.tasks.base import Batches, Section, Task, register_task
from treecaps.tasks.calibrate import calibrate
from treecaps.tasks.ensemble import weigh
from treecaps.tasks.examples import UNKNOWN, Examples

_SHARPNESS = 10
"""What the lengths of capsules, 0 to 1, are multiplied by for their cross-entropy."""


@register_task
@dataclass(frozen=True)
class Classification(Task):
    """Learn the classes of programs.

    The loss is that of the architecture (margin loss for capsules, cross-entropy for a softmax).
    """

    name: ClassVar = "classification"
    metric: ClassVar = "accuracy"
    title: ClassVar = "accuracy"
    answers: ClassVar = ("classes", "embeddings")
    commands: ClassVar = ("treecaps evaluate MODEL DATA", "treecaps classify --model MODEL FILE")
    sections: ClassVar[tuple[Section, ...]] = ("confusion", "mistakes", "map")

    cross_entropy_weight: float = option(
        0.0, "weight of the cross-entropy of the capsules' lengths beside the margin loss", ge=0
    )
    reconstruction: float = option(
        0.0, "scale of the decoder's gradient into the encoder; the decoder learns anyway", ge=0
    )

    def training_step(
        self, network: Network, batch: Batch, target: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss, with that of a decoder added if there is one, and the accuracy."""
        output: NetworkOutput = network(batch)
        loss = self._loss(network, output, target)
        with torch.no_grad():
            right = (output.scores.argmax(1) == target).float()
            metrics = {"loss": loss.detach(), "accuracy": right.mean()}
            metrics |= network.metrics(output, target)
        rebuilt = network.reconstruction(output, target, self.reconstruction)
        if rebuilt is None:
            return loss, metrics
        return loss + rebuilt, {**metrics, "reconstruction": rebuilt.detach()}

    def outputs(self, network: Network, batch: Batch) -> Tensor:
        """Return the scores of classes ``[B, classes]``."""
        output: NetworkOutput = network(batch)
        return output.scores

    def validate(self, network: Network, batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return the accuracy and the loss on validation data."""
        if not len(examples):
            return {"val_accuracy": None, "val_loss": None}
        label = examples.every_label
        right = torch.zeros(len(label), dtype=torch.float64)
        known = 0
        loss = 0.0
        network.eval()
        with torch.no_grad():
            for begin, batch in batches:
                part = slice(begin, begin + len(batch))
                output: NetworkOutput = network(batch)
                right[part] = (output.scores.argmax(1) == label[part]).double()
                # A class that the network cannot name has no loss.
                if count := int((label[part] != UNKNOWN).sum()):
                    loss += count * self._loss_of_known(network, output, label[part])
                    known += count
        metrics = {"val_accuracy": right[: len(examples)].mean().item()}
        if examples.has_blind:
            metrics["val_accuracy_blind"] = right[len(examples) :].mean().item()
        return {**metrics, "val_loss": loss / max(known, 1)}

    def finish(
        self, model: TrainedModel, examples: Examples
    ) -> tuple[TrainedModel, dict[str, float]]:
        """Weigh the networks of an ensemble, fit temperature and threshold, and score."""
        forest, label = examples.forest, examples.every_label.numpy()
        known = label != UNKNOWN
        if len(model.members) > 1:
            alone = [replace(model, members=(one,), weights=(1.0,)) for one in model.members]
            outputs = np.stack([each.scores(forest)[known] for each in alone]).astype(np.float64)
            weights = weigh(outputs, np.eye(len(model.labels))[label[known]])
            model = replace(model, weights=tuple(weights))
        scores = model.scores(forest)
        model = replace(model, calibration=calibrate(scores[known], label[known]))
        return model, _metrics(scores, examples)

    def summary(self, labels: Sequence[str]) -> str:
        """Say how many classes there are."""
        return f"It tells programs of {len(labels)} classes apart by their syntax trees."

    def describe(self, metrics: Mapping[str, float]) -> list[tuple[str, str]]:
        """Return accuracy and macro F1."""
        return [
            (
                row,
                f"accuracy {metrics[f'validation_accuracy{kind}']:.1%},"
                f" macro F1 {metrics[f'validation_macro_f1{kind}']:.3f}",
            )
            for row, kind in (("validation", ""), ("validation, blind", "_blind"))
            if f"validation_accuracy{kind}" in metrics
        ]

    def _loss(self, network: Network, output: NetworkOutput, label: Tensor) -> Tensor:
        loss = network.loss(output, label)
        if self.cross_entropy_weight:
            sharp = functional.cross_entropy(_SHARPNESS * output.scores, label)
            loss = loss + self.cross_entropy_weight * sharp
        return loss

    def _loss_of_known(self, network: Network, output: NetworkOutput, label: Tensor) -> float:
        known = label != UNKNOWN
        if not bool(known.all()):
            parts = {name: part for name, part in vars(output).items() if part is not None}
            output = replace(output, **{name: part[known] for name, part in parts.items()})
        return self._loss(network, output, label[known]).item()


def _metrics(scores: Floats, val: Examples) -> dict[str, float]:
    if not len(val):
        return {}
    metrics: dict[str, float] = {}
    label = val.label.numpy()
    for kind, guess in zip(("", "_blind"), scores.argmax(1).reshape(-1, len(val)), strict=False):
        classes = np.union1d(label, guess)[:, None]
        is_label, is_guess = label == classes, guess == classes
        f1 = 2 * (is_label & is_guess).sum(1) / (is_label.sum(1) + is_guess.sum(1))
        metrics |= {
            f"validation_accuracy{kind}": float((guess == label).mean()),
            f"validation_macro_f1{kind}": float(f1.mean()),
        }
    return metrics
