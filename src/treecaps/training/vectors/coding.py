"""Vectors by which a node can be coded from its children."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.node_windows import WindowLayer
from treecaps.syntax.tree import Tree

_MARGIN = 1.0
_DECAY = 1e-4
_STEPS = 2000
_BATCH = 256
_RATE = 0.01


def leaf_shares(trees: Iterable[Tree], vocabulary: Vocabulary, windows: WindowLayer) -> Floats:
    """Return which share of the leaves below a node lies below each of its children.

    The share depends on more than the window, so it is the mean over all nodes that have the
    window.

    Args:
        trees: The trees that the windows were taken from.
        vocabulary: Numbers of their kinds.
        windows: Their distinct windows of depth 2, M members in all.

    Returns:
        ``[M]``, 0 for the node itself.
    """
    hashes = _Hashes(len(vocabulary), int(np.diff(windows.offsets).max(initial=1)))
    found = hashes.of(
        windows.member,
        np.repeat(np.arange(len(windows)), np.diff(windows.offsets)),
        np.arange(len(windows.member)) - np.repeat(windows.offsets[:-1], np.diff(windows.offsets)),
        len(windows),
    )
    order = np.argsort(found)
    found = found[order]
    sums = np.zeros(len(windows.member))
    times = np.zeros(len(windows.member), np.int64)
    for tree in trees:
        kind, nodes = vocabulary.encode(tree), np.arange(len(tree))
        parent, position = tree.parent[1:], tree.position[1:] + 1
        own = hashes.of(
            np.concatenate([kind, kind[1:]]),
            np.concatenate([nodes, parent]),
            np.concatenate([np.zeros_like(nodes), position]),
            len(tree),
        )
        leaves = _leaves_below(tree)
        window = order[np.searchsorted(found, own[parent])]
        member = windows.offsets[window] + position
        np.add.at(sums, member, leaves[1:] / leaves[parent])
        np.add.at(times, member, 1)
    return (sums / np.maximum(times, 1)).astype(np.float32)


def _leaves_below(tree: Tree) -> Longs:
    """Return the number of leaves in each node's subtree, itself if it is one."""
    # A subtree is one run of nodes, so it is enough to know its last: follow last children,
    # twice as far each time.
    last = np.arange(len(tree))
    last[tree.parent[1:]] = last[1:]
    while not np.array_equal(last, further := last[last]):
        last = further
    before = np.concatenate([[0], np.cumsum(tree.child_count == 0)])
    leaves: Longs = before[last + 1] - before[:-1]
    return leaves


class _Hashes:
    """One number of 64 bits for each window, the same wherever the window is met."""

    def __init__(self, kinds: int, members: int) -> None:
        rng = np.random.default_rng(0)
        self.kinds = rng.integers(2**64, size=kinds, dtype=np.uint64)
        self.places = rng.integers(2**64, size=members, dtype=np.uint64)

    def of(
        self, kind: NDArray[np.integer], window: Longs, place: Longs, windows: int
    ) -> NDArray[np.uint64]:
        hashed = np.zeros(windows, np.uint64)
        np.add.at(hashed, window, self.kinds[kind] * self.places[place])
        return hashed


def coding_distances(
    vectors: Tensor,
    weights: Tensor,
    bias: Tensor,
    windows: WindowLayer,
    shares: Floats,
) -> Tensor:
    r"""Return how far each node is from what its children say of it.

    .. math::
        d = \Bigl\| x_p - \tanh\Bigl(\sum_{i=1}^n l_i
            \Bigl(\frac{n - i}{n - 1} W_l + \frac{i - 1}{n - 1} W_r\Bigr) x_i + b\Bigr)
            \Bigr\|^2

    over the n children i of a node p; l is a child's share of the leaves. An only child takes
    half of each matrix. Being linear inside, it sums the children first and multiplies once.

    Args:
        vectors: ``[K, V]``, the x of each kind.
        weights: ``[2 V, V]``, the transposes of W_l and W_r.
        bias: ``[V]``.
        windows: B windows of depth 2 with M members in all.
        shares: ``[M]``, the l of each member.

    Returns:
        ``[B]``.
    """
    member = torch.from_numpy(windows.member)
    offsets = torch.from_numpy(windows.offsets[:-1])
    sums = [
        functional.embedding_bag(
            member,
            vectors,
            offsets,
            mode="sum",
            # The weights of the node itself are 0 on both sides.
            per_sample_weights=torch.from_numpy(shares * side).to(vectors.dtype),
        )
        for side in (windows.weights.left, windows.weights.right)
    ]
    coded = torch.addmm(bias, torch.cat(sums, 1), weights).tanh()
    return (vectors[member[offsets]] - coded).square().sum(1)


def learn_coding(
    windows: WindowLayer,
    counts: Longs,
    shares: Floats,
    kinds: int,
    size: int,
    seed: int,
    step: Callable[[float], None],
) -> Floats:
    r"""Learn vectors by the coding criterion (Peng et al. 2015).

    .. math::
        L = \frac{1}{B} \sum \max(0, 1 + d - d_c)
            + \frac{\lambda}{2} (\|W_l\|^2 + \|W_r\|^2)

    The d of a window is that of ``coding_distances``, and d_c is the same after one of its
    members, the node or a child, was replaced by another kind. Windows are drawn in batches of B,
    each as often as the root of its count says: by the count itself, rare kinds would hardly ever
    be seen. The shares of leaves are those of ``leaf_shares``: means over all nodes with the
    same window.

    Returns:
        ``[K, V]``.
    """
    rng = np.random.default_rng(seed)
    draw = torch.Generator().manual_seed(seed)
    vectors = 0.1 * torch.randn(kinds, size, generator=draw)
    weights = torch.randn(2 * size, size, generator=draw) / size**0.5
    bias = torch.zeros(size)
    learned = [tensor.requires_grad_() for tensor in (vectors, weights, bias)]
    optimizer = torch.optim.Adam(learned, lr=_RATE)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, _STEPS)
    inner = np.flatnonzero(np.diff(windows.offsets) > 1)
    edges = np.cumsum(np.sqrt(counts[inner]))
    for number in range(_STEPS):
        drawn = inner[np.searchsorted(edges, rng.random(_BATCH) * edges[-1], side="right")]
        batch, share = _take(windows, shares, drawn)
        optimizer.zero_grad()
        good = coding_distances(vectors, weights, bias, batch, share)
        bad = coding_distances(vectors, weights, bias, _corrupt(batch, kinds, rng), share)
        loss = functional.relu(_MARGIN + good - bad).mean() + _DECAY / 2 * weights.square().sum()
        loss.backward()
        optimizer.step()
        slower.step()
        step((number + 1) / _STEPS)
    values: Floats = vectors.detach().numpy()
    return values


def _take(windows: WindowLayer, shares: Floats, drawn: Longs) -> tuple[WindowLayer, Floats]:
    """Return some windows and the shares of their members."""
    # Numbered members tell which shares go along.
    rows = windows.over(np.arange(len(windows.member))).select(drawn)
    return rows.over(windows.member[rows.member]), shares[rows.member]


def _corrupt(windows: WindowLayer, kinds: int, rng: np.random.Generator) -> WindowLayer:
    """Replace one member of each window by another known kind."""
    sizes = np.diff(windows.offsets)
    rows = windows.offsets[:-1] + rng.integers(sizes)
    member = windows.member.copy()
    # Kinds are numbered from 1; a turn by less than a full one never ends where it began.
    turn = rng.integers(1, kinds - 1, size=len(windows))
    member[rows] = (member[rows] - 1 + turn) % (kinds - 1) + 1
    return windows.over(member)
