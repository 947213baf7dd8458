"""Classification: which class a program belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from treecaps.models.options import option
from treecaps.tasks.base import Batches, Section, Task, cut, register_task
from treecaps.tasks.examples import BACKGROUND, UNKNOWN, Examples

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from treecaps.inputs.base import Floats
    from treecaps.inputs.distinct import Longs
    from treecaps.models.network import Model, NetworkOutput
    from treecaps.models.trained import TrainedModel


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
    takes_background: ClassVar = True

    cross_entropy_weight: float = option(
        0.0, "weight of the cross-entropy of the capsules' lengths beside the margin loss", ge=0
    )
    reconstruction: float = option(
        0.0, "scale of the decoder's gradient into the encoder; the decoder learns anyway", ge=0
    )
    background_share: float = option(
        0.5, "how many programs of the background an epoch sees for each program of a class", ge=0
    )

    def sample(self, label: "Longs", batch_size: int, rng: "Generator") -> "list[Longs]":
        """Divide programs into batches, with some of the background drawn anew each epoch."""
        import numpy as np

        background = np.flatnonzero(label == BACKGROUND)
        if not len(background):
            return super().sample(label, batch_size, rng)
        labelled = np.flatnonzero(label != BACKGROUND)
        count = min(len(background), round(self.background_share * len(labelled)))
        drawn = rng.choice(background, count, replace=False)
        return cut(rng.permutation(np.concatenate([labelled, drawn])), batch_size)

    def training_step(
        self, model: "Model", batch: Any, target: "Tensor"
    ) -> "tuple[Tensor, dict[str, Tensor]]":
        """Return the loss, with that of a decoder added if there is one, and the accuracy."""
        output: NetworkOutput = model(batch)
        loss = self._loss(model, output, target)
        metrics = {"loss": loss.detach()}
        labelled = target != BACKGROUND
        if not labelled.any():
            return loss, metrics
        if not labelled.all():
            output, target = _take(output, labelled), target[labelled]
        right = (output.scores.argmax(1) == target).float()
        metrics |= {"accuracy": right.mean(), **model.metrics(output, target)}
        rebuilt = model.reconstruction(output, target, self.reconstruction)
        if rebuilt is None:
            return loss, metrics
        return loss + rebuilt, {**metrics, "reconstruction": rebuilt.detach()}

    def outputs(self, model: "Model", batch: Any) -> "Tensor":
        """Return the scores of classes ``[B, classes]``."""
        output: NetworkOutput = model(batch)
        return output.scores

    def validate(self, model: "Model", batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return the accuracy and the loss on validation data."""
        import numpy as np

        from treecaps.nn.tensors import to_numpy

        if not len(examples):
            return {"val_accuracy": None, "val_loss": None}
        label = examples.every_label
        right = np.zeros(len(label), bool)
        loss = 0.0
        for begin, batch in batches:
            part = slice(begin, begin + len(batch))
            output: NetworkOutput = model(batch)
            right[part] = to_numpy(output.scores.argmax(1)) == label[part]
            loss += self._loss_of_known(model, output, label[part])
        metrics = {"val_accuracy": float(right[: len(examples)].mean())}
        if examples.has_blind:
            metrics["val_accuracy_blind"] = float(right[len(examples) :].mean())
        return {**metrics, "val_loss": loss / max(int((label != UNKNOWN).sum()), 1)}

    def finish(
        self,
        model: "TrainedModel",
        examples: Examples,
        nodes: "Longs",
        background: Examples | None = None,
        train: Examples | None = None,
    ) -> "tuple[TrainedModel, dict[str, float]]":
        """Weigh the networks of an ensemble, fit what makes answers unknown, and score."""
        import numpy as np

        from treecaps.models.torch_engine import TorchEngine
        from treecaps.tasks.calibrate import calibrate, find_threshold, least_nodes
        from treecaps.tasks.ensemble import weigh

        inputs, label = examples.inputs, examples.every_label
        known = label != UNKNOWN
        engine = model.engine
        if isinstance(engine, TorchEngine) and len(engine.members) > 1:
            outputs = engine.member_scores(inputs)
            known_outputs = outputs[:, known].astype(np.float64)
            weights = weigh(known_outputs, np.eye(len(model.labels))[label[known]])
            model = replace(model, engine=TorchEngine(engine.members, weights, engine.outputs))
            # The same as asking all networks again.
            scores = np.tensordot(np.array(weights, np.float32), outputs, 1)
        else:
            scores = model.scores(inputs)
        others = model.scores(background.inputs) if background else None
        found = calibrate(scores[known], label[known], others)
        # People ask about programs as they are.
        if len(rows := np.flatnonzero(known[: len(examples)])):
            plain = None if others is None or background is None else others[: len(background)]
            found = replace(found, threshold=find_threshold(scores[rows], label[rows], plain))
        model = replace(model, calibration=replace(found, min_nodes=least_nodes(nodes)))
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

    def _loss(self, model: "Model", output: "NetworkOutput", label: "Tensor") -> "Tensor":
        from treecaps.nn.length_cross_entropy import length_cross_entropy

        loss = model.loss(output, label)
        if self.cross_entropy_weight:
            loss = loss + self.cross_entropy_weight * length_cross_entropy(output.scores, label)
        return loss

    def _loss_of_known(self, model: "Model", output: "NetworkOutput", label: "Longs") -> float:
        """Return the sum of losses; a class that the model cannot name has no loss."""
        from treecaps.nn.tensors import ToTensor

        known = label != UNKNOWN
        if not known.any():
            return 0.0
        convert = ToTensor(output.scores.device)
        if not known.all():
            output = _take(output, convert(known))
        return int(known.sum()) * self._loss(model, output, convert(label[known])).item()


def _take(output: "NetworkOutput", rows: "Tensor") -> "NetworkOutput":
    """Return what a model says of some of the programs."""
    parts = {name: part for name, part in vars(output).items() if part is not None}
    return replace(output, **{name: part[rows] for name, part in parts.items()})


def _metrics(scores: "Floats", val: Examples) -> dict[str, float]:
    import numpy as np

    if not len(val):
        return {}
    metrics: dict[str, float] = {}
    label = val.label
    for kind, guess in zip(("", "_blind"), scores.argmax(1).reshape(-1, len(val)), strict=False):
        classes = np.union1d(label, guess)[:, None]
        is_label, is_guess = label == classes, guess == classes
        f1 = 2 * (is_label & is_guess).sum(1) / (is_label.sum(1) + is_guess.sum(1))
        metrics |= {
            f"validation_accuracy{kind}": float((guess == label).mean()),
            f"validation_macro_f1{kind}": float(f1.mean()),
        }
    return metrics
