"""Calibration on validation data."""

import math

import numpy as np
import torch
from torch import Tensor

from treecaps.models.calibration import Calibration

_COLDEST, _HOTTEST = 1e-3, 10.0
_LOST = 0.05
"""The share of right answers that may be called unknown."""


def calibrate(lengths: Tensor, label: Tensor) -> Calibration:
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

    lengths = lengths.double()

    def surprise(exponent: float) -> float:
        return torch.nn.functional.cross_entropy(lengths / math.exp(exponent), label).item()

    bounds = (math.log(_COLDEST), math.log(_HOTTEST))
    best = minimize_scalar(surprise, bounds=bounds, method="bounded")
    longest, guess = lengths.max(1)
    right = longest[guess == label].numpy()
    threshold = float(np.quantile(right, _LOST, method="lower")) if len(right) else 0.0
    return Calibration(math.exp(float(best.x)), threshold)
