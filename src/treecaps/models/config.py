"""What the configurations of models have in common."""

from dataclasses import dataclass
from typing import Literal

from treecaps.models.options import check_bounds, option


@dataclass(frozen=True)
class ModelConfig:
    """What a model is made of. The help of ``treecaps train --set`` is made of its fields."""

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def known_tokens(self) -> int:
        """How many sub-tokens the vocabulary may have."""
        return 0

    @property
    def sees_names(self) -> bool:
        """Whether it matters what things are called."""
        return False

    @property
    def embedding_size(self) -> int:
        """How many numbers an embedding of a network has; 0 if it makes none."""
        return 0

    @property
    def untrained(self) -> "ModelConfig":
        """The configuration as it was before training, if that added to it."""
        return self


@dataclass(frozen=True)
class NetworkConfig(ModelConfig):
    """What a network with vectors for nodes is made of."""

    nodes: Literal["kinds", "kinds+tokens"] = option(
        "kinds", "what a network sees of nodes: their kinds, or also the words of leaves"
    )
    tokens: int = option(10_000, "how many sub-tokens are known, if any are seen")
    token_dropout: float = option(
        0.0, "share of the sub-tokens made unknown in training", ge=0, lt=1
    )
    vector_size: int = option(30, "V, the size of a node kind's vector")

    @property
    def known_tokens(self) -> int:
        """How many sub-tokens the network may know."""
        return self.tokens if self.sees_names else 0

    @property
    def sees_names(self) -> bool:
        """Whether it matters what things are called."""
        return self.nodes == "kinds+tokens"
