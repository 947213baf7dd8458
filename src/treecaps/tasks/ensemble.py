"""Ensembles: how much each of several networks should count."""

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

_EVEN = 1e-3


def weigh(outputs: Doubles, target: Doubles) -> list[float]:
    r"""Return weights for members that make the error of their mean least.

    .. math::
        \min_w \Bigl\| \sum_m w_m f_m - y \Bigr\|^2 \qquad w_m \ge 0 \qquad \sum_m w_m = 1

    on validation data (Krogh & Vedelsby 1995). As the weights sum to 1, this is the length of a
    weighted sum of the members' errors, and grows with the scale of w: the best direction is that
    of the non-negative least squares that ask the weights to sum to 1 at any price, and its
    weights are scaled to 1 afterwards. Members that are equally good get equal weights by a small
    cost of every weight's square.

    Args:
        outputs: ``[members, B, classes]``.
        target: ``[B, classes]``.
    """
    members = len(outputs)
    even = [1 / members] * members
    if members == 1 or not target.size:
        return even
    errors = (outputs - target).reshape(members, -1).T
    scale = float(np.sqrt(np.square(errors).sum() / members))
    if not np.isfinite(scale) or not scale:
        return even
    from scipy.optimize import nnls  # slow to load

    small = np.linalg.qr(errors / scale, mode="r")
    rows = np.vstack([small, _EVEN * np.eye(members), np.ones(members)])
    wanted = np.zeros(len(rows))
    wanted[-1] = 1
    weights, _ = nnls(rows, wanted)
    total = float(weights.sum())
    return [float(weight / total) for weight in weights] if total > 0 else even
