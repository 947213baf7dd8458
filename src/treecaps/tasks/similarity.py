"""Similarity: embeddings of programs that are near where classes agree."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from treecaps.data.distinct import Longs
from treecaps.errors import UsageError
from treecaps.models.network import Network
from treecaps.models.options import option
from treecaps.models.trained import TrainedModel
from treecaps.nn.batch import Batch
from treecaps.tasks.base import Batches, Section, Task, cut, register_task
from treecaps.tasks.examples import Examples

_ROWS = 1024
"""How many programs are compared with all others at a time."""


def contrastive_loss(vectors: Tensor, label: Tensor, temperature: float) -> Tensor:
    r"""Return the supervised contrastive loss (Khosla et al. 2020).

    .. math:: L = -\frac{1}{|I|} \sum_{i \in I} \frac{1}{|P_i|} \sum_{p \in P_i} \ln
        \frac{e^{z_i \cdot z_p / \tau}}{\sum_{a \ne i} e^{z_i \cdot z_a / \tau}}

    with vectors z of length 1, :math:`P_i` the others of the class of i, and I the programs that
    have such others: 0 where there are none.

    Args:
        vectors: ``[B, E]``, of whatever length.
        label: ``[B]``.
        temperature: :math:`\tau`.
    """
    unit = functional.normalize(vectors)
    itself = torch.eye(len(label), dtype=torch.bool)
    # An infinite one would leave no number where a program is all there is.
    least = torch.finfo(unit.dtype).min
    alike = (unit @ unit.T / temperature).masked_fill(itself, least)
    chance = alike.log_softmax(1).masked_fill(itself, 0.0)
    same = (label.unsqueeze(1) == label) & ~itself
    others = same.sum(1)
    mean = (chance * same).sum(1) / others.clamp(min=1)
    return -mean.sum() / (others > 0).sum().clamp(min=1)


def map_at_r(vectors: Tensor, label: Tensor) -> float | None:
    """Return the mean average precision at R of programs that ask for those nearest to them.

    Args:
        vectors: ``[B, E]``, of length 1.
        label: ``[B]``, from 0.

    Returns:
        The mean over all programs that have others of their class; ``None`` if none has.
    """
    found = []
    for begin in range(0, len(label), _ROWS):
        rows = torch.arange(begin, min(begin + _ROWS, len(label)))
        found.append(average_precision(vectors[rows] @ vectors.T, rows, label))
    every = torch.cat(found) if found else torch.zeros(0)
    return every.mean().item() if len(every) else None


def average_precision(alike: Tensor, rows: Tensor, label: Tensor) -> Tensor:
    r"""Return the average precision at R (Musgrave et al. 2020) of some of B programs.

    .. math:: \frac{1}{R} \sum_{k=1}^{R} \mathrm{precision}(k)\, \mathrm{right}(k)

    where R others are of the class of a program, precision(k) is the share of those among the k
    programs most alike, and right(k) is 1 if the k-th is one of them and else 0.

    Args:
        alike: ``[n, B]``, how alike each of the programs is to all.
        rows: ``[n]``, which programs they are.
        label: ``[B]``, from 0.

    Returns:
        ``[n]``, or fewer: programs that have no others of their class are left out.
    """
    every = torch.bincount(label)[label] - 1
    others = every[rows]
    alike = alike.scatter(1, rows.unsqueeze(1), -torch.inf)
    rank = torch.arange(1, int(every.max()) + 1)
    nearest = alike.topk(len(rank), 1).indices
    right = (label[nearest] == label[rows].unsqueeze(1)) & (rank <= others.unsqueeze(1))
    precision = right.cumsum(1).double() / rank
    return ((precision * right).sum(1) / others)[others > 0]


def validation_maps(vectors: Tensor, label: Tensor) -> dict[str, float | None]:
    """Return MAP@R of programs as they are and, where they come a second time, blind.

    Args:
        vectors: ``[B, E]`` or ``[2 B, E]``, of length 1.
        label: ``[B]``.
    """
    kinds = ("val_map_at_r", "val_map_at_r_blind")
    parts = vectors.view(-1, len(label), vectors.shape[1])
    return {kind: map_at_r(part, label) for kind, part in zip(kinds, parts, strict=False)}


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
        # Classes that nobody has seen are to come: less may be learned by heart.
        "window_dropout": 0.5,
        "token_capsule_dropout": 0.25,
        "token_rate": 10.0,
    }
    answers: ClassVar = ("embeddings",)
    commands: ClassVar = (
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

    def check_network(self, network: type[Network]) -> None:
        """Complain of an architecture without embeddings."""
        if network.embed is Network.embed:
            raise UsageError("only models of treecaps learn similarity: choose --model treecaps")

    def classes(self, train: Iterable[str], val: Iterable[str]) -> list[str]:
        """Return the classes of both parts: those of validation may be new."""
        known = sorted(set(train))
        return known + sorted(set(val).difference(known))

    def head_size(self, labels: Sequence[str]) -> int:
        """Return 0: embeddings come from below the head."""
        return 0

    def check_labels(self, label: Longs) -> None:
        """Complain where no two programs are of one class."""
        if not _has_pairs(label):
            raise UsageError(
                "similarity is learned from classes of two programs or more: there is none"
            )

    def can_validate(self, label: Longs) -> bool:
        """Return whether two programs are of one class."""
        return _has_pairs(label)

    def num_epochs(self, programs: int) -> float:
        """Return more epochs than for classes: batches are larger, and as many are needed."""
        return max(160 * 640 / programs, 8)

    def sample(self, label: Longs, batch_size: int, rng: np.random.Generator) -> list[Longs]:
        """Divide programs into batches, with few classes in each and several programs of each."""
        size = self.samples_per_class
        runs: list[Longs] = []
        for number in np.unique(label):
            rows = rng.permutation(np.flatnonzero(label == number))
            runs += np.array_split(rows, np.arange(size, len(rows), size))
        order = np.concatenate([runs[place] for place in rng.permutation(len(runs))])
        return cut(order, batch_size)

    def training_step(
        self, network: Network, batch: Batch, target: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the contrastive loss."""
        loss = contrastive_loss(network.embed(batch), target, self.temperature)
        return loss, {"loss": loss.detach()}

    def outputs(self, network: Network, batch: Batch) -> Tensor:
        """Return embeddings ``[B, E]``."""
        return network.embed(batch)

    def validate(self, network: Network, batches: Batches, examples: Examples) -> dict[str, Any]:
        """Return MAP@R on validation data."""
        network.eval()
        with torch.no_grad():
            found = [functional.normalize(network.embed(batch)) for _, batch in batches]
        if not found:
            return {"val_map_at_r": None, "val_loss": None}
        return {**validation_maps(torch.cat(found), examples.label), "val_loss": None}

    def finish(
        self, model: TrainedModel, examples: Examples
    ) -> tuple[TrainedModel, dict[str, float]]:
        """Return MAP@R of the networks together."""
        if not len(examples):
            return model, {}
        embeddings = torch.from_numpy(model.engine.embed(examples.forest))
        found = validation_maps(embeddings, examples.label)
        return model, {
            name.replace("val_", "validation_", 1): value
            for name, value in found.items()
            if value is not None
        }

    def labels(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Return nothing: the classes of training only say what is alike."""
        return ()

    def summary(self, labels: Sequence[str]) -> str:
        """Say what embeddings are for."""
        return "It embeds programs by their syntax trees: the more alike they are, the nearer."


def _has_pairs(label: Longs) -> bool:
    return len(label) > 0 and int(np.bincount(label).max()) > 1
