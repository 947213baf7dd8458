"""What a TreeCaps network is made of."""

from dataclasses import dataclass
from typing import Literal

from treecaps.errors import UsageError
from treecaps.models.options import option

_LEAST = {"window_depth": 2, "secondary": 0}
"""The least values of whole numbers, where it is not 1."""
MOST = 1_000_000
_MOST = {"window_depth": 1000, "static_iterations": 1000, "code_iterations": 1000}
"""The greatest values of whole numbers, where it is not a million."""
_MOST_LAYERS = 100


@dataclass(frozen=True)
class TreeCapsConfig:
    """What a TreeCaps network is made of. The help of ``treecaps train --set`` is made of this."""

    nodes: Literal["kinds", "kinds+tokens"] = option(
        "kinds", "what a network sees of nodes: their kinds, or also the words of leaves"
    )
    tokens: int = option(10_000, "how many sub-tokens are known, if any are seen")
    token_dropout: float = option(0.0, "share of the sub-tokens made unknown in training")
    vector_size: int = option(30, "V, the size of a node kind's vector")
    hidden: tuple[int, ...] = option((), "sizes of the convolution layers before the capsules")
    residual: bool = option(
        False, "add to what a hidden layer says of a node what was said before, if sizes agree"
    )
    window_depth: int = option(2, "d, the depth of a convolution window")
    channels: int = option(128, "V', the outputs of a convolution slice")
    slices: int = option(8, "epsilon, the convolution slices of the capsule layer")
    capsule_size: int = option(8, "D_pvc, the size of a primary capsule")
    statics: int = option(2, "a, the static capsules (of each channel, if routed by channel)")
    routed: int | None = option(None, "b, how many of the longest capsules are routed; all if none")
    static_iterations: int = option(1, "r, the iterations of variable-to-static routing")
    per_channel: bool = option(True, "route each channel by itself")
    distinct_starts: bool = option(False, "let equal capsules fill one place among the starts")
    pooling: Literal["routing", "max"] = option("routing", "how static capsules come about")
    counts: Literal["exact", "log"] = option("exact", "multiplicities m as they are, or 1 + ln m")
    gated: bool = option(False, "weigh multiplicities by a learned gate of the window")
    secondary: int = option(0, "secondary capsules between the static and the code capsules")
    secondary_size: int = option(8, "the size of a secondary capsule")
    code_size: int = option(8, "D_cc, the size of a code capsule")
    code_iterations: int = option(1, "t, the iterations of dynamic routing")
    squash: Literal["sabour", "printed"] = option("sabour", "the form of squash")

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            numbers = value if isinstance(value, tuple) else (value,)
            least = _LEAST.get(name, 1)
            if any(type(number) is int and number < least for number in numbers):
                raise UsageError(f"{name} must be at least {least}, not {value}")
            most = _MOST.get(name, MOST)
            if any(type(number) is int and number > most for number in numbers):
                raise UsageError(f"{name} must be at most {most:,}")
        if len(self.hidden) > _MOST_LAYERS:
            raise UsageError(f"hidden may name at most {_MOST_LAYERS} layers")
        if not 0 <= self.token_dropout < 1:
            raise UsageError(
                f"token_dropout must be at least 0 and below 1, not {self.token_dropout}"
            )
        if self.channels * self.slices % self.capsule_size:
            raise UsageError(
                f"capsules of size {self.capsule_size} do not divide"
                f" {self.channels} channels of {self.slices} slices"
            )

    @property
    def depths(self) -> tuple[int, ...]:
        """The window depth of each convolution layer, as ``Forest.of`` takes it."""
        return (self.window_depth,) * (len(self.hidden) + 1)

    @property
    def known_tokens(self) -> int:
        """How many sub-tokens the network may know."""
        return self.tokens if self.nodes == "kinds+tokens" else 0
