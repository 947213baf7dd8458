"""How much each node of a program has to do with a class."""

from typing import Literal, get_args

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.explanation.gradients import integrate_gradients
from treecaps.explanation.spreading import Contributions, spread, to_leaves
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.architectures import architecture_of
from treecaps.models.calibration import UNKNOWN
from treecaps.models.light.network import LightTreeCaps
from treecaps.models.light.tracing import find_routes
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.syntax.tree import Tree
from treecaps.text import did_you_mean

Method = Literal["gradients", "routing"]
METHODS: tuple[Method, ...] = get_args(Method)
MOST_NODES = 2000
"""Of how large a program gradients are taken unless another method is asked for."""


def best_method(model: TrainedModel, tree: Tree) -> Method:
    """Return the method that tells most of a program in a moment."""
    routed = type(model.config) is TreeCapsConfig and model.config.has_routes
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
        hint = did_you_mean(label, model.labels) or f"it knows {', '.join(model.labels)}"
        raise UsageError(f"the model knows no class {label!r}; {hint}")
    if type(model.config) is not TreeCapsConfig:
        name = architecture_of(model.config)
        raise UsageError(f"only the architecture treecaps can be explained, and this is {name}")
    if method == "routing" and not model.config.has_routes:
        raise UsageError("there are no routes: maxima were taken, or the top k of each channel")
    number = model.labels.index(label)
    by = integrate_gradients if method == "gradients" else _by_routing
    total = np.zeros(len(tree))
    for weight, network in model.light_engine.networks:
        total += weight * by(network, tree, model.vocabulary, number)
    return total


def _by_routing(
    network: LightTreeCaps, tree: Tree, vocabulary: Vocabulary, number: int
) -> Contributions:
    config = network.config
    program, rows = WindowsAndBags.with_rows(tree, vocabulary, config.depths, config.feature)
    routes = find_routes(network, program.to_tensors(np.asarray))
    due = routes.code[:, number] * routes.scores[number]
    statics = routes.windows.shape[1]
    windows = (routes.windows @ due[:statics]).astype(np.float64)
    reach = sum(depth - 1 for depth in config.depths)
    # Nodes with the same window have the same part in it.
    nodes = spread(tree, (windows / program.windows.count)[rows], reach)
    if len(routes.features):
        part = (routes.tokens @ due[statics:]).astype(np.float64)
        nodes = nodes + to_leaves(tree, routes.features, part)
    return nodes
