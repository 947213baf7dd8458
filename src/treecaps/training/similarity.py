"""Training for similarity: vectors of programs that are near where classes agree."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from treecaps.data.distinct import Longs
from treecaps.nn.batch import Batch
from treecaps.training.fitting import Fitting

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


class SimilarityFitting(Fitting):
    """A network that learns vectors of programs: near where classes agree, far where they do not.

    A step has several programs of each of several classes, some of them blind, all without some
    of their windows and tokens: what is alike must be seen in spite of that.
    """

    FIGURE = "val_map_at_r"

    def _steps(self, chance: np.random.Generator) -> list[Longs]:
        """Divide the programs into steps, with few classes in each and several programs of each."""
        size, label = self.config.alike, self.data.train.label.numpy()
        runs: list[Longs] = []
        for number in np.unique(label):
            rows = chance.permutation(np.flatnonzero(label == number))
            runs += np.array_split(rows, np.arange(size, len(rows), size))
        order = np.concatenate([runs[place] for place in chance.permutation(len(runs))])
        return self._cut(order)

    def _judge(self, batch: Batch, label: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        loss = contrastive_loss(self.network.embed(batch), label, self.config.temperature)
        return loss, {"loss": loss.detach()}

    def _answer(self, batch: Batch) -> Tensor:
        return self.network.embed(batch)

    def _validate(self) -> dict[str, Any]:
        """Return MAP@R on validation data; nothing where there are none."""
        self.network.eval()
        with torch.no_grad():
            found = [functional.normalize(self.network.embed(batch)) for _, batch in self._val]
        if not found:
            return {self.FIGURE: None, "val_loss": None}
        return {**validation_maps(torch.cat(found), self.data.val.label), "val_loss": None}
