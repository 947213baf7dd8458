"""Initial weights."""

import torch
from torch import Tensor, nn


def normal_(weight: Tensor, std: float) -> None:
    """Draw weights from a normal distribution around 0.

    On the meta device networks have shapes and no numbers; to draw them there all the same, torch
    would load its compiler, which takes seconds.
    """
    if not weight.is_meta:
        nn.init.normal_(weight, std=std)


def new_weight(*shape: int, std: float) -> nn.Parameter:
    """Return weights drawn from a normal distribution around 0."""
    weight = nn.Parameter(torch.empty(shape))
    normal_(weight, std)
    return weight
