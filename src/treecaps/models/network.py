"""``Network``: what all architectures have in common."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.data.forest import Forest
from treecaps.errors import UsageError
from treecaps.models.config import NetworkConfig
from treecaps.nn.batch import Batch, SymbolTensors
from treecaps.nn.weights import new_weight


@dataclass(frozen=True)
class NetworkOutput:
    """What a network says of B programs.

    Args:
        scores: ``[B, classes]``, from 0 to 1: how much speaks for each class.
    """

    scores: Tensor


class Network(nn.Module):
    """A classifier of programs, with vectors for the kinds and sub-tokens of nodes.

    Args:
        config: What the network is made of.
        kinds: How many kinds of nodes there are.
        classes: How many classes there are.
        tokens: How many sub-tokens there are; none for kinds alone.
    """

    OUTPUT: ClassVar[tuple[str, ...]] = ()
    """The weights that belong to the classes: how their names begin."""

    config: NetworkConfig

    def __init__(self, config: NetworkConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__()
        self.config = config
        self.vectors = new_weight(kinds, config.vector_size, std=1)
        # Words begin quieter than kinds: as loud, blind programs scored a point less in a trial.
        self.token_vectors = new_weight(tokens, config.vector_size, std=0.3) if tokens else None

    def forward(self, batch: Batch) -> NetworkOutput:
        """Run the forward pass."""
        raise NotImplementedError

    def embed(self, batch: Batch) -> Tensor:
        """Return a vector ``[B, E]`` for each program, the more alike the nearer."""
        raise UsageError("only models of treecaps have vectors of programs")

    def loss(self, answer: NetworkOutput, label: Tensor) -> Tensor:
        """Return the loss of a batch whose right classes are ``[B]``."""
        raise NotImplementedError

    def reconstruction(self, answer: NetworkOutput, label: Tensor, weight: float) -> Tensor | None:
        """Return how badly the programs of a batch are rebuilt, if the network does that at all.

        Args:
            answer: What the network said in training.
            label: ``[B]``, the right classes.
            weight: Gradient scale into the encoder; with 0, only the decoder learns.
        """
        return None

    def fit_features(self, forest: Forest) -> None:
        """Take what is needed from the training programs, before anything is learned."""

    def metrics(self, answer: NetworkOutput, label: Tensor) -> dict[str, Tensor]:
        """Return means over a batch that are worth watching in training."""
        return {}

    def lr_multiplier(self, name: str) -> float:
        """Return how many times faster than others a weight should learn."""
        return 1.0

    def symbol_vectors(self, symbols: SymbolTensors) -> Tensor:
        """Return for each symbol the vector of its kind, plus the mean of its sub-tokens'."""
        vectors = functional.embedding(symbols.kind, self.vectors)
        if self.token_vectors is None:
            return vectors
        token = symbols.token
        if self.training and self.config.token_dropout:
            token = token * (torch.rand(token.shape) >= self.config.token_dropout)
        return vectors + functional.embedding_bag(
            token, self.token_vectors, symbols.offsets, mode="mean"
        )


@dataclass(frozen=True)
class Logits(NetworkOutput):
    """What a network with a softmax says of B programs.

    Args:
        logits: ``[B, classes]``, the logarithms of the scores, up to a number for each program.
    """

    logits: Tensor

    @classmethod
    def of(cls, logits: Tensor) -> "Logits":
        """Take the softmax."""
        return cls(logits.softmax(1), logits)


class SoftmaxNetwork(Network):
    """A network that ends in a softmax and learns by cross-entropy."""

    def loss(self, answer: NetworkOutput, label: Tensor) -> Tensor:
        """Return the mean cross-entropy."""
        assert isinstance(answer, Logits)
        return functional.cross_entropy(answer.logits, label)
