"""What all networks have in common."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.models.options import check_bounds, option
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class NetworkConfig:
    """What a network is made of. The help of ``treecaps train --set`` is made of its fields."""

    nodes: Literal["kinds", "kinds+tokens"] = option(
        "kinds", "what a network sees of nodes: their kinds, or also the words of leaves"
    )
    tokens: int = option(10_000, "how many sub-tokens are known, if any are seen")
    token_dropout: float = option(
        0.0, "share of the sub-tokens made unknown in training", ge=0, lt=1
    )
    vector_size: int = option(30, "V, the size of a node kind's vector")

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def known_tokens(self) -> int:
        """How many sub-tokens the network may know."""
        return self.tokens if self.nodes == "kinds+tokens" else 0

    @property
    def sees_names(self) -> bool:
        """Whether it matters what things are called."""
        return self.nodes == "kinds+tokens"

    @property
    def asked(self) -> "NetworkConfig":
        """The configuration as it was before training, if that added to it."""
        return self

    def forest(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Forest:
        """Share of trees what the network looks at."""
        raise NotImplementedError
