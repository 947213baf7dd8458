"""What all networks have in common."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.models.options import option
from treecaps.syntax.tree import Tree

MOST = 1_000_000
_MOST_LAYERS = 100


@dataclass(frozen=True)
class NetworkConfig:
    """What a network is made of. The help of ``treecaps train --set`` is made of its fields."""

    LEAST: ClassVar[dict[str, int]] = {}
    """The least values of whole numbers, where it is not 1."""
    GREATEST: ClassVar[dict[str, int]] = {}
    """The greatest values of whole numbers, where it is not a million."""

    nodes: Literal["kinds", "kinds+tokens"] = option(
        "kinds", "what a network sees of nodes: their kinds, or also the words of leaves"
    )
    tokens: int = option(10_000, "how many sub-tokens are known, if any are seen")
    token_dropout: float = option(0.0, "share of the sub-tokens made unknown in training")
    vector_size: int = option(30, "V, the size of a node kind's vector")

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            numbers = value if isinstance(value, tuple) else (value,)
            least, most = self.LEAST.get(name, 1), self.GREATEST.get(name, MOST)
            if any(type(number) is int and number < least for number in numbers):
                raise UsageError(f"{name} must be at least {least}, not {value}")
            if any(type(number) is int and number > most for number in numbers):
                raise UsageError(f"{name} must be at most {most:,}")
            if isinstance(value, tuple) and len(value) > _MOST_LAYERS:
                raise UsageError(f"{name} may name at most {_MOST_LAYERS} layers")
            if name.endswith("dropout") and not 0 <= value < 1:
                raise UsageError(f"{name} must be at least 0 and below 1, not {value}")

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
