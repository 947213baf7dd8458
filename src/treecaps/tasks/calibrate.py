"""Calibration on validation data."""

import math

import numpy as np
from numpy.typing import NDArray

from treecaps.models.calibration import Calibration

_COLDEST, _HOTTEST = 1e-3, 10.0
_LOST = 0.05
"""The share of right answers that may be called unknown."""


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
