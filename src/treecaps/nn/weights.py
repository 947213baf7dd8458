"""New weights."""

import torch
from torch import nn


def new_weight(*shape: int, std: float) -> nn.Parameter:
    """Return weights drawn from a normal distribution around 0.

    On the meta device networks have shapes and no numbers; to draw them there all the same, torch
    would load its compiler, which takes seconds.
    """
    weight = torch.empty(shape)
    return nn.Parameter(weight if weight.is_meta else weight.normal_(std=std))
