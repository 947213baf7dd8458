"""Random vectors: what learned ones must beat."""

import numpy as np

from treecaps.inputs.base import Floats


def draw_random(kinds: int, size: int, seed: int) -> Floats:
    r"""Draw every number of every vector from a normal distribution.

    .. math::
        x \sim \mathcal N(0, 1)

    Returns:
        ``[K, V]``.
    """
    return np.random.default_rng(seed).standard_normal((kinds, size), np.float32)
