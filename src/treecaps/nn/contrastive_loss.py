"""The supervised contrastive loss."""

import torch
from torch import Tensor
from torch.nn import functional


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
    itself = torch.eye(len(label), dtype=torch.bool, device=label.device)
    # An infinite one would leave no number where a program is all there is.
    lowest = torch.finfo(unit.dtype).min
    similarity = (unit @ unit.T / temperature).masked_fill(itself, lowest)
    log_probability = similarity.log_softmax(1).masked_fill(itself, 0.0)
    same = (label.unsqueeze(1) == label) & ~itself
    others = same.sum(1)
    mean = (log_probability * same).sum(1) / others.clamp(min=1)
    return -mean.sum() / (others > 0).sum().clamp(min=1)
