"""Calibration on validation data."""

import math

import numpy as np
from numpy.typing import NDArray

from treecaps.models.calibration import Calibration

_COLDEST, _HOTTEST = 1e-3, 10.0
_LOST = 0.05
"""The share of right answers that may be called unknown."""
_LITTLE = 24
"""Trees of so many nodes have a statement or two: nobody can tell what they are for."""
_BINS = 400
_ROWS = 1 << 10
"""Into how many classes similarities are counted, and for how many programs at a time."""


def calibrate(lengths: NDArray[np.float32], label: NDArray[np.int64]) -> Calibration:
    """Return the calibration under which validation data are most probable.

    Args:
        lengths: ``[B, classes]``, what a model says of validation programs.
        label: ``[B]``, their classes.

    Returns:
        A temperature that makes the likelihood of the classes greatest, and a threshold below
        which lie at most 5 % of the right answers. Without programs, nothing is changed.
    """
    if not len(label):
        return Calibration()
    from scipy.optimize import minimize_scalar  # slow to load
    from scipy.special import logsumexp

    lengths = lengths.astype(np.float64)

    def cross_entropy(exponent: float) -> float:
        logits = lengths / math.exp(exponent)
        right = logits[np.arange(len(label)), label]
        return float((logsumexp(logits, axis=1) - right).mean())

    bounds = (math.log(_COLDEST), math.log(_HOTTEST))
    best = minimize_scalar(cross_entropy, bounds=bounds, method="bounded")
    right = lengths.max(1)[lengths.argmax(1) == label]
    threshold = float(np.quantile(right, _LOST, method="lower")) if len(right) else 0.0
    return Calibration(math.exp(float(best.x)), threshold)


def least_nodes(nodes: NDArray[np.int64]) -> int:
    """Return below how many nodes a program is too little code to tell.

    Args:
        nodes: ``[B]``, how many nodes the training programs have. Where they are small
            themselves, half of a small one is little. One in a hundred may be there by mistake.
    """
    return min(_LITTLE, int(np.quantile(nodes, 0.01, method="lower")) // 2)


def calibrate_pairs(views: NDArray[np.float32], label: NDArray[np.int64]) -> Calibration:
    """Return how probable it is that two programs are of one class, by their similarity.

    Args:
        views: ``[V, B, E]``, embeddings of validation programs in one or more views, of length 1.
            Pairs are those of programs in one view.
        label: ``[B]``, their classes.

    Returns:
        The logistic function under which the pairs are most probable: the similarity at which half
        of them are of one class, and how fast that changes. Where all pairs are, or none,
        nothing is changed.
    """
    edges = np.linspace(-1, 1, _BINS + 1)
    same, every = np.zeros((2, _BINS))
    for vectors in views:
        for begin in range(0, len(label), _ROWS):
            alike = np.clip(vectors[begin : begin + _ROWS] @ vectors[begin:].T, -1, 1)
            pairs = np.triu(np.ones(alike.shape, bool), 1)
            right = pairs & (label[begin : begin + _ROWS, None] == label[begin:])
            every += np.histogram(alike[pairs], edges)[0]
            same += np.histogram(alike[right], edges)[0]
    if not 0 < same.sum() < every.sum():
        return Calibration()
    from scipy.optimize import minimize

    middle, others = (edges[1:] + edges[:-1]) / 2, every - same

    def cross_entropy(values: NDArray[np.float64]) -> float:
        logits = values[0] + values[1] * middle
        costs = same * np.logaddexp(0, -logits) + others * np.logaddexp(0, logits)
        return float(costs.sum() / every.sum())

    best = minimize(cross_entropy, np.array([-10.0, 10.0]), method="Nelder-Mead")
    slope = max(float(best.x[1]), 1 / _HOTTEST)
    return Calibration(1 / slope, float(np.clip(-best.x[0] / slope, 0, 1)))
