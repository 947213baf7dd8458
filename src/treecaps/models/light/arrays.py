"""What the forward pass in NumPy is made of: the counterparts of a few functions of PyTorch."""

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs

_TINY = np.finfo(np.float32).tiny


def sum_runs(values: Floats, offsets: Longs) -> Floats:
    """Sum rows ``[n, ...]`` from each offset to the next, to ``[B, ...]``; no rows make 0."""
    sums = np.zeros((len(offsets) - 1, *values.shape[1:]), values.dtype)
    there = np.flatnonzero(np.diff(offsets))
    if len(there):
        sums[there] = np.add.reduceat(values, offsets[there], axis=0)
    return sums


def softmax(values: Floats, axis: int) -> Floats:
    """Return the softmax along an axis; there may be minus infinity, but not only."""
    found: Floats = np.exp(values - values.max(axis, keepdims=True))
    found /= found.sum(axis, keepdims=True)
    return found


def squash(capsules: Floats, form: str, axis: int = -1) -> Floats:
    """Squash capsules along an axis, as ``nn.squash`` does."""
    squared: Floats = np.square(capsules).sum(axis, keepdims=True)
    scale = 1 if form == "printed" else np.sqrt(squared + _TINY)
    found: Floats = capsules * (scale / (1 + squared))
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
    order = np.argsort(-keys, axis=0, kind="stable")
    ends = count[order].cumsum(0)
    wanted = np.arange(min(most, round(float(count.sum()))))
    # The first place where more than so many have come.
    step = (ends[None] > wanted.reshape(-1, *[1] * ends.ndim)).argmax(1)
    return np.take_along_axis(order, step, 0)
