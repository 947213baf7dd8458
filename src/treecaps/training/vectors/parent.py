"""Vectors by which the kind of a node's parent can be told."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.node_windows import WindowLayer

_HIDDEN = 100
_STEPS = 400
_RATE = 0.02


def pair_counts(windows: WindowLayer, counts: Longs, kinds: int) -> Longs:
    """Count how often a node of one kind lies right below a node of another.

    Args:
        windows: W windows of depth 2.
        counts: ``[W]``, how many nodes have each.
        kinds: K, the size of the vocabulary.

    Returns:
        ``[K, K]``: rows are children, columns parents.
    """
    sizes = np.diff(windows.offsets)
    tops = windows.offsets[:-1]
    parent = np.repeat(windows.member[tops], sizes)
    pairs = windows.member * kinds + parent
    weights = np.repeat(counts, sizes)
    weights[tops] = 0  # a window's first member is the parent itself
    totals = np.bincount(pairs, weights=weights, minlength=kinds * kinds)
    return totals.astype(np.int64).reshape(kinds, kinds)


def parent_loss(vectors: Tensor, layers: list[Tensor], pairs: Tensor) -> Tensor:
    r"""Return how badly parents are told from their children, in nats a pair.

    .. math::
        L = -\frac{1}{N} \sum_{c, p} n_{cp} \log \mathrm{softmax}
            \bigl(W_2 \tanh(W_1 x_c + b_1) + b_2\bigr)_p

    Args:
        vectors: ``[K, V]``, the x of each kind.
        layers: W1 ``[100, V]``, b1 ``[100]``, W2 ``[K, 100]`` and b2 ``[K]``.
        pairs: ``[K, K]``, how often n kind c lies below kind p, as shares of all N.
    """
    hidden = functional.linear(vectors, layers[0], layers[1]).tanh()
    scores = functional.linear(hidden, layers[2], layers[3])
    return -(pairs * scores.log_softmax(1)).sum()


def learn_parent(
    windows: WindowLayer,
    counts: Longs,
    kinds: int,
    size: int,
    seed: int,
    step: Callable[[float], None],
) -> Floats:
    """Learn the vectors of the TreeCaps paper's vectorizer (that of crestonbunch/tbcnn).

    The loss is ``parent_loss``. It depends on the pairs' counts alone, so every step is one over
    the whole corpus, and exact. A kind that never lies below another keeps the vector it began
    with.

    Returns:
        ``[K, V]``.
    """
    rng = torch.Generator().manual_seed(seed)
    pairs = torch.from_numpy(pair_counts(windows, counts, kinds)).float()
    pairs /= pairs.sum()
    vectors = 0.1 * torch.randn(kinds, size, generator=rng)
    layers = [
        torch.randn(_HIDDEN, size, generator=rng) / size**0.5,
        torch.zeros(_HIDDEN),
        torch.randn(kinds, _HIDDEN, generator=rng) / _HIDDEN**0.5,
        torch.zeros(kinds),
    ]
    learned = [tensor.requires_grad_() for tensor in (vectors, *layers)]
    optimizer = torch.optim.Adam(learned, lr=_RATE)
    for number in range(_STEPS):
        optimizer.zero_grad()
        parent_loss(vectors, layers, pairs).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        step((number + 1) / _STEPS)
    values: Floats = vectors.detach().numpy()
    return values
