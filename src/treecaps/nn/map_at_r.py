"""MAP@R: how well the nearest programs are those of the same class."""

import torch
from torch import Tensor
from torch.nn import functional

_ROWS = 1024
"""How many programs are compared with all others at a time."""


def unit_vectors(vectors: Tensor) -> Tensor:
    """Scale vectors ``[B, E]`` to length 1, so that dot products are cosines."""
    return functional.normalize(vectors)


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
        rows = torch.arange(begin, min(begin + _ROWS, len(label)), device=label.device)
        found.append(average_precision(vectors[rows] @ vectors.T, rows, label))
    every = torch.cat(found) if found else vectors.new_zeros(0)
    return every.mean().item() if len(every) else None


def average_precision(similarity: Tensor, rows: Tensor, label: Tensor) -> Tensor:
    r"""Return the average precision at R (Musgrave et al. 2020) of some of B programs.

    .. math:: \frac{1}{R} \sum_{k=1}^{R} \mathrm{precision}(k)\, \mathrm{right}(k)

    where R others are of the class of a program, precision(k) is the share of those among the k
    most similar programs, and right(k) is 1 if the k-th is one of them and else 0.

    Args:
        similarity: ``[n, B]``, how similar each of the programs is to all.
        rows: ``[n]``, which programs they are.
        label: ``[B]``, from 0.

    Returns:
        ``[n]``, or fewer: programs that have no others of their class are left out.
    """
    every = torch.bincount(label)[label] - 1
    others = every[rows]
    similarity = similarity.scatter(1, rows.unsqueeze(1), -torch.inf)
    rank = torch.arange(1, int(every.max()) + 1, device=label.device)
    nearest = similarity.topk(len(rank), 1).indices
    right = (label[nearest] == label[rows].unsqueeze(1)) & (rank <= others.unsqueeze(1))
    precision = right.cumsum(1).double() / rank
    return ((precision * right).sum(1) / others)[others > 0]
