"""Top-k routing, compiled by Numba: the choice of the largest, and their competition.

PyTorch multiplies, exponentiates and adds up in passes of their own over millions of numbers. Here
a few rows at a time stay in the cache from the first product to the last sum.
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

_ROWS = 8
_TILE = 512
_LINE = 16
"""Numbers in a line of the cache."""


@numba.njit(nogil=True, cache=True)
def _find_largest(keys: Any, count: Any, bounds: Any, begin: int, end: int, place: Any) -> None:
    """Write to ``place`` ``[B, most, columns]`` where the largest of some columns of keys are."""
    most = place.shape[1]
    order = np.empty(most + 1, np.int64)
    for program in range(len(place)):
        first, last = bounds[program], bounds[program + 1]
        some = np.empty((_LINE, last - first), keys.dtype)
        for line in range(begin, end, _LINE):
            width = min(_LINE, end - line)
            for i in range(last - first):
                for j in range(width):
                    some[j, i] = keys[first + i, line + j]
            for j in range(width):
                kept = _find_in(some[j], count[first:last], order, most)
                k = 0
                for one in order[:kept]:
                    for _ in range(min(count[first + one], most - k)):
                        place[program, k, line + j] = first + one
                        k += 1


@numba.njit(nogil=True, cache=True)
def _find_in(keys: Any, count: Any, order: Any, most: int) -> int:
    """Write to ``order`` where the largest are, so many that they occur ``most`` times in all."""
    kept, nodes = 0, 0
    for i in range(len(keys)):
        key = keys[i]
        if count[i] == 0 or (nodes >= most and key <= keys[order[kept - 1]]):
            continue
        j = kept
        while j > 0 and keys[order[j - 1]] < key:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
        kept += 1
        nodes += count[i]
        while nodes - count[order[kept - 1]] >= most:
            kept -= 1
            nodes -= count[order[kept]]
    return kept


@numba.njit(nogil=True, cache=True)
def _number_rows(place: Any, most: int, index: Any, times: Any, row: Any, begins: Any) -> None:
    """Tell the distinct rows among the ``most`` largest of each channel, and count them.

    Args:
        place: ``[B, at least most, K, C]``, which window each of K coordinates is taken from, or
            all; -1 for none.
        most: How many there are of each channel.
        index: ``[B C most, D]``; a row's places in the capsules ``[P, D, C]``, made flat.
        times: ``[B C most]``; how often it occurs.
        row: ``[B, C, most]``; the number of each row, -1 for none.
        begins: ``[B C + 1]``; the first row of each channel of each program.
    """
    programs, _, sources, channels = place.shape
    size = index.shape[1]
    last = -1
    for program in range(programs):
        for c in range(channels):
            begins[program * channels + c] = last + 1
            for k in range(most):
                if place[program, k, 0, c] < 0:
                    row[program, c, k] = -1
                    continue
                fresh = k == 0
                for d in range(sources):
                    fresh = fresh or place[program, k, d, c] != place[program, k - 1, d, c]
                if fresh:
                    last += 1
                    times[last] = 0
                    for d in range(size):
                        window = place[program, k, d % sources, c]
                        index[last, d] = (window * size + d) * channels + c
                times[last] += 1
                row[program, c, k] = last
    begins[programs * channels] = last + 1


def choose_largest(keys: Tensor, count: Tensor, bounds: list[int], most: int) -> NDArray[np.int64]:
    """Return where the largest of keys ``[P, K, C]`` are, with multiplicities.

    Returns:
        ``[B, most, K, C]``, with -1 where a program has fewer.
    """
    flat, times = keys.flatten(1).numpy(), count.numpy().astype(np.int64)
    programs, columns = np.array(bounds), flat.shape[1]
    place = np.full((len(bounds) - 1, most, columns), -1)
    threads = torch.get_num_threads()
    parts = np.linspace(0, columns, threads + 1).astype(np.int64)

    def run(part: int) -> None:
        _find_largest(flat, times, programs, parts[part], parts[part + 1], place)

    in_threads(run, threads)
    return place.reshape(len(place), most, *keys.shape[1:])


def distinct_rows(
    place: NDArray[np.int64], most: int, size: int
) -> tuple[Tensor, Tensor, Tensor, NDArray[np.int64]]:
    """Find the distinct rows among the ``most`` largest of each channel.

    Returns:
        ``[R, D]``, where the numbers of a row are in the capsules, made flat; ``[R]``, how often it
        occurs; ``[B, C, most]``, the row of the k-th largest of each channel, R for none; and
        ``[B C + 1]``, the first row of each channel of each program.
    """
    programs, _, _, channels = place.shape
    index = np.empty((programs * channels * most, size), np.int64)
    times, row = np.empty(len(index), np.float32), np.empty((programs, channels, most), np.int64)
    begins = np.empty(programs * channels + 1, np.int64)
    _number_rows(place, most, index, times, row, begins)
    found = int(begins[-1])
    row[row < 0] = found
    arrays = (index[:found], times[:found], row)
    first, second, third = map(torch.from_numpy, arrays)
    return first, second, third, begins


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


@numba.njit(nogil=True, fastmath=MATH, cache=True)
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


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _subtract(row: Any, coupling: Any, copies: Any, mean: Any) -> None:
    for j in range(len(row)):
        row[j] -= mean * copies[j] * coupling[j]


# Numba compiles these for each length of the tuple `like`, which is the size D of a capsule: loops
# over it become straight code, and what is compiled can be kept on disk.


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _couple(unit: Any, total: Any, row: Any, like: Any) -> None:
    """Write exp(u V_j) for all j."""
    for j in range(len(row)):
        product = unit[0] * total[0, j]
        for d in range(1, len(like)):
            product += unit[d] * total[d, j]
        row[j] = exp2(product)


@numba.njit(nogil=True, fastmath=MATH, cache=True)
def _pull(unit: Any, gradient: Any, coupling: Any, row: Any, like: Any) -> None:
    """Write the products of u and the gradients of all j, times the coupling."""
    for j in range(len(row)):
        product = unit[0] * gradient[0, j]
        for d in range(1, len(like)):
            product += unit[d] * gradient[d, j]
        row[j] = coupling[j] * product


@numba.njit(nogil=True, cache=True)
def _compete(
    units: Any,
    times: Any,
    total: Any,
    copies: Any,
    unit_bounds: Any,
    bounds: Any,
    scale: Any,
    gradient: Any,
    like: Any,
    begin: int,
    end: int,
    sums: Any,
) -> None:
    """Let some of the rows u compete, and add what comes of it to the sums ``[S, D]``.

    Without a gradient ``[S, D]`` these are the sums of the forward pass, which also fills in the
    scale of each row u; with it, the gradient of V. Numba compiles the two by themselves.
    """
    size = units.shape[1]
    weights = np.zeros((_ROWS, size), np.float32)
    for program in range(len(bounds) - 1):
        start, stop = max(begin, unit_bounds[program]), min(end, unit_bounds[program + 1])
        if start >= stop:
            continue
        first, last = bounds[program], bounds[program + 1]
        width = -(-(last - first) // _LINE) * _LINE
        targets = _transpose(total, first, last, width)
        pulls = targets if gradient is None else _transpose(gradient, first, last, width)
        here, number = np.zeros((size, width), np.float32), np.zeros(width, np.float32)
        number[: last - first] = copies[first:last]
        rows, coupling = np.zeros((_ROWS, width), np.float32), np.zeros(width, np.float32)
        for block in range(start, stop, _ROWS):
            weights[:] = 0
            for k in range(min(_ROWS, stop - block)):
                i = block + k
                if gradient is None:
                    _couple(units[i], targets, rows[k], like)
                    scale[i] = times[i] / _dot(rows[k], number)
                else:
                    _couple(units[i], targets, coupling, like)
                    _pull(units[i], pulls, coupling, rows[k], like)
                    mean = _sum(rows[k]) * (scale[i] / times[i])
                    _subtract(rows[k], coupling, number, mean)
                weights[k] = units[i] * scale[i]
            _add_outer(here, weights, rows)
        sums[first:last] += here[:, : last - first].T


@numba.njit(nogil=True, cache=True)
def _transpose(values: Any, first: int, last: int, width: int) -> Any:
    """Return the rows from the first to the last as columns, filled up with zeros."""
    found = np.zeros((values.shape[1], width), np.float32)
    for j in range(last - first):
        for d in range(values.shape[1]):
            found[d, j] = values[first + j, d]
    return found


class CompiledCompetition(torch.autograd.Function):
    """One round of routing of rows u with multiplicities m to rows V with multiplicities n.

    The same as ``top_k_routing.Competition``, for 32 bits, on the CPU, without a gradient for u,
    for products up to 60 and capsules of up to 64 numbers.
    """

    @staticmethod
    def forward(
        ctx: Any,
        units: Tensor,
        times: Tensor,
        total: Tensor,
        copies: Tensor,
        bounds: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> Tensor:
        """Return the sums ``[S, D]``."""
        scaled, scale = total.detach() * LOG2_E, torch.empty_like(times)
        rows = (units.contiguous(), times.contiguous(), scaled.contiguous(), copies.contiguous())
        starts = (torch.from_numpy(np.ascontiguousarray(one)) for one in bounds)
        arrays = (*rows, *starts, scale)
        ctx.save_for_backward(*arrays)
        return _run(arrays, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of V."""
        return None, None, _run(ctx.saved_tensors, gradients[0].contiguous()), None, None


def _run(tensors: tuple[Tensor, ...], gradient: Tensor | None) -> Tensor:
    """Let all rows u compete, a part of them in each thread, and add up; ``[S, D]``."""
    arrays = [one.numpy() for one in tensors]
    units, _, total, _, unit_bounds, bounds, _ = arrays
    threads = torch.get_num_threads()
    # Each row u meets as many rows V as its program has; the work is divided evenly.
    work = np.repeat(np.diff(bounds), np.diff(unit_bounds)).cumsum()
    share = np.arange(1, threads) / threads
    inner = np.searchsorted(work, share * work[-1]) if len(work) else np.zeros(threads - 1, int)
    parts = [0, *inner, len(units)]
    sums = np.zeros((threads, *total.shape), np.float32)
    others = (None if gradient is None else gradient.numpy(), (0,) * units.shape[1])
    kernel: Callable[..., None] = _compete

    def run(part: int) -> None:
        kernel(*arrays, *others, parts[part], parts[part + 1], sums[part])

    in_threads(run, threads)
    return torch.from_numpy(sums.sum(0))
