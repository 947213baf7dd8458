"""The linear discriminant of embeddings: fewer numbers, and those that tell classes apart."""

import numpy as np

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs

_LEAST = 1e-6
"""Variances below this share of the largest are taken for that."""


def fit_discriminant(vectors: Floats, label: Longs, size: int, whitening: float) -> Floats:
    r"""Return the linear discriminant of classes, after partial whitening.

    With the scatter :math:`S_w = U \Lambda U^\top` within classes and :math:`S_b` between them,

    .. math:: W = U \Lambda^{-w/2} \qquad P = W V

    where V holds the eigenvectors of :math:`W^\top S_b W` with the largest eigenvalues. With w = 1
    this is Fisher's discriminant. With less, directions in which programs of one class differ count
    more than they would, which is better for classes that are not among these. Every class counts
    the same, however many programs it has.

    Args:
        vectors: ``[B, E]``.
        label: ``[B]``, from 0.
        size: D, how many directions are kept.
        whitening: w, from 0 to 1.

    Returns:
        P, ``[E, D]``: vectors are multiplied with it.
    """
    classes, label, count = np.unique(label, return_inverse=True, return_counts=True)
    values = vectors.astype(np.float64)
    means = np.zeros((len(classes), values.shape[1]))
    np.add.at(means, label, values)
    means /= count[:, None]
    within = (values - means[label]) / np.sqrt(count * len(classes))[label, None]
    between = (means - means.mean(0)) / np.sqrt(len(classes))
    variance, directions = np.linalg.eigh(within.T @ within)
    variance = np.maximum(variance, max(_LEAST * variance[-1], np.finfo(np.float64).tiny))
    whitened = directions * variance ** (-whitening / 2)
    apart = between @ whitened
    strongest = np.linalg.eigh(apart.T @ apart)[1][:, ::-1][:, :size]
    found = whitened @ strongest
    projection: Floats = (found / np.abs(found).max()).astype(np.float32)
    return projection
