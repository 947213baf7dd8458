"""Integrated gradients: how much each node of a program adds to a class."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treecaps.data.vocabulary import Vocabulary
from treecaps.explanation.spreading import Contributions, to_leaves
from treecaps.inputs.windows_and_bags import WindowsAndBags, WindowsAndBagsTensors
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.tensors import to_numpy, to_tensors
from treecaps.syntax.tree import Tree

_WAY = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
"""How gradients are integrated: by parts, since capsules grow fastest where vectors are short."""
_STEPS = 5
"""In each part."""


def score_of(
    network: TreeCaps, batch: WindowsAndBagsTensors[Tensor], number: int
) -> Callable[..., Tensor]:
    """Return what makes lengths of a code capsule ``[k]`` of k versions of all vectors.

    These are the vectors of nodes and, where there are capsules of tokens, those of tokens.
    """

    def score(*versions: Tensor) -> Tensor:
        every = zip(*versions, strict=True)
        return torch.stack([network(batch, *vectors).scores[0, number] for vectors in every])

    return score


def integrate_gradients(
    network: TreeCaps, tree: Tree, vocabulary: Vocabulary, number: int
) -> Contributions:
    """Return ``[n]``, what each node adds to the length of a class's code capsule.

    The gradients are integrated (Sundararajan et al. 2017) along the way from nodes without
    vectors to nodes with theirs.
    """
    from captum.attr import IntegratedGradients

    config = network.config
    program = WindowsAndBags.node_by_node(tree, vocabulary, config.depths, config.feature)
    batch: WindowsAndBagsTensors[Tensor] = to_tensors(program, network.vectors)
    vectors, features = _vectors_of(network, batch)
    score = score_of(network, batch, number)
    integrated: Any = IntegratedGradients(score)
    totals: list[Contributions] = [np.zeros(len(one)) for one in vectors]
    for begin, end in pairwise(_WAY):
        found: tuple[Tensor, ...] = integrated.attribute(
            tuple(end * one.unsqueeze(0) for one in vectors),
            tuple(begin * one.unsqueeze(0) for one in vectors),
            n_steps=_STEPS,
            internal_batch_size=1,
        )
        for place, one in enumerate(found):
            totals[place] += to_numpy(one[0].sum(1).double())
    nodes, *tokens = totals
    if tokens and features is not None:
        nodes = nodes + to_leaves(tree, to_numpy(features), tokens[0])
    with torch.no_grad():
        whole, without = (score(*(part * one.unsqueeze(0) for one in vectors)) for part in (1, 0))
    share = (whole - without).item() / (nodes.sum() or 1)
    return nodes * share if share > 0 else nodes


@torch.no_grad()
def _vectors_of(
    network: TreeCaps, batch: WindowsAndBagsTensors[Tensor]
) -> tuple[list[Tensor], Tensor | None]:
    """Return the vectors of nodes and, if there are any, of token features with their hashes."""
    vectors = [network.symbol_vectors(batch.windows.symbols)]
    if network.tokens is None or batch.bags is None:
        return vectors, None
    bags = batch.bags
    place, _, _ = network.tokens.find(bags.offsets, bags.feature, bags.count)
    return [*vectors, network.tokens.vectors[place]], network.tokens.known[place]
