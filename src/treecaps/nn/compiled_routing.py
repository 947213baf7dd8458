"""Top-k routing, compiled by Numba: the choice of the largest, and their competition.

PyTorch multiplies, exponentiates and adds up in passes of their own over millions of numbers. Here
a few rows at a time stay in the cache from the first product to the last sum.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_LOG2_E = math.log2(math.e)
_ROWS = 8
_TILE = 512
_LINE = 16
"""Numbers in a line of the cache."""
# Reordering sums would spoil the rounding in `_exp2`, so it is allowed in `_dot` alone.
_MATH = {"contract", "nnan", "ninf", "nsz", "arcp", "afn"}
# Added to a number below 2**22 and taken away again, it rounds; the low bits of the sum are the
# rounded number.
_ROUND = np.float32(3 << 22)
# Of the series of 2**x; for |x| <= 1/2 it is right to 2e-7.
_C = tuple(np.float32(np.log(2.0) ** k / np.prod(np.arange(1.0, k + 1))) for k in range(7))
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = _C


@intrinsic
def _add_exponent(context: Any, value: Any, rounded: Any) -> Any:
    """Multiply a value by 2 to the power of what is in the low bits of ``rounded``."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        whole = ir.IntType(32)
        value, power = (builder.bitcast(one, whole) for one in arguments)
        shifted = builder.shl(power, ir.Constant(whole, 23))
        return builder.bitcast(builder.add(value, shifted), ir.FloatType())

    return types.float32(types.float32, types.float32), generate


@numba.njit(inline="always")
def _exp2(x: Any) -> Any:
    """Return 2**x for |x| < 120."""
    rounded = x + _ROUND
    rest = x - (rounded - _ROUND)
    value = _C6 * rest + _C5
    value = value * rest + _C4
    value = value * rest + _C3
    value = value * rest + _C2
    value = value * rest + _C1
    value = value * rest + _C0
    return _add_exponent(value, rounded)  # type: ignore[call-arg]  # Numba adds the context


@numba.njit(nogil=True, cache=True)
def _find_largest(keys: Any, count: Any, begin: int, end: int, place: Any) -> None:
    """Write to ``place`` ``[most, columns]`` where the largest of each column of keys are."""
    most = len(place)
    order = np.empty(most + 1, np.int64)
    for column in range(begin, end):
        kept, nodes = 0, 0
        for i in range(len(keys)):
            key = keys[i, column]
            if count[i] == 0 or (nodes >= most and key <= keys[order[kept - 1], column]):
                continue
            j = kept
            while j > 0 and keys[order[j - 1], column] < key:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
            kept += 1
            nodes += count[i]
            while nodes - count[order[kept - 1]] >= most:
                kept -= 1
                nodes -= count[order[kept]]
        k = 0
        for j in range(kept):
            for _ in range(min(count[order[j]], most - k)):
                place[k, column] = order[j]
                k += 1


@numba.njit(nogil=True, cache=True)
def _number_rows(place: Any, most: int, index: Any, times: Any, row: Any) -> int:
    """Tell the distinct rows among the ``most`` largest of each channel, and count them.

    Args:
        place: ``[at least most, K, C]``, which window each of K coordinates is taken from, or all.
        most: How many there are of each channel.
        index: ``[most C, D]``; a row's places in the capsules ``[n, D, C]``, made flat.
        times: ``[most C]``; how often it occurs.
        row: ``[C, most]``; the number of each row.

    Returns:
        How many distinct rows there are.
    """
    _, sources, channels = place.shape
    size = index.shape[1]
    last = -1
    for c in range(channels):
        for k in range(most):
            fresh = k == 0
            for d in range(sources):
                fresh = fresh or place[k, d, c] != place[k - 1, d, c]
            if fresh:
                last += 1
                times[last] = 0
                for d in range(size):
                    index[last, d] = (place[k, d % sources, c] * size + d) * channels + c
            times[last] += 1
            row[c, k] = last
    return last + 1


