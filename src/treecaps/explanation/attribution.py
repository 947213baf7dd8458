"""How much each node of a program has to do with a class."""

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from treecaps.data.bags import hash_leaves
from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.models.architectures import architecture_of
from treecaps.models.calibration import UNKNOWN
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.batch import Batch
from treecaps.syntax.tree import Tree

Method = Literal["gradients", "routing"]
METHODS: tuple[Method, ...] = get_args(Method)
MOST_NODES = 2000
"""Of how large a program gradients are taken unless another method is asked for."""
Contributions = NDArray[np.float64]

_WAY = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
"""How gradients are integrated: by parts, since capsules grow fastest where vectors are short."""
_STEPS = 5
"""In each part."""


def best_method(model: TrainedModel, tree: Tree) -> Method:
    """Return the method that tells most of a program in a moment."""
    routed = all(
        isinstance(one, TreeCaps) and one.config.pooling == "routing" for one in model.members
    )
    return "routing" if routed and len(tree) > MOST_NODES else "gradients"


def attribute(model: TrainedModel, tree: Tree, label: str, method: Method) -> Contributions:
    """Return what each node of a tree adds to the length of a class's code capsule.

    Args:
        model: Whose answer it is.
        tree: The program.
        label: The class.
        method: ``gradients``: integrated gradients (Sundararajan et al. 2017) along the way from
            nodes without vectors to nodes with theirs. ``routing``: from each window the way to
            the static capsules and on to the code capsule, each to the extent to which it is a
            part of the next; what leads from a window is due to all its nodes alike.

    Returns:
        ``[n]``; with ``gradients`` they sum to how much longer the capsule is than without any
        vectors (what a few steps get wrong in all is mended in proportion), with ``routing`` to
        its length.
    """
    if method not in METHODS:
        raise UsageError(f"there is no method {method!r}; there are {' and '.join(METHODS)}")
    if label == UNKNOWN and label not in model.labels:
        raise UsageError("unknown is no class: without a label, the best guess is explained")
    if label not in model.labels:
        raise UsageError(f"the model knows no class {label!r}; it knows {', '.join(model.labels)}")
    number = model.labels.index(label)
    by = _by_gradients if method == "gradients" else _by_routing
    total = np.zeros(len(tree))
    for weight, member in zip(model.weights, model.members, strict=True):
        if not isinstance(member, TreeCaps):
            name = architecture_of(model.config)
            raise UsageError(f"only models of treecaps can be explained, and this is {name}")
        total += weight * by(member, tree, model.vocabulary, number)
    return total


def score_of(network: TreeCaps, batch: Batch, number: int) -> Callable[..., Tensor]:
    """Return what makes lengths of a code capsule ``[k]`` of k versions of all vectors.

    These are the vectors of nodes and, where there are capsules of tokens, those of tokens.
    """

    def score(*versions: Tensor) -> Tensor:
        every = zip(*versions, strict=True)
        return torch.stack([network(batch, *vectors).scores[0, number] for vectors in every])

    return score


def _by_gradients(
    network: TreeCaps, tree: Tree, vocabulary: Vocabulary, number: int
) -> Contributions:
    from captum.attr import IntegratedGradients

    config = network.config
    batch = Batch.of(Forest.node_by_node(tree, vocabulary, config.depths, bags=config.bags))
    with torch.no_grad():
        vectors = [network.symbol_vectors(batch.symbols)]
        if network.tokens and batch.bags:
            features, _, _ = network.tokens.find(batch.bags)
            vectors.append(network.tokens.vectors[features])
    score = score_of(network, batch, number)
    integrated = IntegratedGradients(score)
    totals: list[Contributions] = [np.zeros(len(one)) for one in vectors]
    for begin, end in pairwise(_WAY):
        found: tuple[Tensor, ...] = integrated.attribute(
            tuple(end * one.unsqueeze(0) for one in vectors),
            tuple(begin * one.unsqueeze(0) for one in vectors),
            n_steps=_STEPS,
            internal_batch_size=1,
        )
        for place, one in enumerate(found):
            totals[place] += one[0].sum(1).double().numpy()
    nodes, *tokens = totals
    if tokens and network.tokens:
        nodes = nodes + to_leaves(tree, network.tokens.known[features], tokens[0])
    with torch.no_grad():
        whole, without = (score(*(part * one.unsqueeze(0) for one in vectors)) for part in (1, 0))
    share = (whole - without).item() / (nodes.sum() or 1)
    return nodes * share if share > 0 else nodes


def _by_routing(
    network: TreeCaps, tree: Tree, vocabulary: Vocabulary, number: int
) -> Contributions:
    config = network.config
    forest, rows = Forest.with_rows(tree, vocabulary, config.depths, bags=config.bags)
    batch = Batch.of(forest)
    (shares,), code_shares = network.routes(batch)
    with torch.no_grad():
        due = code_shares[0, :, number] * network(batch).scores[0, number]
    windows = (shares @ due[: shares.shape[1]]).double().numpy()
    reach = sum(depth - 1 for depth in config.depths)
    # Nodes with the same window have the same part in it.
    nodes = spread(tree, (windows / forest.count)[rows], reach)
    if network.tokens and batch.bags:
        features, token_shares = network.tokens.shares(batch.bags)
        part = (token_shares @ due[shares.shape[1] :]).double().numpy()
        nodes = nodes + to_leaves(tree, features, part)
    return nodes


def to_leaves(tree: Tree, features: Tensor, values: Contributions) -> Contributions:
    """Share what is due to tokens and runs of them among the leaves where they occur.

    Args:
        tree: The program.
        features: ``[F]``, hashes, sorted.
        values: ``[F]``, what is due to each.

    Returns:
        ``[n]``, to each occurrence as much, and to all leaves of a run.
    """
    known, found = features.numpy(), np.zeros(len(tree))
    leaves, runs = hash_leaves(tree)
    for length, hashes in enumerate(runs, 1):
        place = np.searchsorted(known, hashes)
        there = np.append(known, 0)[place] == hashes
        place = place[there]
        times = np.bincount(place, minlength=len(known))
        for begin in range(length):
            run = leaves[begin : begin + len(hashes)]
            np.add.at(found, run[there], values[place] / times[place] / length)
    return found


def spread(tree: Tree, windows: Contributions, reach: int) -> Contributions:
    """Share what is due to windows among their nodes: the top and all that is less far below."""
    size = np.ones(len(tree))
    above = np.arange(len(tree))
    lines = [above]
    for _ in range(reach):
        above = np.where(above >= 0, tree.parent[above], -1)
        np.add.at(size, above[above >= 0], 1)
        lines.append(above)
    each = windows / size
    found = np.zeros(len(tree))
    for line in lines:
        found += np.where(line >= 0, each[line], 0)
    return found


def to_tokens(tree: Tree, nodes: Contributions) -> Contributions:
    """Return ``[n]``, what tokens have to do with it: leaves get what is due to those above too.

    A node that is no leaf leaves its part to the leaves below it, to each as much.
    """
    leaf = tree.child_count == 0
    leaves = leaf.astype(np.int64)
    parents = tree.parent.tolist()
    for node in range(len(tree) - 1, 0, -1):
        leaves[parents[node]] += leaves[node]
    found = nodes / leaves
    for node in range(1, len(tree)):
        found[node] += found[parents[node]]
    return np.where(leaf, found, 0)
