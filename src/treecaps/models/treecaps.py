"""TreeCaps: tree-structured capsule networks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.data.bags import Feature
from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.models.config import NetworkConfig
from treecaps.models.decoder import Decoder
from treecaps.models.network import Network, NetworkOutput
from treecaps.models.options import option
from treecaps.models.registry import Recommended, register_architecture
from treecaps.models.token_capsules import TokenCapsules
from treecaps.nn.batch import Batch
from treecaps.nn.dynamic_max_pooling import dynamic_max_pooling
from treecaps.nn.dynamic_routing import CapsuleLayer
from treecaps.nn.margin_loss import margin_loss
from treecaps.nn.squash import lengths, squash
from treecaps.nn.tree_convolution import TreeConvolution
from treecaps.nn.variable_to_static import VariableToStatic
from treecaps.syntax.tree import Tree

_FEW_CLASSES = 10
_TOKEN_LR_MULTIPLIER = 10.0


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
    capsule_size: int = option(8, "D_pvc, the size of a primary capsule")
    statics: int = option(2, "a, the static capsules (of each channel, if routed by channel)")
    routed: int | None = option(None, "b, how many of the longest capsules are routed; all if none")
    static_iterations: int = option(1, "r, the iterations of variable-to-static routing", le=1000)
    per_channel: bool = option(True, "route each channel by itself")
    distinct_starts: bool = option(False, "let equal capsules fill one place among the starts")
    pooling: Literal["routing", "max"] = option("routing", "how static capsules come about")
    counts: Literal["exact", "log"] = option("exact", "multiplicities m as they are, or 1 + ln m")
    gated: bool = option(False, "weigh multiplicities by a learned gate of the window")
    secondary: int = option(0, "secondary capsules between the static and the code capsules", ge=0)
    secondary_size: int = option(8, "the size of a secondary capsule")
    code_size: int = option(8, "D_cc, the size of a code capsule")
    code_iterations: int = option(1, "t, the iterations of dynamic routing", le=1000)
    squash: Literal["sabour", "printed"] = option("sabour", "the form of squash")
    token_channels: int = option(
        0, "channels of capsules of tokens and of up to three neighbours, if any are seen", ge=0
    )
    token_features: int = option(20_000, "how many tokens and runs are known, if any are seen")
    windows: int = option(0, "how many windows a decoder rebuilds; there is none if 0", ge=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.windows and self.window_depth != 2:
            raise UsageError("a decoder rebuilds windows of depth 2: set windows=0 for others")
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
    def bags(self) -> Feature | None:
        """What is counted of programs beside their windows."""
        return "leaves" if self.token_channels and self.sees_names else None

    def forest(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Forest:
        """Share the windows of trees."""
        return Forest.of(trees, vocabulary, self.depths, bags=self.bags)


@dataclass(frozen=True)
class Capsules(NetworkOutput):
    """All that a network says of B programs.

    Args:
        scores: ``[B, classes]``, the lengths of the code capsules: how present each class is.
        code: ``[B, classes, D_cc]``, the code capsules.
        coupling: ``[B, S, classes]``, how much of each static (or secondary) capsule goes to each
            code capsule.
        static: ``[B, S, D_pvc]``, the static capsules.
        windows: ``[B, windows + 1]``, how the nodes of each program are distributed over windows,
            where a decoder learns to rebuild it.
    """

    code: Tensor
    coupling: Tensor
    static: Tensor
    windows: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        """The scores."""
        return self.scores


@register_architecture(
    "treecaps",
    # Among the best on validation data, within noise; docs/results.md has what was tried.
    default=Recommended(
        TreeCapsConfig(
            nodes="kinds+tokens",
            vector_size=64,
            hidden=(64, 64, 64, 64),
            residual=True,
            channels=64,
            statics=1,
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
        },
    ),
    # As printed; docs/paper.md has what the paper leaves open, and why it is read so.
    paper=Recommended(TreeCapsConfig(), {"batch_size": 4}),
)
class TreeCaps(Network):
    """The network of the paper.

    Symbols -> vectors ``[N, V]`` -> tree convolution -> primary variable capsules
    ``[W, D_pvc, C]`` -> static capsules ``[B, S, D_pvc]`` -> code capsules
    ``[B, classes, D_cc]``.

    Args:
        config: What the network is made of.
        kinds: How many kinds of nodes there are.
        classes: How many classes there are; none where vectors of programs are all that is wanted.
        tokens: How many sub-tokens there are; none for kinds alone.
    """

    OUTPUT = ("code.", "decoder.")

    config: TreeCapsConfig

    def __init__(self, config: TreeCapsConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        sizes = (config.vector_size, *config.hidden)
        self.hidden = nn.ModuleList(
            TreeConvolution(inputs, outputs, residual=config.residual and inputs == outputs)
            for inputs, outputs in pairwise(sizes)
        )
        self.primary = TreeConvolution(sizes[-1], config.channels, config.slices)
        outputs = config.channels * config.slices
        self.gate = nn.Linear(outputs, 1) if config.gated else None
        if self.gate:
            # A gate begins fully open: every window counts as often as it occurs.
            nn.init.zeros_(self.gate.weight)
            nn.init.constant_(self.gate.bias, math.log(math.e - 1))
        self.variable_to_static = VariableToStatic(
            config.statics,
            routed=config.routed,
            iterations=config.static_iterations,
            per_channel=config.per_channel,
            distinct=config.distinct_starts,
            form=config.squash,
        )
        size = config.capsule_size
        groups = outputs // size if config.per_channel else 1
        statics = 1 if config.pooling == "max" else groups * config.statics
        routing = (config.code_iterations, config.squash)
        self.tokens: TokenCapsules | None = None
        if config.bags:
            self.tokens = TokenCapsules(
                config.token_features,
                config.vector_size,
                config.token_channels,
                size,
                config.squash,
            )
            statics += config.token_channels
        self.secondary: CapsuleLayer | None = None
        if config.secondary:
            self.secondary = CapsuleLayer(
                statics, size, config.secondary, config.secondary_size, *routing
            )
            statics, size = config.secondary, config.secondary_size
        self.code = CapsuleLayer(statics, size, classes, config.code_size, *routing)
        self.decoder: Decoder | None = None
        if config.windows and classes:
            self.decoder = Decoder(classes, config.code_size, config.windows)

    def forward(
        self, batch: Batch, vectors: Tensor | None = None, of_tokens: Tensor | None = None
    ) -> Capsules:
        """Run the forward pass.

        Args:
            batch: The programs.
            vectors: ``[N, V]``, other vectors for their symbols than those that it has learned.
            of_tokens: ``[F, V]``, likewise for their tokens and runs of them; see
                ``TokenCapsules``.
        """
        static = self._static(batch, vectors, of_tokens)
        below = self.secondary(static)[0] if self.secondary else static
        code, coupling = self.code(below)
        windows = self.decoder.shares(batch) if self.decoder and self.training else None
        return Capsules(lengths(code), code, coupling, static, windows)

    def embed(self, batch: Batch) -> Tensor:
        """Return the static capsules of each program as one vector ``[B, S * D_pvc]``."""
        return self._static(batch).flatten(1)

    def loss(self, answer: NetworkOutput, label: Tensor) -> Tensor:
        """Return the margin loss of a batch whose right classes are ``[B]``."""
        return margin_loss(answer.scores, label)

    def reconstruction(self, answer: NetworkOutput, label: Tensor, weight: float) -> Tensor | None:
        """Return how badly windows are rebuilt from the code capsules of the right classes."""
        assert isinstance(answer, Capsules)
        if self.decoder is None or answer.windows is None:
            return None
        still = answer.code.detach()
        rebuilt = self.decoder(still + weight * (answer.code - still), label)
        return functional.kl_div(rebuilt, answer.windows, reduction="batchmean")

    def fit_features(self, forest: Forest) -> None:
        """Let the decoder know the windows of the training programs, and tokens theirs."""
        if self.tokens:
            self.tokens.learn_features(forest)
        if self.decoder:
            self.decoder.learn_windows(forest)

    def metrics(self, answer: NetworkOutput, label: Tensor) -> dict[str, Tensor]:
        """Return mean lengths of the right code capsule and the longest other; how even routing is.

        That is the entropy of the coupling divided by the largest it can have: 1 where every
        capsule below gives all classes the same, 0 where each gives all to one class.
        """
        assert isinstance(answer, Capsules)
        entropy = torch.special.entr(answer.coupling).sum(2).mean()
        right = label.unsqueeze(1)
        return {
            "right_length": answer.scores.gather(1, right).mean(),
            "wrong_length": answer.scores.scatter(1, right, 0.0).amax(1).mean(),
            "coupling_entropy": entropy / math.log(answer.coupling.shape[2]),
        }

    def lr_multiplier(self, name: str) -> float:
        """Let code capsules learn as fast with many classes as with few, and rare tokens faster.

        What reaches one is divided by the number of classes, and its weights are as many times
        larger, so steps of one size would move it less and less.
        """
        if name == "tokens.vectors":
            return _TOKEN_LR_MULTIPLIER
        return max(self.code.outputs / _FEW_CLASSES, 1) if name.startswith("code.") else 1.0

    @torch.no_grad()
    def static_coupling(self, batch: Batch) -> list[Tensor]:
        """Read out how much of each node's capsules goes to each static capsule.

        Returns:
            For each program ``[n, C, a]``: for its n windows, in the order of the batch, and each
            channel, shares that sum to 1 over the static capsules.
        """
        primary, count, weight = self._primary(batch)
        return self.variable_to_static.coupling(primary, batch.window, count, weight, batch.bounds)

    @torch.no_grad()
    def routes(self, batch: Batch) -> tuple[list[Tensor], Tensor]:
        """Read out where static capsules and code capsules come from.

        Returns:
            For each program ``[n, S]``: how much of each static capsule is due to each of its n
            windows, in the order of the batch; and ``[B, S, classes]``, how much of each code
            capsule is due to each static capsule. What is due sums to 1; what points the other way
            is negative. Static capsules of tokens come after the S that come from windows, and
            ``TokenCapsules.shares`` tells what they are due to.
        """
        if self.config.pooling == "max":
            raise UsageError("there are no routes where maxima are taken instead of routing")
        primary, count, weight = self._primary(batch)
        shares = self.variable_to_static.shares(primary, batch.window, count, weight, batch.bounds)
        static = self.variable_to_static(primary, batch.window, count, weight, batch.bounds)
        static = self._with_tokens(static, batch)
        if self.secondary is None:
            return shares, self.code.shares(static)
        return shares, self.secondary.shares(static) @ self.code.shares(self.secondary(static)[0])

    def _static(
        self, batch: Batch, vectors: Tensor | None = None, of_tokens: Tensor | None = None
    ) -> Tensor:
        """Return the static capsules ``[B, S, D_pvc]``."""
        primary, count, weight = self._primary(batch, vectors)
        if self.config.pooling == "max":
            static = dynamic_max_pooling(primary, batch.window, batch.bounds)
        else:
            static = self.variable_to_static(primary, batch.window, count, weight, batch.bounds)
        return self._with_tokens(static, batch, of_tokens)

    def _with_tokens(self, static: Tensor, batch: Batch, of_tokens: Tensor | None = None) -> Tensor:
        """Add the static capsules of tokens, if there are any."""
        if self.tokens is None:
            return static
        assert batch.bags is not None
        return torch.cat([static, self.tokens(batch.bags, of_tokens)], 1)

    def _primary(
        self, batch: Batch, vectors: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the capsules of the distinct windows, their counts, and how much they weigh."""
        config = self.config
        if vectors is None:
            vectors = self.symbol_vectors(batch.symbols)
        for layer, windows in zip(self.hidden, batch.layers, strict=False):
            vectors = layer(vectors, windows).squeeze(1)  # [W, V']
        outputs = self.primary(vectors, batch.layers[-1])
        capsules = outputs.view(len(outputs), config.capsule_size, -1)
        count = weight = batch.count
        if config.counts == "log":
            weight = 1 + weight.log()
        if batch.share is not None:
            count, weight = (count * batch.share).round(), weight * batch.share
        if self.gate:
            gates = functional.softplus(self.gate(outputs.flatten(1))).squeeze(1)
            weight = weight * gates[batch.window]
        return squash(capsules, config.squash, dim=1), count, weight  # [W, D, C], [P], [P]