def choose_largest(keys: Tensor, count: Tensor, most: int) -> NDArray[np.int64]:
    """Return ``[most, K, C]``, where the largest of keys ``[n, K, C]`` are, with multiplicities."""
    flat, times = keys.flatten(1).numpy(), count.numpy().astype(np.int64)
    place = np.zeros((most, flat.shape[1]), np.int64)
    bounds = np.linspace(0, flat.shape[1], torch.get_num_threads() + 1).astype(np.int64)

    def run(part: int) -> None:
        _find_largest(flat, times, bounds[part], bounds[part + 1], place)

    _in_threads(run)
    return place.reshape(most, *keys.shape[1:])


def distinct_rows(place: NDArray[np.int64], most: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find the distinct rows among the ``most`` largest of each channel.

    Returns:
        ``[R, D]``, where the numbers of a row are in the capsules, made flat; ``[R]``, how often it
        occurs; and ``[C, most]``, the row of the k-th largest of each channel.
    """
    channels = place.shape[2]
    index = np.empty((most * channels, size), np.int64)
    times, row = np.empty(most * channels, np.float32), np.empty((channels, most), np.int64)
    found = _number_rows(place, most, index, times, row)
    return torch.from_numpy(index[:found]), torch.from_numpy(times[:found]), torch.from_numpy(row)


@numba.njit(nogil=True, fastmath=True, cache=True)
def _dot(first: Any, second: Any) -> Any:
    total = np.float32(0)
    for j in range(len(first)):
        total += first[j] * second[j]
    return total


@numba.njit(nogil=True, fastmath=True, cache=True)
def _sum(values: Any) -> Any:
    total = np.float32(0)
    for j in range(len(values)):
        total += values[j]
    return total


@numba.njit(nogil=True, fastmath=_MATH, cache=True)
def _add_eight(
    total: Any, weights: Any, r: Any, s: Any, t: Any, u: Any, v: Any, w: Any, x: Any, y: Any
) -> None:
    """Add eight rows with weights. Rows are arguments so that the compiler can use vectors."""
    a, b, c, d, e, f, g, h = weights
    for j in range(len(total)):
        total[j] += (
            a * r[j] + b * s[j] + c * t[j] + d * u[j] + e * v[j] + f * w[j] + g * x[j] + h * y[j]
        )


@numba.njit(nogil=True, cache=True)
def _add_outer(sums: Any, weights: Any, rows: Any) -> None:
    """Add the products of weights ``[8, D]`` and rows ``[8, S]`` to sums ``[D, S]``."""
    for begin in range(0, sums.shape[1], _TILE):
        end = min(begin + _TILE, sums.shape[1])
        for d in range(sums.shape[0]):
            _add_eight(
                sums[d, begin:end],
                (
                    weights[0, d],
                    weights[1, d],
                    weights[2, d],
                    weights[3, d],
                    weights[4, d],
                    weights[5, d],
                    weights[6, d],
                    weights[7, d],
                ),
                rows[0, begin:end],
                rows[1, begin:end],
                rows[2, begin:end],
                rows[3, begin:end],
                rows[4, begin:end],
                rows[5, begin:end],
                rows[6, begin:end],
                rows[7, begin:end],
            )


@numba.njit(nogil=True, fastmath=_MATH, cache=True)
def _subtract(row: Any, coupling: Any, copies: Any, mean: Any) -> None:
    for j in range(len(row)):
        row[j] -= mean * copies[j] * coupling[j]


# Numba compiles these for each length of the tuple `like`, which is the size D of a capsule: loops
# over it become straight code, and what is compiled can be kept on disk.


@numba.njit(nogil=True, fastmath=_MATH, cache=True)
def _couple(unit: Any, total: Any, row: Any, like: Any) -> None:
    """Write exp(u V_j) for all j."""
    for j in range(len(row)):
        product = unit[0] * total[0, j]
        for d in range(1, len(like)):
            product += unit[d] * total[d, j]
        row[j] = _exp2(product)


@numba.njit(nogil=True, fastmath=_MATH, cache=True)
def _pull(unit: Any, gradient: Any, coupling: Any, row: Any, like: Any) -> None:
    """Write the products of u and the gradients of all j, times the coupling."""
    for j in range(len(row)):
        product = unit[0] * gradient[0, j]
        for d in range(1, len(like)):
            product += unit[d] * gradient[d, j]
        row[j] = coupling[j] * product


@numba.njit(nogil=True, cache=True)
def _forward(
    units: Any,
    times: Any,
    total: Any,
    copies: Any,
    scale: Any,
    like: Any,
    begin: int,
    end: int,
    rows: Any,
    sums: Any,
) -> None:
    """Run the forward pass over some of the rows."""
    weights = np.zeros((_ROWS, units.shape[1]), np.float32)
    for first in range(begin, end, _ROWS):
        weights[:] = 0
        for k in range(min(_ROWS, end - first)):
            i = first + k
            _couple(units[i], total, rows[k], like)
            scale[i] = times[i] / _dot(rows[k], copies)
            weights[k] = units[i] * scale[i]
        _add_outer(sums, weights, rows)


@numba.njit(nogil=True, cache=True)
def _backward(
    units: Any,
    times: Any,
    total: Any,
    copies: Any,
    scale: Any,
    gradient: Any,
    like: Any,
    begin: int,
    end: int,
    rows: Any,
    sums: Any,
) -> None:
    """Run the backward pass over some of the rows."""
    coupling = rows[_ROWS]
    weights = np.zeros((_ROWS, units.shape[1]), np.float32)
    for first in range(begin, end, _ROWS):
        weights[:] = 0
        for k in range(min(_ROWS, end - first)):
            i = first + k
            _couple(units[i], total, coupling, like)
            _pull(units[i], gradient, coupling, rows[k], like)
            mean = _sum(rows[k]) * (scale[i] / times[i])
            _subtract(rows[k], coupling, copies, mean)
            weights[k] = units[i] * scale[i]
        _add_outer(sums, weights, rows)


class CompiledCompetition(torch.autograd.Function):
    """One round of routing of rows u with multiplicities m to rows V with multiplicities n.

    The same as ``top_k_routing.Competition``, for 32 bits, on the CPU, without a gradient for u,
    and for products below 80.
    """

    @staticmethod
    def forward(ctx: Any, units: Tensor, times: Tensor, total: Tensor, copies: Tensor) -> Tensor:
        """Return the sums ``[S, D]``."""
        scaled = _pad(total.detach().T * _LOG2_E)
        arrays = (units.contiguous(), times, scaled, _pad(copies), torch.empty_like(times))
        ctx.save_for_backward(*arrays)
        return _run(_forward, *arrays)[: len(total)]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of V."""
        (gradient,) = gradients
        found = _run(_backward, *ctx.saved_tensors, _pad(gradient.T))
        return None, None, found[: len(gradient)], None


def _pad(values: Tensor) -> Tensor:
    """Fill up the last dimension with zeros, so that every row begins with a line of the cache."""
    return nn.functional.pad(values, (0, -values.shape[-1] % _LINE)).contiguous()


def _run(kernel: Callable[..., None], units: Tensor, *others: Tensor) -> Tensor:
    """Run a kernel over all rows, a part of them in each thread, and add up; ``[S, D]``."""
    threads = torch.get_num_threads()
    bounds = np.linspace(0, len(units), threads + 1).astype(np.int64)
    size, statics = others[1].shape
    sums = units.new_zeros(threads, size, statics)
    rows = units.new_zeros(threads, _ROWS + 1, statics)
    arrays = [one.numpy() for one in (units, *others)]
    like = (0,) * size

    def run(part: int) -> None:
        kernel(
            *arrays, like, bounds[part], bounds[part + 1], rows[part].numpy(), sums[part].numpy()
        )

    _in_threads(run)
    return sums.sum(0).T


def _in_threads(run: Callable[[int], None]) -> None:
    """Call with the number of each thread, all at the same time."""
    waiting = [_pool().submit(run, part) for part in range(1, torch.get_num_threads())]
    run(0)
    for one in waiting:
        one.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="routing")
