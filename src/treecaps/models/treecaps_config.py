"""What a TreeCaps network is made of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from treecaps.errors import UsageError, naming_extra
from treecaps.models.config import NetworkConfig
from treecaps.models.options import option
from treecaps.models.registry import Recommended, register

if TYPE_CHECKING:
    from treecaps.inputs.bags import Feature
    from treecaps.models.treecaps import TreeCaps


@dataclass(frozen=True)
class TreeCapsConfig(NetworkConfig):
    """What a TreeCaps network is made of."""

    hidden: tuple[int, ...] = option((), "sizes of the convolution layers before the capsules")
    residual: bool = option(
        False, "add to what a hidden layer says of a node what was said before, if sizes agree"
    )
    window_depth: int = option(2, "d, the depth of a convolution window", ge=2, le=1000)
    channels: int = option(128, "V', the outputs of a convolution slice")
    slices: int = option(8, "epsilon, the convolution slices of the capsule layer")
    capsule_size: int | None = option(
        8, "D_pvc, the size of a primary capsule; if none, all outputs of a node are one capsule"
    )
    statics: int = option(2, "a, the static capsules (of each channel, if routed by channel)")
    routed: int | None = option(None, "b, how many of the longest capsules are routed; all if none")
    static_iterations: int = option(1, "r, the iterations of variable-to-static routing", le=1000)
    per_channel: bool = option(True, "route each channel by itself")
    joint: bool = option(
        False, "let the static capsules of all channels compete, where each channel has its own"
    )
    by_coordinate: bool = option(
        False, "choose starts and routed capsules by the largest values of each coordinate"
    )
    stop_routed: bool = option(False, "let no gradient through the routed capsules")
    squash_primary: bool = option(True, "squash primary capsules")
    convolution_init: Literal["uniform", "normal", "standardized"] = option(
        "uniform",
        "initial weights: uniform within 1/sqrt(V), normal with that deviation, or uniform and then"
        " scaled so that outputs of the capsule layer have mean 0 and deviation 1 before tanh",
    )
    distinct_starts: bool = option(False, "let equal capsules fill one place among the starts")
    pooling: Literal["routing", "max"] = option("routing", "how static capsules come about")
    counts: Literal["exact", "log"] = option("exact", "multiplicities m as they are, or 1 + ln m")
    gated: bool = option(False, "weigh multiplicities by a learned gate of the window")
    gate_capsules: bool = option(
        False,
        "let the gate scale a window's capsules instead of its multiplicity, so that routing starts"
        " with those that count",
    )
    secondary: int = option(0, "secondary capsules between the static and the code capsules", ge=0)
    secondary_size: int = option(8, "the size of a secondary capsule")
    code_size: int = option(8, "D_cc, the size of a code capsule")
    code_iterations: int = option(1, "t, the iterations of dynamic routing", le=1000)
    code_bias: bool = option(False, "give the capsules above static ones a bias")
    code_std: float | None = option(
        None, "standard deviation of their initial weights; chosen by their number if none", gt=0
    )
    code_rate: float | None = option(
        None, "their learning-rate multiplier; a tenth of the number of classes if none", gt=0
    )
    stop_gradients: bool = option(False, "let no gradient through the coupling of dynamic routing")
    whiten_static: bool = option(
        False, "whiten static capsules, as the training programs have them at the beginning"
    )
    squash: Literal["sabour", "printed"] = option("sabour", "the form of squash")
    token_channels: int = option(
        0, "channels of capsules of tokens and of up to three neighbours, if any are seen", ge=0
    )
    token_features: int = option(20_000, "how many tokens and runs are known, if any are seen")
    windows: int = option(0, "how many windows a decoder rebuilds; there is none if 0", ge=0)
    readout: int = option(
        0, "the size of a node's state in a read-out for nodes; there is none if 0", ge=0
    )
    readout_rounds: int = option(3, "how often nodes hear of their surroundings there")
    readout_flow: bool = option(True, "let nodes hear of where the same variable is used")
    readout_static: bool = option(
        True, "let nodes know the static capsules, and how far their own capsules agree with them"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.joint or self.by_coordinate) and not self.per_channel:
            raise UsageError("joint and by_coordinate are for static capsules of each channel")
        if (self.joint or self.by_coordinate) and (
            self.gated or self.counts == "log" or self.distinct_starts
        ):
            raise UsageError(
                "joint and by_coordinate count every node once: set gated=false, counts=exact and"
                " distinct_starts=false"
            )
        if self.gate_capsules and not self.gated:
            raise UsageError("gate_capsules needs a gate: set gated=true too")
        if self.windows and self.window_depth != 2:
            raise UsageError("a decoder rebuilds windows of depth 2: set windows=0 for others")
        if self.readout and (
            self.window_depth != 2 or self.feature or self.counts == "log" or not self.per_channel
        ):
            raise UsageError(
                "a read-out for nodes takes windows of depth 2, routes by channel and counts every"
                " node once: set window_depth=2, per_channel=true, token_channels=0, counts=exact"
            )
        if self.channels * self.slices % self.primary_size:
            raise UsageError(
                f"capsules of size {self.capsule_size} do not divide"
                f" {self.channels} channels of {self.slices} slices"
            )

    @property
    def depths(self) -> tuple[int, ...]:
        """The window depth of each convolution layer."""
        return (self.window_depth,) * (len(self.hidden) + 1)

    @property
    def primary_size(self) -> int:
        """D_pvc, the size of a primary capsule."""
        return self.capsule_size or self.channels * self.slices

    @property
    def static_capsules(self) -> int:
        """S, how many static capsules a program has, those of tokens among them."""
        groups = self.channels * self.slices // self.primary_size if self.per_channel else 1
        found = 1 if self.pooling == "max" else groups * self.statics
        return found + (self.token_channels if self.feature else 0)

    @property
    def embedding_size(self) -> int:
        """How many numbers all static capsules have."""
        return self.static_capsules * self.primary_size

    @property
    def has_routes(self) -> bool:
        """Whether it can be read out which windows a static capsule comes from."""
        return self.pooling == "routing" and not self.joint and not self.by_coordinate

    @property
    def feature(self) -> "Feature | None":
        """What is counted of programs beside their windows."""
        return "leaves" if self.token_channels and self.sees_names else None


def _load() -> "type[TreeCaps]":
    with naming_extra("training"):
        from treecaps.models.treecaps import TreeCaps
    return TreeCaps


PRESETS = {
    # Among the best on validation data, within noise.
    "default": Recommended(
        TreeCapsConfig(
            nodes="kinds+tokens",
            vector_size=64,
            hidden=(64, 64, 64, 64),
            residual=True,
            channels=64,
            statics=4,
            counts="log",
            gated=True,
            token_channels=32,
            windows=1000,
        ),
        {
            "epochs": None,
            "learning_rate": 5e-3,
            "cross_entropy_weight": 1.0,
            "vectors": "random",
            "window_dropout": None,
            "token_capsule_dropout": None,
            "rename_probability": 0.5,
            "ordinary_background": True,
        },
    ),
    # Routes as printed; docs/paper.md has what the paper leaves open, and why it is read so.
    "paper": Recommended(
        TreeCapsConfig(
            window_depth=3,
            capsule_size=None,
            statics=2,
            static_iterations=3,
            per_channel=False,
            convolution_init="standardized",
            code_iterations=3,
            code_bias=True,
            code_std=0.1,
            stop_gradients=True,
            whiten_static=True,
        ),
        {"batch_size": None},
    ),
    # As the authors' code does it; docs/paper.md lists the differences.
    "published": Recommended(
        TreeCapsConfig(
            statics=20,
            routed=25,
            joint=True,
            by_coordinate=True,
            stop_routed=True,
            squash_primary=False,
            convolution_init="normal",
            code_iterations=3,
            code_bias=True,
            code_std=0.01,
            code_rate=1.0,
            stop_gradients=True,
        ),
        {"epochs": 60, "batch_size": 1, "decay": "step", "vectors": "random"},
    ),
    # Tells of nodes, which are many; so there are fewer capsules to each.
    "bugs": Recommended(
        TreeCapsConfig(
            nodes="kinds+tokens",
            tokens=5_000,
            token_dropout=0.15,
            vector_size=64,
            hidden=(64, 64),
            residual=True,
            channels=16,
            statics=2,
            readout=64,
        ),
        {"vectors": "random"},
    ),
}
register("treecaps", _load, PRESETS)
