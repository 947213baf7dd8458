"""The read-out for nodes in NumPy, as ``nn.node_readout`` defines it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.graphs import GraphTensors
from treecaps.inputs.node_graphs import NodeTensors
from treecaps.models.engine import BugScores
from treecaps.models.light.arrays import sum_runs
from treecaps.models.light.network import LightTreeCaps, Weights
from treecaps.models.light.routing import make_static
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.syntax.edges import EDGES

READ_EDGES = ("Child", "NextToken", "LastUse")
FLOW = "LastUse"
EPSILON = 1e-5
"""The same as in ``nn.node_readout``."""

Batch = NodeTensors[NDArray[Any]]


def score_bugs(network: LightTreeCaps, batch: Batch) -> BugScores:
    """Return how suspicious the nodes of programs are."""
    config, windows, graph = network.config, batch.windows, batch.graph
    symbols = network.symbol_vectors(windows.symbols)
    capsules, count, weight = network.primary(windows, symbols)  # [N, D, C]
    known, about = [symbols[graph.symbol], capsules.reshape(len(capsules), -1)], None
    offsets = np.array(windows.bounds)
    if config.readout_static:
        static = make_static(config, capsules, windows.window, count, weight, offsets)
        size, channels = capsules.shape[1:]
        by_channel = static.reshape(len(static), channels, -1, size)
        agreement = [
            np.einsum("ndc,cad->nca", capsules[begin:end], one)
            for begin, end, one in zip(offsets, offsets[1:], by_channel, strict=False)
        ]
        known.append(np.concatenate(agreement).reshape(len(capsules), -1))
        about = static.reshape(len(static), -1)
    return read_out(config, network.weights, np.concatenate(known, 1), about, graph, offsets)


def read_out(
    config: TreeCapsConfig,
    weights: Weights,
    x: Floats,
    program: Floats | None,
    graph: GraphTensors[NDArray[Any]],
    offsets: Longs,
) -> BugScores:
    """Score the nodes ``[N, inputs]`` of programs ``[B, G]``."""

    def linear(name: str, values: Floats) -> Floats:
        found: Floats = values @ weights[f"readout.{name}.weight"].T
        found += weights[f"readout.{name}.bias"]
        return found

    def score(name: str, values: Floats) -> Floats:
        return linear(f"{name}.2", np.maximum(linear(f"{name}.0", values), 0))[:, 0]

    edges = [EDGES.index(name) for name in READ_EDGES if config.readout_flow or name != FLOW]
    ways = [
        way
        for kind in edges
        for source, target in (graph.edges[kind],)
        for way in (_runs(source, target, len(x)), _runs(target, source, len(x)))
    ]
    states = np.maximum(linear("inputs", x), 0)
    for number in range(config.readout_rounds):
        heard = [states, *(sum_runs(states, *way) for way in ways)]
        states = states + np.maximum(linear(f"rounds.{number}", np.concatenate(heard, 1)), 0)
        states = _normalize(states)
        states *= weights[f"readout.norms.{number}.weight"]
        states += weights[f"readout.norms.{number}.bias"]
    sizes = np.diff(offsets)
    share = np.repeat(1 / sizes, sizes).astype(states.dtype)
    mean = sum_runs(states, np.arange(len(states)), offsets, share)
    kinds = linear("kinds", states)
    if program is not None:
        about = linear("program", program)
        states = np.concatenate([states, np.repeat(about, sizes, 0)], 1)
        mean = np.concatenate([mean, about], 1)
    return BugScores(offsets, score("bug", states), score("none", mean), kinds)


def _runs(source: Longs, target: Longs, nodes: int) -> tuple[Longs, Longs, Floats]:
    """Return what ``sum_runs`` takes to give each node the mean of those that edges lead from."""
    count = np.bincount(target, minlength=nodes)
    order = np.argsort(target, kind="stable")
    share = (1 / count[target[order]]).astype(np.float32)
    return source[order], np.concatenate([[0], np.cumsum(count)]), share


def _normalize(states: Floats) -> Floats:
    centred = states - states.mean(1, keepdims=True)
    variance = np.square(centred).mean(1, keepdims=True)
    found: Floats = centred / np.sqrt(variance + np.float32(EPSILON))
    return found
