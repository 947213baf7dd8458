"""Smoothing by neighbours: what the near ones of a match are like counts too.

Embeddings of programs that do the same lie together, but not each is near to each. Moved towards
its neighbours in an index, an embedding is nearer to all of its kind. That uses the collection, and
pays where it has several programs of a kind.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.base import Floats

CANDIDATES = 200
"""How many of the nearest are ranked anew, with each other as neighbours."""
NEIGHBOURS = 10
"""How many neighbours an embedding is moved towards."""


def rank(
    query: Floats, candidates: Floats, probability: Callable[[Floats], Floats]
) -> NDArray[np.int64]:
    r"""Return candidates by their similarity to a query after smoothing, nearest first.

    .. math:: v_i' = \mathrm{unit}\Bigl(v_i + \sum_{j \in N_i} p(v_i \cdot v_j) \, v_j\Bigr)

    with :math:`N_i` the ten candidates nearest to i, and p the probability that two programs of a
    similarity do the same. The query is smoothed likewise.

    Args:
        query: ``[E]``, of length 1.
        candidates: ``[C, E]``, of length 1.
        probability: p, of an array of similarities.
    """
    among = candidates @ candidates.T
    np.fill_diagonal(among, -np.inf)  # nothing is its own neighbour
    moved = _smooth(candidates, among, candidates, probability)
    (asked,) = _smooth(query[None], (candidates @ query)[None], candidates, probability)
    order: NDArray[np.int64] = np.argsort(-(moved @ asked), kind="stable")
    return order


def _smooth(
    vectors: Floats,
    similarity: Floats,
    others: Floats,
    probability: Callable[[Floats], Floats],
) -> Floats:
    """Move vectors ``[V, E]`` towards the nearest of others ``[C, E]``.

    Args:
        vectors: What is moved.
        similarity: ``[V, C]``, of each with each of the others.
        others: What it is moved towards.
        probability: How much a neighbour of a similarity counts.
    """
    count = min(NEIGHBOURS, len(others))
    nearest = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
    weight = probability(np.take_along_axis(similarity, nearest, 1))
    moved = vectors + np.einsum("vn,vne->ve", weight, others[nearest])
    found: Floats = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return found
