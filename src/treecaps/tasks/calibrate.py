"""Calibration on validation data."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.models.calibration import Calibration

_COLDEST, _HOTTEST = 1e-3, 10.0
_LOST = 0.05
"""The share of right answers that may be called unknown."""
_LOST_BESIDE_BACKGROUND = (0.01, 0.025)
"""The same where there is background: if that is well apart, and otherwise."""
_PASSED = 0.0005
"""The share of background that may get a class, if no more right answers are lost for it."""
_MOST_LOST = 0.1
"""The share of right answers that may be called unknown where background is near."""
_WORSE = 5
"""How much worse a class for background is than none for a right answer."""
_LITTLE = 24
"""Trees of so many nodes have a statement or two: nobody can tell what they are for."""
_BINS = 400
_ROWS = 1 << 10
"""Into how many classes similarities are counted, and for how many programs at a time."""


def calibrate(
    lengths: NDArray[np.float32],
    label: NDArray[np.int64],
    background: NDArray[np.float32] | None = None,
) -> Calibration:
    """Return the calibration under which validation data are most probable, with a threshold.

    Args:
        lengths: ``[B, classes]``, what a model says of validation programs.
        label: ``[B]``, their classes.
        background: ``[N, classes]``, what it says of programs of none of the classes.

    Returns:
        A temperature that makes the likelihood of the classes greatest, modest where programs are
        few, and the threshold of ``find_threshold``. Without programs, nothing is changed. With
        background, also the length that stands for none of the classes.
    """
    if not len(label):
        return Calibration()
    values = lengths.astype(np.float64)
    if background is not None and len(background):
        return _calibrate_beside(values, label, background.astype(np.float64))
    from scipy.optimize import minimize_scalar  # slow to load

    def cost(exponent: float) -> float:
        return _cross_entropy(values / math.exp(exponent), label)

    bounds = (math.log(_COLDEST), math.log(_HOTTEST))
    best = minimize_scalar(cost, bounds=bounds, method="bounded")
    return Calibration(math.exp(float(best.x)), find_threshold(lengths, label))


def find_threshold(
    lengths: NDArray[np.floating[Any]],
    label: NDArray[np.int64],
    background: NDArray[np.floating[Any]] | None = None,
) -> float:
    """Return the length below which a guess is called unknown.

    Args:
        lengths: ``[B, classes]``, what a model says of validation programs.
        label: ``[B]``, their classes.
        background: ``[N, classes]``, what it says of programs of none of the classes.

    Returns:
        At most 5 % of the right answers lie below it. With background, one in 2,000 of that passes,
        if at most 2.5 % of the right answers lie below it. Where the two are well apart, it lies
        halfway between them. Where they are near, a class for background counts as five right
        answers that are lost, and no more than 10 % of those are.
    """
    right = lengths.max(1)[lengths.argmax(1) == label]
    if background is None or not len(background):
        return float(np.quantile(right, _LOST, method="lower")) if len(right) else 0.0
    longest = np.sort(background.max(1))
    threshold = np.nextafter(np.quantile(longest, 1 - _PASSED, method="higher"), 1)
    if not len(right):
        return float(threshold)
    low, high = np.quantile(right, _LOST_BESIDE_BACKGROUND, method="lower")
    if threshold <= high:
        return float(max(threshold, (threshold + low) / 2))
    lost = np.arange(int(_MOST_LOST * len(right)) + 1)
    found = np.sort(right)[lost]
    passed = 1 - np.searchsorted(longest, found) / len(longest)
    return float(found[np.argmin(lost / len(right) + _WORSE * passed)])


def _calibrate_beside(
    lengths: NDArray[np.float64], label: NDArray[np.int64], background: NDArray[np.float64]
) -> Calibration:
    """Return the calibration where half of what is asked about is background."""
    from scipy.optimize import minimize

    classes = lengths.shape[1]
    parts = [(lengths, label), (background, np.full(len(background), classes))]

    def cost(values: NDArray[np.float64]) -> float:
        temperature, none = math.exp(values[0]), values[1]
        return sum(
            _cross_entropy(np.c_[some, np.full(len(some), none)] / temperature, right)
            for some, right in parts
        )

    bounds = [(math.log(_COLDEST), math.log(_HOTTEST)), (0.0, 1.0)]
    best = minimize(cost, np.array([-2.0, 0.5]), method="Nelder-Mead", bounds=bounds)
    threshold = find_threshold(lengths, label, background)
    return Calibration(math.exp(float(best.x[0])), threshold, none=float(best.x[1]))


def _cross_entropy(logits: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    """Return the cross-entropy of N programs as if one more in N + 2 were of any class.

    So a few programs that are all right do not make a model certain: they are given about the
    probability of Laplace's rule of succession.
    """
    from scipy.special import logsumexp

    doubt = 1 / (len(label) + 2)
    right = logits[np.arange(len(label)), label]
    wanted = (1 - doubt) * right + doubt * logits.mean(1)
    return float((logsumexp(logits, axis=1) - wanted).mean())


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
