"""Tree convolution over distinct windows."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.nn.batch import WindowTensors


def gather_windows(vectors: Tensor, windows: WindowTensors) -> Tensor:
    r"""Sum the vectors of each window's members with their three weights.

    .. math::
        \Bigl[\sum_i \eta^t_i x_i,\ \sum_i \eta^l_i x_i,\ \sum_i \eta^r_i x_i\Bigr]

    Args:
        vectors: ``[N, V]``, of the members.
        windows: W windows over them.

    Returns:
        ``[W, 3 V]``.
    """
    sums = [
        functional.embedding_bag(
            windows.member, vectors, windows.offsets, mode="sum", per_sample_weights=weights
        )
        for weights in (windows.top, windows.left, windows.right)
    ]
    return torch.cat(sums, 1)


class TreeConvolution(nn.Module):
    r"""Tree convolution (Mou et al. 2016), with several slices.

    .. math::
        y = \tanh\Bigl(\sum_i (\eta^t_i W^t + \eta^l_i W^l + \eta^r_i W^r) x_i + b\Bigr)

    over the members i of a window; their weights are in ``Windows``. Being linear inside, it sums
    the members first and multiplies once.

    Args:
        inputs: V, the size of a member's vector.
        channels: V', the size of the output.
        slices: How many such convolutions stand side by side, each with weights of its own.

    Shapes:
        vectors ``[N, V]``, windows W over them; output ``[W, slices, V']``.
    """

    def __init__(self, inputs: int, channels: int, slices: int = 1) -> None:
        super().__init__()
        self.channels, self.slices = channels, slices
        # Of the order of 0.1, which learns at once; the 0.01 of the published code stalls.
        bound = math.sqrt(3 / (3 * inputs))
        self.weight = nn.Parameter(torch.empty(3 * inputs, channels * slices))
        nn.init.uniform_(self.weight, -bound, bound)
        self.bias = nn.Parameter(torch.zeros(channels * slices))

    def forward(self, vectors: Tensor, windows: WindowTensors) -> Tensor:
        """Convolve every window once."""
        sums = gather_windows(vectors, windows)
        outputs = torch.addmm(self.bias, sums, self.weight).tanh()
        return outputs.view(len(outputs), self.slices, self.channels)
