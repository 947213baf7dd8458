"""The backward pass of one program, from code capsules to nodes and tokens, in NumPy."""

from typing import NamedTuple

import numpy as np

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.models.light.arrays import lengths
from treecaps.models.light.network import Backward, Batch, Coupled, LightTreeCaps
from treecaps.models.light.routing import Routed, normalize, route


class Gradients(NamedTuple):
    """How the length of a code capsule changes with the vectors of nodes and tokens.

    Args:
        length: The length.
        nodes: ``[n, V]``.
        tokens: ``[F, V]``, of the features that the network knows; ``None`` if it has none.
    """

    length: float
    nodes: Floats
    tokens: Floats | None


class Routes(NamedTuple):
    """Where the code capsules of one program come from.

    Args:
        windows: ``[n, S]``, how much of each static capsule is due to each window.
        features: ``[F]``, hashes of the features that the network knows, sorted.
        tokens: ``[F, C]``, how much of each static capsule of tokens is due to each feature.
        code: ``[S + C, classes]``, how much of each code capsule is due to each static capsule.
        scores: ``[classes]``, the lengths of the code capsules.
    """

    windows: Floats
    features: Longs
    tokens: Floats
    code: Floats
    scores: Floats


class _Trace(NamedTuple):
    """The forward pass of one program, with what it takes to go back.

    Args:
        capsules: ``[n, D, C]``, the primary capsules.
        backward: The backward functions from them to the vectors of nodes.
        gates: That from their weights to the outputs of the last convolution, if there are gates.
        routed: The static capsules; ``None`` where maxima are taken.
        tokens: ``[C, D]``, the static capsules of tokens, if there are any.
        token_backward: That from them to the vectors of tokens.
        layers: The capsule layers above.
    """

    capsules: Floats
    backward: Backward
    gates: Backward
    routed: Routed | None
    tokens: Floats | None
    token_backward: Backward
    layers: list[Coupled]


def gradients(
    network: LightTreeCaps,
    batch: Batch,
    number: int,
    vectors: Floats,
    of_tokens: Floats | None = None,
) -> Gradients:
    """Return the gradients of the length of a code capsule.

    Args:
        network: The network.
        batch: One program, with a window for each node.
        number: The class.
        vectors: ``[n, V]``, the vectors of its nodes.
        of_tokens: ``[F, V]``, those of the features that the network knows.
    """
    form = network.config.squash
    trace = _trace(network, batch, vectors, of_tokens)
    code = trace.layers[-1].values
    length = lengths(code[0, number])
    gradient = np.zeros_like(code)
    gradient[0, number] = code[0, number] / length
    for layer in reversed(trace.layers):
        gradient = layer.gradient(gradient, form)
    tokens = None
    static = gradient[0]
    if trace.tokens is not None:
        count = len(trace.tokens)
        static, tokens = static[:-count], gradient[:, -count:]
        for back in trace.token_backward:
            tokens = back(tokens)
    *convolutions, flatten = trace.backward
    if trace.routed:
        nodes, weights = trace.routed.gradient(static, form, trace.capsules)
        nodes = sum((back(weights) for back in trace.gates), flatten(nodes))
    else:
        nodes = flatten(_gradient_of_maxima(static[0], trace.capsules))
    for back in reversed(convolutions):
        nodes = back(nodes)
    return Gradients(float(length), nodes, tokens)


def length_of(
    network: LightTreeCaps,
    batch: Batch,
    number: int,
    vectors: Floats,
    of_tokens: Floats | None = None,
) -> float:
    """Return the length of a code capsule, as ``gradients`` does."""
    return float(lengths(_trace(network, batch, vectors, of_tokens).layers[-1].values[0, number]))


def find_routes(network: LightTreeCaps, batch: Batch) -> Routes:
    """Return where the code capsules of one program come from; there must be routes."""
    trace = _trace(network, batch)
    assert trace.routed is not None
    windows = trace.routed.due(trace.capsules.shape[2], network.config.statics)
    code = trace.layers[0].due()
    for layer in trace.layers[1:]:
        code = code @ layer.due()
    features, tokens = np.zeros(0, np.int64), np.zeros((0, 0), np.float32)
    if trace.tokens is not None and batch.bags is not None:
        place, there = network.find_tokens(batch.bags)
        features = network.weights["tokens.known"][place]
        units, _ = network.token_units(network.weights["tokens.vectors"][place])
        weight = network.weigh_tokens(batch.bags.count[there])
        tokens = normalize((units * trace.tokens.T).sum(1) * weight[:, None])
    return Routes(windows, features, tokens, code, lengths(trace.layers[-1].values[0]))


def _trace(
    network: LightTreeCaps,
    batch: Batch,
    vectors: Floats | None = None,
    of_tokens: Floats | None = None,
) -> _Trace:
    """Run the forward pass of one program, step by step."""
    config = network.config
    backward: Backward = []
    gates: Backward = []
    token_backward: Backward = []
    capsules, count, weight = network.primary(batch.windows, vectors, backward, gates)
    # The windows of one program are in order, and each is there once.
    assert np.array_equal(batch.windows.window, np.arange(len(capsules)))
    routed = tokens = None
    if config.pooling == "max":
        static = capsules.max((0, 2))[None]
    else:
        routed = route(config, capsules, count, weight)
        static = routed.fill_up(config.statics)
    if network.has_tokens and batch.bags is not None:
        (tokens,) = network.tokens(batch.bags, of_tokens, token_backward)
        static = np.concatenate([static, tokens])
    layers: list[Coupled] = []
    below = static[None]
    for name, outputs in (("secondary", config.secondary), ("code", network.classes)):
        if outputs:
            layers.append(network.couple(name, below, outputs))
            below = layers[-1].values
    return _Trace(capsules, backward, gates, routed, tokens, token_backward, layers)


def _gradient_of_maxima(gradient: Floats, capsules: Floats) -> Floats:
    """Return the gradient of capsules ``[n, D, C]`` from that of the maxima of coordinates."""
    found = np.zeros_like(capsules)
    _, size, channels = capsules.shape
    place = capsules.swapaxes(0, 1).reshape(size, -1).argmax(1)
    found[place // channels, np.arange(size), place % channels] = gradient
    return found
