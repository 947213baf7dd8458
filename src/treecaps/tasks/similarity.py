"""Similarity: embeddings of programs that are near where classes agree."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from treecaps.errors import UsageError
from treecaps.models.options import option
from treecaps.tasks.base import Batches, Section, Task, cut, register_task
from treecaps.tasks.examples import Examples

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from treecaps.inputs.base import Floats
    from treecaps.inputs.distinct import Longs
    from treecaps.models.network import Model
    from treecaps.models.trained import TrainedModel

_FITTED, _AT_ONCE = 20_000, 1_000
"""How many training programs the discriminant is fitted to, about, and are read at a time."""


@register_task
@dataclass(frozen=True)
class Similarity(Task):
    """Learn embeddings of programs: near where classes agree, far where they do not.

    A batch has several programs of each of several classes, some of them blind, all without some
    of their windows and tokens: what is alike must be seen in spite of that.
    """

    name: ClassVar = "similarity"
    metric: ClassVar = "map_at_r"
    title: ClassVar = "MAP@R"
    training: ClassVar[Mapping[str, Any]] = {
        # The others of a batch are what a program is told from: many of them, of many classes.
        "batch_size": 128,
        # Unseen classes are to come: the network must overfit less.
        "window_dropout": 0.5,
        "token_capsule_dropout": 0.25,
        "token_lr_multiplier": 10.0,
    }
    answers: ClassVar = ("embeddings",)
    commands: ClassVar = (
        "treecaps evaluate MODEL DATA",
        "treecaps embed --model MODEL FILE",
        "treecaps index --model MODEL DIR --out INDEX",
    )
    sections: ClassVar[tuple[Section, ...]] = ("map",)
    min_programs: ClassVar = 2

    temperature: float = option(
        0.1,
        "temperature of the contrastive loss; the lower, the more the hardest negatives count",
        gt=0,
    )
    samples_per_class: int = option(8, "programs of a class that a batch has together", ge=2)
    discriminant_size: int = option(
        128,
        "numbers of an embedding, by a linear discriminant of the static capsules; where there are"
        " no more classes than that, or it is 0, the capsules themselves",
        ge=0,
    )
    whitening: float = option(
        0.5,
        "how far the discriminant evens out what differs within classes: 1 is Fisher's",
        ge=0,
        le=1,
    )

    def check_model(self, model: "type[Model]") -> None:
        """Complain of an architecture without embeddings."""
        from treecaps.models.network import Model

        if model.embed is Model.embed:
            raise UsageError(
                "only the architecture treecaps learns similarity: choose model='treecaps'",
                arguments=("model=treecaps",),
            )

    def classes(self, train: Iterable[str], val: Iterable[str]) -> list[str]:
        """Return the classes of both parts: those of validation may be new."""
        known = sorted(set(train))
        return known + sorted(set(val).difference(known))

    def head_size(self, labels: Sequence[str]) -> int:
        """Return 0: embeddings come from below the head."""
        return 0

    def check_labels(self, label: "Longs") -> None:
        """Complain where no two programs are of one class."""
        if not _has_pairs(label):
            raise UsageError(
                "similarity is learned from classes of two programs or more: there is none"
            )

    def can_validate(self, label: "Longs") -> bool:
        """Return whether two programs are of one class."""
        return _has_pairs(label)

    def num_epochs(self, programs: int) -> float:
        """Return more epochs than for classes: batches are larger, and as many are needed."""
        return max(160 * 640 / programs, 8)

    def sample(self, label: "Longs", batch_size: int, rng: "Generator") -> "list[Longs]":
        """Divide programs into batches, with few classes in each and several programs of each."""
        import numpy as np

        size = self.samples_per_class
        runs: list[Longs] = []
        for number in np.unique(label):
            rows = rng.permutation(np.flatnonzero(label == number))
            runs += np.array_split(rows, np.arange(size, len(rows), size))
        order = np.concatenate([runs[place] for place in rng.permutation(len(runs))])
        return cut(order, batch_size)

    def training_step(
        self, model: "Model", batch: Any, target: "Tensor"
    ) -> "tuple[Tensor, dict[str, Tensor]]":
        """Return the contrastive loss."""
        from treecaps.nn.contrastive_loss import contrastive_loss

        loss = contrastive_loss(model.embed(batch), target, self.temperature)
        return loss, {"loss": loss.detach()}

    def outputs(self, model: "Model", batch: Any) -> "Tensor":
        """Return embeddings ``[B, E]``."""
        return model.embed(batch)

    def validate(self, model: "Model", batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return MAP@R on validation data."""
        import numpy as np

        from treecaps.nn.tensors import to_numpy

        found = [to_numpy(model.embed(batch)) for _, batch in batches]
        if not found:
            return {"val_map_at_r": None, "val_loss": None}
        vectors = np.concatenate(found)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return {**_validation_maps(vectors, examples.label), "val_loss": None}

    def finish(
        self,
        model: "TrainedModel",
        examples: Examples,
        nodes: "Longs",
        background: Examples | None = None,
        train: Examples | None = None,
    ) -> "tuple[TrainedModel, dict[str, float]]":
        """Fit the discriminant; calibrate how probable it is that two are of one class; score."""
        from treecaps.tasks.calibrate import calibrate_pairs

        if train:
            model = replace(model, projection=self._discriminant(model, train))
        if not len(examples):
            return model, {}
        vectors = model.embeddings(examples.inputs)
        views = vectors.reshape(-1, len(examples), vectors.shape[1])
        model = replace(model, calibration=calibrate_pairs(views, examples.label))
        found = _validation_maps(vectors, examples.label)
        return model, {
            name.replace("val_", "validation_", 1): value
            for name, value in found.items()
            if value is not None
        }

    def _discriminant(self, model: "TrainedModel", train: Examples) -> "Floats | None":
        """Return the discriminant of training programs, as many of each class."""
        import numpy as np

        from treecaps.tasks.discriminant import fit_discriminant

        classes = np.unique(train.label)
        if not 0 < self.discriminant_size < len(classes):
            return None
        # As many of each class, and at least two.
        most = max(_FITTED // len(classes), 2)
        order = np.random.default_rng(0).permutation(len(train.label))
        order = order[np.argsort(train.label[order], kind="stable")]
        first = np.searchsorted(train.label[order], train.label[order])
        chosen = np.sort(order[np.arange(len(order)) - first < most])
        rows = np.concatenate([chosen, *(train.rows_of(view, chosen) for view in train.views)])
        some = np.array_split(rows, len(rows) // _AT_ONCE + 1)
        vectors = np.concatenate([model.engine.embed(train.inputs.select(one)) for one in some])
        label = np.tile(train.label[chosen], 1 + len(train.views))
        return fit_discriminant(vectors, label, self.discriminant_size, self.whitening)

    def labels(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Return nothing: the classes of training only say what is alike."""
        return ()

    def summary(self, labels: Sequence[str]) -> str:
        """Say what embeddings are for."""
        return "It embeds programs by their syntax trees: the more alike they are, the nearer."


def _validation_maps(vectors: "Floats", label: "Longs") -> dict[str, float | None]:
    """Return MAP@R of programs as they are and, where they come a second time, blind.

    Args:
        vectors: ``[B, E]`` or ``[2 B, E]``, of length 1.
        label: ``[B]``.
    """
    from treecaps.tasks.retrieval import map_at_r

    kinds = ("val_map_at_r", "val_map_at_r_blind")
    parts = vectors.reshape(-1, len(label), vectors.shape[1])
    return {kind: map_at_r(part, label) for kind, part in zip(kinds, parts, strict=False)}


def _has_pairs(label: "Longs") -> bool:
    import numpy as np

    return len(label) > 0 and int(np.bincount(label).max()) > 1
