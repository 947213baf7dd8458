"""Dynamic max pooling: what the paper replaces routing with, for comparison."""

import torch
from torch import Tensor


def dynamic_max_pooling(capsules: Tensor, window: Tensor, bounds: list[int]) -> Tensor:
    r"""Take the largest value of each dimension over all capsules of a program.

    .. math:: v_d = \max_i \hat u_{id}

    How often a window occurs does not matter to a maximum.

    Args:
        capsules: ``[W, D, C]``, of the distinct windows.
        window: ``[P]``, the distinct windows of the programs, program after program.
        bounds: ``B + 1`` numbers, where each program's windows begin.

    Returns:
        ``[B, 1, D]``: one capsule a program.
    """
    over_channels = capsules.amax(2)[window]
    sizes = torch.tensor(bounds, device=window.device).diff()
    return torch.segment_reduce(over_channels, "max", lengths=sizes, axis=0).unsqueeze(1)
