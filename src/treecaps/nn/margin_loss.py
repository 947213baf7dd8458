"""The margin loss of capsule networks."""

import torch
from torch import Tensor

PRESENT = 0.9
ABSENT = 0.1
DOWN_WEIGHT = 0.5


def margin_loss(lengths: Tensor, label: Tensor) -> Tensor:
    r"""Ask the right class's capsule to be long and all others to be short.

    .. math::
        L = \sum_\mu T_\mu \max(0, m^+ - \|z_\mu\|)^2
            + \lambda (1 - T_\mu) \max(0, \|z_\mu\| - m^-)^2

    with m+ = 0.9, m- = 0.1 and lambda = 0.5, as in the paper.

    Args:
        lengths: ``[B, classes]``, the lengths of the code capsules.
        label: ``[B]``, the right classes; below 0 where none is right, so all are to be short.

    Returns:
        The mean over the batch.
    """
    present = (PRESENT - lengths).clamp(min=0).square()
    absent = DOWN_WEIGHT * (lengths - ABSENT).clamp(min=0).square()
    right = label.unsqueeze(1) == torch.arange(lengths.shape[1], device=label.device)
    return torch.where(right, present, absent).sum(1).mean()
