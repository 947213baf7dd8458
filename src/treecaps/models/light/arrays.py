"""What the forward pass in NumPy is made of: the counterparts of a few functions of PyTorch."""

import math

import numpy as np
from numpy.typing import NDArray

from treecaps import compiled
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs

_TINY = np.finfo(np.float32).tiny
_SHORT = 32
"""Up to so many rows, runs are summed many at a time; longer ones by a product each."""
_FEW = 16
"""Up to so many are chosen one by one; that is sooner than to sort all."""


def sum_runs(vectors: Floats, row: Longs, offsets: Longs, *weights: Floats) -> Floats:
    """Sum rows of vectors from each offset to the next, with weights, once for each kind of them.

    Args:
        vectors: ``[N, V]``.
        row: ``[M]``, the rows of the B runs, run after run.
        offsets: ``[B + 1]``, where each run begins.
        weights: ``[M]`` each, K in all: one to three.

    Returns:
        ``[B, K V]``; a run of none makes 0.
    """
    sizes, size = np.diff(offsets), vectors.shape[1]
    if (loops := compiled.loops) and vectors.dtype == np.float32:
        found = np.empty((len(sizes), len(weights) * size), np.float32)
        numbers = (np.ascontiguousarray(one, np.int64) for one in (row, offsets))
        due = (np.ascontiguousarray(one, np.float32) for one in weights)
        loops.sum_runs(size, np.ascontiguousarray(vectors), *numbers, found, *due)
        return found
    sums = np.zeros((len(sizes), len(weights), size), vectors.dtype)
    for run in np.flatnonzero(sizes > _SHORT):
        run_rows = slice(offsets[run], offsets[run + 1])
        np.matmul([one[run_rows] for one in weights], vectors[row[run_rows]], out=sums[run])
    # Of short runs the first rows at once, then the second of those that have one, and so on.
    short = np.flatnonzero((sizes > 0) & (sizes <= _SHORT))
    short = short[np.argsort(-sizes[short], kind="stable")]
    begins, here = offsets[short], np.zeros((len(weights), len(short), size), vectors.dtype)
    for rank in range(sizes[short[0]] if len(short) else 0):
        places = begins[: np.searchsorted(-sizes[short], -rank)] + rank
        members = vectors[row[places]]
        for total, one in zip(here, weights, strict=True):
            weight = one[places]
            if weight.any():
                total[: len(places)] += members * weight[:, None]
    sums[short] = here.swapaxes(0, 1)
    return sums.reshape(len(sizes), len(weights) * size)


def spread_runs(
    gradient: Floats, size: int, row: Longs, offsets: Longs, *weights: Floats
) -> Floats:
    """Return the gradient ``[N, V]`` of the vectors of ``sum_runs``, from that of its sums.

    Args:
        gradient: ``[B, K V]``.
        size: N, how many vectors there are.
        row: As ``sum_runs`` has it.
        offsets: Likewise.
        weights: Likewise.
    """
    order = np.argsort(row, kind="stable")
    run = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[order]
    begins = np.searchsorted(row[order], np.arange(size + 1))
    parts = np.split(gradient, len(weights), 1)
    found = [
        sum_runs(part, run, begins, one[order]) for part, one in zip(parts, weights, strict=True)
    ]
    return sum(found[1:], found[0])


def spread_flat_windows(
    gradient: Floats, row: Longs, offsets: Longs, left: Floats, right: Floats
) -> Floats:
    """Return what ``spread_runs`` does for windows of depth 2, one for each node, in order.

    A node is the top of its own window, and below the top in no more than one other.
    """
    of_top, of_left, of_right = np.split(gradient, 3, 1)
    found = of_top.copy()
    below = np.ones(len(row), bool)
    below[offsets[:-1]] = False
    run = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[below]
    found[row[below]] += left[below][:, None] * of_left[run] + right[below][:, None] * of_right[run]
    return found


def softmax(values: Floats, axis: int) -> Floats:
    """Return the softmax along an axis; there may be minus infinity, but not only."""
    found: Floats = values - values.max(axis, keepdims=True)
    np.exp(found, out=found)
    found /= found.sum(axis, keepdims=True)
    return found


def squash(capsules: Floats, form: str, axis: int = -1, out: Floats | None = None) -> Floats:
    """Squash capsules along an axis, as ``nn.squash`` does; the result may take their place."""
    squared = _squared(capsules, axis)
    scale = 1 if form == "printed" else np.sqrt(squared + _TINY)
    found: Floats = np.multiply(capsules, scale / (1 + squared), out=out)
    return found


def _squared(capsules: Floats, axis: int) -> Floats:
    """Return the squared lengths of capsules along an axis, which is kept."""
    if axis == 1 and capsules.ndim == 3:  # one pass where the other way takes two
        squared: Floats = np.einsum("wdc,wdc->wc", capsules, capsules)[:, None]
    else:
        squared = np.square(capsules).sum(axis, keepdims=True)
    return squared


def squash_gradient(capsules: Floats, gradient: Floats, form: str, axis: int = -1) -> Floats:
    """Return the gradient of capsules before they were squashed, from that afterwards."""
    squared: Floats = np.square(capsules).sum(axis, keepdims=True)
    scale = 1 if form == "printed" else np.sqrt(squared + _TINY)
    # The factor of a capsule, and twice its derivative by the squared length.
    factor = scale / (1 + squared)
    slope = (0 if form == "printed" else 1 / (scale * (1 + squared))) - 2 * factor / (1 + squared)
    along = (gradient * capsules).sum(axis, keepdims=True)
    found: Floats = factor * gradient + slope * along * capsules
    return found


def lengths(capsules: Floats) -> Floats:
    """Return the lengths of capsules ``[..., D]``."""
    found: Floats = np.sqrt(np.square(capsules).sum(-1) + _TINY)
    return found


def choose(keys: Floats, count: Floats, most: int) -> NDArray[np.int64]:
    """Return where the largest keys ``[n, ...]`` are, as often as each occurs: ``[k, ...]``.

    Args:
        keys: By what is chosen, each column by itself.
        count: ``[n]``, how often each row occurs.
        most: How many to choose; k is fewer if there are fewer.
    """
    most = min(most, round(float(count.sum())))
    if most <= _FEW:
        columns = keys.reshape(len(keys), math.prod(keys.shape[1:])).T
        return _choose_few(columns.copy(), count, most).reshape(most, *keys.shape[1:])
    order = np.argsort(-keys, axis=0, kind="stable")
    ends = count[order].cumsum(0)
    # The first place where more than so many have come.
    wanted = np.arange(most).reshape(-1, *[1] * ends.ndim)
    return np.take_along_axis(order, (ends[None] > wanted).argmax(1), 0)


def _choose_few(keys: Floats, count: Floats, most: int) -> Longs:
    """Return where the largest keys ``[columns, n]`` are, ``[most, columns]``: one by one."""
    columns = np.arange(len(keys))
    found = np.zeros((most, len(keys)), np.int64)
    before = times = np.zeros(len(keys), np.int64)
    for step in range(most):
        place = found[step] = keys.argmax(1)
        times = np.where(place == before, times, 0) + 1
        done = count[place] <= times
        keys[columns[done], place[done]] = -np.inf
        before = place
    return found
