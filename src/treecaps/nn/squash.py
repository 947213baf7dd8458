"""Squash: keep a capsule's direction and bring its length below 1."""

from typing import Literal

import torch
from torch import Tensor

SquashForm = Literal["sabour", "printed"]


def squash(capsules: Tensor, form: SquashForm = "sabour", dim: int = -1) -> Tensor:
    r"""Squash capsules u along one dimension.

    .. math::
        \hat u = \frac{\|u\|^2}{1 + \|u\|^2} \frac{u}{\|u\|} \quad\text{(sabour)} \qquad
        \hat u = \frac{\|u\|^2}{1 + \|u\|^2} \frac{u}{\|u\|^2} \quad\text{(printed)}

    The paper prints the second, whose length never exceeds 1/2, while its text asks for lengths
    up to 1 and its loss for 0.9; the first is that of Sabour et al. (2017), and the default.

    Args:
        capsules: Of any shape.
        form: Which of the two.
        dim: The dimension that holds the D numbers of a capsule; the last by default.

    Returns:
        The same shape.
    """
    squared = capsules.square().sum(dim, keepdim=True)
    if form == "printed":
        return capsules / (1 + squared)
    # The root's slope is infinite at zero; as long as a capsule is zero, so is its gradient.
    return capsules * ((squared + torch.finfo(capsules.dtype).tiny).sqrt() / (1 + squared))


def lengths(capsules: Tensor) -> Tensor:
    """Return the lengths of capsules ``[..., D]`` as ``[...]``, with a gradient at zero too."""
    return (capsules.square().sum(-1) + torch.finfo(capsules.dtype).tiny).sqrt()
