"""Tree convolution over distinct windows."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from treecaps.nn.weights import normal_


def gather_windows(
    vectors: Tensor, offsets: Tensor, member: Tensor, top: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    r"""Sum the vectors of each window's members with their three weights.

    .. math::
        \Bigl[\sum_i \eta^t_i x_i,\ \sum_i \eta^l_i x_i,\ \sum_i \eta^r_i x_i\Bigr]

    Args:
        vectors: ``[N, V]``, of the members.
        offsets: ``[W + 1]``, where each window's members begin.
        member: ``[M]``, rows of ``vectors``.
        top: ``[M]``, the weights of the members.
        left: ``[M]``, likewise.
        right: ``[M]``, likewise.

    Returns:
        ``[W, 3 V]``.
    """
    found: Tensor = _Gather.apply(  # type: ignore[no-untyped-call]
        vectors, member, offsets, top, left, right
    )
    return found


class _Gather(torch.autograd.Function):
    """``gather_windows``; for the gradient, members gather the windows that they are in.

    This is what ``embedding_bag`` does too, but it sorts the members for each of the weights, and
    adds up one member at a time.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, member: Tensor, offsets: Tensor, *weights: Tensor
    ) -> Tensor:
        ctx.save_for_backward(member, offsets, *weights)
        ctx.vectors = len(vectors)
        return torch.cat([_bag(vectors, member, offsets, one) for one in weights], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        member, offsets, *weights = ctx.saved_tensors
        device = member.device
        window = torch.arange(len(offsets) - 1, device=device).repeat_interleave(offsets.diff())
        member, order = member.sort()
        begins = torch.searchsorted(member, torch.arange(ctx.vectors + 1, device=device))
        window = window[order]
        parts = gradients[0].chunk(len(weights), 1)
        found = [
            _bag(part.contiguous(), window, begins, one[order])
            for part, one in zip(parts, weights, strict=True)
        ]
        return sum(found[1:], found[0]), None, None, *(None for _ in weights)


class _Tanh(torch.autograd.Function):
    """The hyperbolic tangent by way of the sigmoid, which torch computes three times faster."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        found = values.mul(2).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (found,) = ctx.saved_tensors
        grad: Tensor = torch.ops.aten.tanh_backward(gradients[0], found)
        return grad


def _bag(vectors: Tensor, member: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    return functional.embedding_bag(
        member, vectors, offsets[:-1], mode="sum", per_sample_weights=weights
    )


class TreeConvolution(nn.Module):
    r"""Tree convolution (Mou et al. 2016), with several slices.

    .. math::
        y = \tanh\Bigl(\sum_i (\eta^t_i W^t + \eta^l_i W^l + \eta^r_i W^r) x_i + b\Bigr)

    over the members i of a window; ``WindowLayer`` has their weights. Being linear inside, it sums
    the members first and multiplies once.

    Args:
        inputs: V, the size of a member's vector.
        channels: V', the size of the output.
        slices: How many such convolutions stand side by side, each with weights of its own.
        normal: Draw initial weights from a normal distribution with deviation 1 / sqrt(V), as the
            published code does, instead of uniformly within that bound.
        residual: Whether the sum of the members by their first weights is added to y: in windows
            of depth 2, the vector of the node itself. The output must have its size.

    Shapes:
        vectors ``[N, V]``; offsets ``[W + 1]`` and member ``[M]``, W windows over them; top, left
        and right ``[M]``, the weights of members; output ``[W, slices, V']``.
    """

    def __init__(
        self,
        inputs: int,
        channels: int,
        slices: int = 1,
        *,
        residual: bool = False,
        normal: bool = False,
    ) -> None:
        super().__init__()
        self.channels, self.slices, self.residual = channels, slices, residual
        self.normal = normal
        self.weight = nn.Parameter(torch.empty(3 * inputs, channels * slices))
        self.bias = nn.Parameter(torch.empty(channels * slices))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        bound = math.sqrt(3 / len(self.weight))
        if self.normal:
            normal_(self.weight, bound)
        else:
            nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)

    @torch.no_grad()
    def standardize(
        self,
        vectors: Tensor,
        offsets: Tensor,
        member: Tensor,
        top: Tensor,
        left: Tensor,
        right: Tensor,
        count: Tensor,
    ) -> None:
        """Scale weights and bias so that, before tanh, outputs have mean 0 and deviation 1.

        Args:
            vectors: As for ``forward``, and so are the windows.
            offsets: Likewise.
            member: Likewise.
            top: Likewise.
            left: Likewise.
            right: Likewise.
            count: ``[W]``, how many nodes have each window.
        """
        sums = gather_windows(vectors, offsets, member, top, left, right)
        share = count / count.sum()
        mean = share @ sums
        centred = sums - mean
        covariance = (centred * share.unsqueeze(1)).T @ centred
        # What hardly varies stays as large as it is.
        variance = ((covariance @ self.weight) * self.weight).sum(0)
        self.weight.div_(variance.where(variance > 1e-6, 1).sqrt())
        self.bias.copy_(-(mean @ self.weight))

    def extra_repr(self) -> str:
        """Return the sizes that ``print`` shows."""
        inputs = len(self.weight) // 3
        return f"{inputs} -> {self.slices} x {self.channels}, residual={self.residual}"

    def forward(
        self,
        vectors: Tensor,
        offsets: Tensor,
        member: Tensor,
        top: Tensor,
        left: Tensor,
        right: Tensor,
    ) -> Tensor:
        """Convolve every window once."""
        sums = gather_windows(vectors, offsets, member, top, left, right)
        products = torch.addmm(self.bias, sums, self.weight).to(sums.dtype)  # not so by autocast
        outputs: Tensor = _Tanh.apply(products)  # type: ignore[no-untyped-call]
        if self.residual:
            outputs = outputs + sums[:, : outputs.shape[1]]
        return outputs.view(len(outputs), self.slices, self.channels)
