"""Integrated gradients: how much each node of a program adds to a class."""

from itertools import pairwise

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.explanation.spreading import Contributions, to_leaves
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.light.network import LightTreeCaps
from treecaps.models.light.tracing import gradients, length_of
from treecaps.syntax.tree import Tree

_WAY = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
"""How gradients are integrated: by parts, since capsules grow fastest where vectors are short."""
_STEPS = 4
"""In each part."""


def integrate_gradients(
    network: LightTreeCaps, tree: Tree, vocabulary: Vocabulary, number: int
) -> Contributions:
    """Return ``[n]``, what each node adds to the length of a class's code capsule.

    The gradients are integrated (Sundararajan et al. 2017) along the way from nodes without
    vectors to nodes with theirs, by Gauss-Legendre quadrature.
    """
    config = network.config
    program = WindowsAndBags.node_by_node(tree, vocabulary, config.depths, config.feature)
    batch = program.to_tensors(np.asarray)
    vectors = network.symbol_vectors(batch.windows.symbols)
    features = of_tokens = None
    if network.has_tokens and batch.bags is not None:
        features, _ = network.find_tokens(batch.bags)
        of_tokens = network.weights["tokens.vectors"][features]
    places, shares = np.polynomial.legendre.leggauss(_STEPS)
    nodes = np.zeros(len(tree))
    tokens = np.zeros(0 if features is None else len(features))
    for begin, end in pairwise(_WAY):
        for place, share in zip(places, shares, strict=True):
            at = np.float32(begin + (end - begin) * (1 + place) / 2)
            some = None if of_tokens is None else at * of_tokens
            found = gradients(network, batch, number, at * vectors, some)
            step = share / 2 * (end - begin)
            nodes += step * (found.nodes * vectors).sum(1)
            if found.tokens is not None and of_tokens is not None:
                tokens += step * (found.tokens * of_tokens).sum(1)
    if features is not None:
        nodes += to_leaves(tree, network.weights["tokens.known"][features], tokens)
    whole, without = (
        length_of(
            network,
            batch,
            number,
            at * vectors,
            None if of_tokens is None else at * of_tokens,
        )
        for at in (np.float32(1), np.float32(0))
    )
    mended = (whole - without) / (float(nodes.sum()) or 1)
    return nodes * mended if mended > 0 else nodes
