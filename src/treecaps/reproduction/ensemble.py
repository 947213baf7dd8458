"""Ensembles of networks that were trained one by one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from treecaps.data.sequences import count_nodes
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.trained import TrainedModel
from treecaps.reproduction.data import Labelled
from treecaps.tasks.classification import Classification
from treecaps.tasks.examples import Examples


def join(models: Sequence[TrainedModel], val: Labelled) -> TrainedModel:
    """Return the ensemble of some models, weighed as ``treecaps train --ensemble`` weighs it.

    Args:
        models: Models that were trained on the same programs, with different seeds.
        val: The programs that chose their epochs.
    """
    first = models[0]
    networks = [network for model in models for network in model.members]
    weights = [1 / len(networks)] * len(networks)
    together = replace(
        first, engine=TorchEngine(networks, weights, first.engine.outputs), card={}, folder=None
    )
    label = np.array([first.labels.index(name) for name in val.labels], np.int64)
    examples = Examples(together.read_trees(val.trees), label, label)
    return Classification().finish(together, examples, count_nodes(val.trees))[0]
