"""Networks in tests: inputs as tensors, and models of given networks."""

from collections.abc import Sequence
from typing import Any

import torch

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Input
from treecaps.models.network import Model
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.trained import TrainedModel
from treecaps.nn.tensors import ToTensor


def batch_of(inputs: Input, dtype: torch.dtype = torch.float32) -> Any:
    """Return what a forward pass on the CPU takes."""
    return inputs.to_tensors(ToTensor(dtype=dtype))


def model_of(
    networks: Sequence[Model],
    weights: Sequence[float],
    vocabulary: Vocabulary,
    labels: tuple[str, ...],
    **others: Any,
) -> TrainedModel:
    """Return a model of networks that are there already."""
    engine = TorchEngine(networks, weights, len(labels))
    return TrainedModel(engine, vocabulary, labels, **others)


def members_of(model: TrainedModel) -> list[TrainedModel]:
    """Return the networks of an ensemble as models of their own."""
    return [model_of([one], [1.0], model.vocabulary, model.labels) for one in model.members]
