"""One round of routing, each channel by itself, compiled by Numba.

PyTorch goes over all capsules a dozen times for a round and its gradient; here each is read once
for each of them.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from treecaps.nn.numba_tools import LOG2_E, MATH, exp2, in_threads

_LOG2_E = np.float32(LOG2_E)
_LEAST = np.float32(-120)
"""Of an exponent: the power is as good as nothing, and its bits are still right."""

Array = NDArray[Any]

# Numba compiles these for each length of the tuple `like`, which is the size D of a capsule: loops
# over it become straight code.


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _multiply(unit: Any, difference: Any, row: Any, largest: Any, like: Any) -> None:
    """Write the products of two capsules of each channel, and keep the largest of all."""
    for c in range(len(row)):
        product = unit[0, c] * difference[0, c]
        for d in range(1, len(like)):
            product += unit[d, c] * difference[d, c]
        row[c] = product * _LOG2_E
    for c in range(len(row)):
        largest[c] = max(largest[c], row[c])


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _exponentiate(row: Any, largest: Any, total: Any) -> None:
    """Take 2 to the power of a row, less the largest, and add it up."""
    for c in range(len(row)):
        row[c] = exp2(max(row[c] - largest[c], _LEAST))
        total[c] += row[c]


@numba.njit(nogil=True, fastmath=MATH, cache=True, error_model="numpy")
def _divide(row: Any, total: Any, weight: Any) -> None:
    for c in range(len(row)):
        row[c] = row[c] * weight[c] / total[c]


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _add(sums: Any, coupling: Any, unit: Any) -> None:
    """Add a capsule of each channel, times its coupling, to the sums ``[D, C]``."""
    for d in range(len(sums)):
        for c in range(len(coupling)):
            sums[d, c] += coupling[c] * unit[d, c]


@numba.njit(nogil=True, fastmath=MATH, cache=True, error_model="numpy")
def _pull(
    unit: Any, gradient: Any, coupling: Any, total: Any, row: Any, mean: Any, like: Any
) -> None:
    """Write the products of two capsules of each channel; add up their mean by the coupling."""
    for c in range(len(row)):
        product = unit[0, c] * gradient[0, c]
        for d in range(1, len(like)):
            product += unit[d, c] * gradient[d, c]
        row[c] = product
        mean[c] += coupling[c] / total[c] * product


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _centre(row: Any, mean: Any, coupling: Any) -> None:
    for c in range(len(row)):
        row[c] = (row[c] - mean[c]) * coupling[c]


@numba.njit(nogil=True, cache=True)
def _route(
    capsules: Any,
    weights: Any,
    differences: Any,
    present: Any,
    window: Any,
    bounds: Any,
    like: Any,
    gradient: Any,
    for_capsules: Any,
    for_weights: Any,
    sums: Any,
) -> None:
    """Route all programs, and add to the sums ``[B, a - 1, D, C]``.

    Without a gradient these are the sums of the forward pass; with it, the gradient of the
    differences, and those of capsules and weights are filled in too. Numba compiles the two by
    themselves.
    """
    others, channels = differences.shape[1], differences.shape[3]
    coupling = np.zeros((others, channels), np.float32)
    pull = np.zeros_like(coupling)
    first, largest, total, mean = np.zeros((4, channels), np.float32)
    for program in range(len(bounds) - 1):
        for p in range(bounds[program], bounds[program + 1]):
            unit = capsules[window[p]]
            largest[:] = 0  # the product of the first static capsule with its difference
            for j in range(others):
                if present[program, j]:
                    _multiply(unit, differences[program, j], coupling[j], largest, like)
            total[:] = 0
            first[:] = 0
            _exponentiate(first, largest, total)
            for j in range(others):
                if present[program, j]:
                    _exponentiate(coupling[j], largest, total)
            if gradient is None:
                for j in range(others):
                    if present[program, j]:
                        _divide(coupling[j], total, weights[p])
                        _add(sums[program, j], coupling[j], unit)
                continue
            mean[:] = 0
            for j in range(others):
                if present[program, j]:
                    _pull(unit, gradient[program, j], coupling[j], total, pull[j], mean, like)
            for_weights[p] = mean
            for j in range(others):
                if present[program, j]:
                    _divide(coupling[j], total, weights[p])
                    _centre(pull[j], mean, coupling[j])
                    found = for_capsules[window[p]]
                    _add(found, coupling[j], gradient[program, j])
                    _add(found, pull[j], differences[program, j])
                    _add(sums[program, j], pull[j], unit)


class CompiledRoute(torch.autograd.Function):
    """The same as ``routing_engine.Route``, for 32 bits, on the CPU."""

    @staticmethod
    def forward(
        ctx: Any,
        capsules: Tensor,
        weights: Tensor,
        differences: Tensor,
        present: Tensor,
        window: Tensor,
        bounds: list[int],
    ) -> Tensor:
        """Return the sums ``[B, a - 1, D, C]``."""
        ctx.save_for_backward(capsules, weights, differences, present, window)
        ctx.bounds = np.array(bounds)
        return _run(ctx.bounds, None, capsules, weights, differences, present, window)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the capsules, the weights and the differences."""
        found, for_capsules, for_weights = _run(ctx.bounds, gradients[0], *ctx.saved_tensors)
        if ctx.saved_tensors[1].shape[1] == 1:
            for_weights = for_weights.sum(1, keepdim=True)
        return for_capsules, for_weights, found, None, None, None


def _run(
    bounds: NDArray[np.int64],
    gradient: Tensor | None,
    capsules: Tensor,
    weights: Tensor,
    differences: Tensor,
    present: Tensor,
    window: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the kernel, some of the channels in each thread.

    Returns:
        The sums, and with a gradient those of capsules and weights; all of these have channels
        last.
    """
    channels, threads = capsules.shape[2], torch.get_num_threads()
    parts = [int(one) for one in np.linspace(0, channels, threads + 1)]
    weights = weights.expand(-1, channels)
    kernel: Callable[..., None] = _route

    def run(part: int) -> list[Tensor]:
        some = slice(parts[part], parts[part + 1])

        def pick(values: Tensor) -> Array:
            return values.detach()[..., some].contiguous().numpy()

        mine, times, targets = pick(capsules), pick(weights), pick(differences)
        sums = np.zeros_like(targets)
        others = (np.zeros_like(one if gradient is not None else one[:0]) for one in (mine, times))
        for_capsules, for_weights = others
        kernel(
            mine,
            times,
            targets,
            present.numpy(),
            window.numpy(),
            bounds,
            (0,) * mine.shape[1],
            None if gradient is None else pick(gradient),
            for_capsules,
            for_weights,
            sums,
        )
        return [torch.from_numpy(one) for one in (sums, for_capsules, for_weights)]

    found = zip(*in_threads(run, threads), strict=True)
    sums, for_capsules, for_weights = (
        one[0] if len(one) == 1 else torch.cat(one, -1) for one in found
    )
    return sums, for_capsules, for_weights
