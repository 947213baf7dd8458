"""TreeCaps: tree-structured capsule networks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.distinct import Longs
from treecaps.inputs.node_graphs import NodeGraphs, NodeTensors
from treecaps.inputs.packing import Packing
from treecaps.inputs.stored import StoredInput
from treecaps.inputs.windows import WindowTensors
from treecaps.inputs.windows_and_bags import WindowsAndBags, WindowsAndBagsTensors
from treecaps.models.network import Network, NetworkOutput
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn.decoder import Decoder
from treecaps.nn.dynamic_max_pooling import dynamic_max_pooling
from treecaps.nn.dynamic_routing import CapsuleLayer
from treecaps.nn.margin_loss import margin_loss
from treecaps.nn.node_readout import NodeOutput, NodeReadout
from treecaps.nn.squash import lengths, squash
from treecaps.nn.tensors import to_tensors
from treecaps.nn.token_capsules import TokenCapsules
from treecaps.nn.top_k_routing import TopKRouting
from treecaps.nn.tree_convolution import TreeConvolution
from treecaps.nn.variable_to_static import VariableToStatic
from treecaps.syntax.tree import Tree

_FEW_CLASSES = 10
_TOKEN_LR_MULTIPLIER = 10.0
_SCALED, _DECODED = 2_000, 4_000
"""How many programs weights are scaled by, and of how many on disk a decoder learns windows."""


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


def _new_routing(config: TreeCapsConfig) -> VariableToStatic | TopKRouting:
    """Return the layer from primary to static capsules."""
    options: dict[str, Any] = {
        "routed": config.routed,
        "iterations": config.static_iterations,
        "stop_gradient": config.stop_routed,
        "form": config.squash,
    }
    if config.joint or config.by_coordinate:
        by = config.by_coordinate
        return TopKRouting(config.statics, joint=config.joint, by_coordinate=by, **options)
    return VariableToStatic(
        config.statics,
        per_channel=config.per_channel,
        distinct=config.distinct_starts,
        **options,
    )


def _spread(
    inputs: WindowsAndBags | StoredInput, most: int, programs: Longs | None = None
) -> WindowsAndBags:
    """Return some of the programs, spread over all, or all if there are no more."""
    rows = np.arange(len(inputs)) if programs is None else programs
    return inputs.select(rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int)])


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

    HEAD = ("code.", "decoder.")

    config: TreeCapsConfig

    @classmethod
    def read_trees(
        cls, config: TreeCapsConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Any:
        """Return the distinct windows and, if asked for, the n-grams of tokens.

        For a read-out for nodes, these are all nodes and the edges between them.
        """
        if config.readout:
            return NodeGraphs.from_trees(trees, vocabulary, len(config.depths))
        return WindowsAndBags.from_trees(trees, vocabulary, config.depths, config.feature)

    @classmethod
    def packing(cls, config: TreeCapsConfig) -> Packing | None:
        """Return how windows and n-grams are kept on disk."""
        if config.readout:
            return None
        return Packing(f"{cls.__module__}.{cls.__qualname__}", config.depths, config.feature)

    def __init__(self, config: TreeCapsConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        sizes = (config.vector_size, *config.hidden)
        normal = config.convolution_init == "normal"
        self.hidden = nn.ModuleList(
            TreeConvolution(
                inputs, outputs, residual=config.residual and inputs == outputs, normal=normal
            )
            for inputs, outputs in pairwise(sizes)
        )
        self.primary = TreeConvolution(sizes[-1], config.channels, config.slices, normal=normal)
        outputs = config.channels * config.slices
        self.gate = nn.Linear(outputs, 1) if config.gated else None
        if self.gate:
            # A gate begins fully open: every window counts as often as it occurs.
            nn.init.zeros_(self.gate.weight)
            nn.init.constant_(self.gate.bias, math.log(math.e - 1))
        self.variable_to_static = _new_routing(config)
        size, statics = config.primary_size, config.static_capsules
        routing = (config.code_iterations, config.squash)
        others: dict[str, Any] = {
            "bias": config.code_bias,
            "std": config.code_std,
            "stop_gradients": config.stop_gradients,
        }
        self.tokens: TokenCapsules | None = None
        if config.feature:
            self.tokens = TokenCapsules(
                config.token_features,
                config.vector_size,
                config.token_channels,
                size,
                config.squash,
            )
        self.secondary: CapsuleLayer | None = None
        if config.secondary:
            others["whiten"] = config.whiten_static
            self.secondary = CapsuleLayer(
                statics, size, config.secondary, config.secondary_size, *routing, **others
            )
            statics, size = config.secondary, config.secondary_size
        others["whiten"] = config.whiten_static and not config.secondary
        outputs = 0 if config.readout else classes
        self.code = CapsuleLayer(statics, size, outputs, config.code_size, *routing, **others)
        self.decoder: Decoder | None = None
        if config.windows and outputs:
            self.decoder = Decoder(outputs, config.code_size, config.windows)
        self.readout = self._new_readout(classes) if config.readout else None

    def _new_readout(self, kinds: int) -> NodeReadout:
        """Return the layers that score nodes."""
        config = self.config
        inputs, program = config.vector_size + config.channels * config.slices, 0
        if config.readout_static:
            inputs, program = inputs + config.static_capsules, config.embedding_size
        options = config.readout, config.readout_rounds, kinds
        return NodeReadout(inputs, program, *options, flow=config.readout_flow)

    def forward(
        self,
        batch: WindowsAndBagsTensors[Tensor],
        vectors: Tensor | None = None,
        of_tokens: Tensor | None = None,
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
        windows = self.decoder.shares(batch.windows) if self.decoder and self.training else None
        return Capsules(lengths(code), code, coupling, static, windows)

    def embed(self, batch: WindowsAndBagsTensors[Tensor]) -> Tensor:
        """Return the static capsules of each program as one vector ``[B, S * D_pvc]``."""
        return self._static(batch).flatten(1)

    def score_bugs(self, batch: NodeTensors[Tensor]) -> NodeOutput:
        """Return how suspicious nodes are, by their capsules, and what the program expects of them.

        The agreement of a node's capsules with the static capsules is what routing computes.
        """
        if self.readout is None:
            raise UsageError("this network has no read-out for nodes: train it with readout=64")
        windows = batch.windows
        symbols = self.symbol_vectors(windows.symbols)
        capsules, count, weight = self._primary(windows, symbols)
        known = [symbols[batch.graph.symbol], capsules.flatten(1)]
        if not self.config.readout_static:
            alone: NodeOutput = self.readout(torch.cat(known, 1), None, batch.graph)
            return alone
        static = self._make_static(capsules, windows, count, weight)
        by_channel = static.view(
            len(static), capsules.shape[2], -1, capsules.shape[1]
        )  # [B, C, a, D]
        agreement = torch.einsum("ndc,ncad->nca", capsules, by_channel[batch.graph.program])
        known.append(agreement.flatten(1))
        found: NodeOutput = self.readout(torch.cat(known, 1), static.flatten(1), batch.graph)
        return found

    def represent(self, batch: WindowsAndBagsTensors[Tensor]) -> Tensor:
        """Return the code capsules of each program as one vector ``[B, classes * D_cc]``."""
        code: Tensor = self(batch).code
        return code.flatten(1)

    def loss(self, output: NetworkOutput, label: Tensor) -> Tensor:
        """Return the margin loss of a batch whose right classes are ``[B]``."""
        return margin_loss(output.scores, label)

    def reconstruction(self, output: NetworkOutput, label: Tensor, weight: float) -> Tensor | None:
        """Return how badly windows are rebuilt from the code capsules of the right classes."""
        assert isinstance(output, Capsules)
        if self.decoder is None or output.windows is None:
            return None
        still = output.code.detach()
        rebuilt = self.decoder(still + weight * (output.code - still), label)
        return functional.kl_div(rebuilt, output.windows, reduction="batchmean")

    def fit_features(
        self, inputs: WindowsAndBags | StoredInput, programs: Longs | None = None
    ) -> None:
        """Let the decoder know the windows of the training programs, and tokens theirs."""
        if self.tokens:
            self.tokens.learn_features(partial(inputs.features, programs))
        if self.decoder:
            if isinstance(inputs, StoredInput):
                inputs = _spread(inputs, _DECODED, programs)
            elif programs is not None:
                inputs = inputs.select(programs)
            self.decoder.learn_windows(inputs.windows)

    def scale_weights(
        self, inputs: WindowsAndBags | StoredInput, *, head_only: bool = False
    ) -> None:
        """Standardize the outputs of the convolution and whiten static capsules, if asked for."""
        standardize = self.config.convolution_init == "standardized" and not head_only
        whiten = self.config.whiten_static and not (head_only and self.secondary)
        if not (standardize or whiten):
            return
        some = _spread(inputs, _SCALED)
        batch: WindowsAndBagsTensors[Tensor] = to_tensors(some, self.vectors)
        if standardize:
            windows = batch.windows
            vectors = self._hidden(windows)
            count = vectors.new_zeros(len(windows.layers[-1].offsets) - 1)
            count.index_add_(0, windows.window, windows.count.to(count.dtype))
            self.primary.standardize(vectors, *windows.layers[-1], count)
        if whiten:
            static = [
                self._static(to_tensors(some.select(rows), self.vectors))
                for rows in np.array_split(np.arange(len(some)), len(some) // 32 + 1)
            ]
            (self.secondary or self.code).fit_whitening(torch.cat(static))

    @torch.no_grad()
    def metrics(self, output: NetworkOutput, label: Tensor) -> dict[str, Tensor]:
        """Return mean lengths of the right code capsule and the longest other; how even routing is.

        That is the entropy of the coupling divided by the largest it can have: 1 where every
        capsule below gives all classes the same, 0 where each gives all to one class.
        """
        assert isinstance(output, Capsules)
        entropy = torch.special.entr(output.coupling).sum(2).mean()
        right = label.unsqueeze(1)
        return {
            "right_length": output.scores.gather(1, right).mean(),
            "wrong_length": output.scores.scatter(1, right, 0.0).amax(1).mean(),
            "coupling_entropy": entropy / math.log(output.coupling.shape[2]),
        }

    def lr_multiplier(self, name: str) -> float:
        """Let code capsules learn as fast with many classes as with few, and rare tokens faster.

        What reaches one is divided by the number of classes, and its weights are as many times
        larger, so steps of one size would move it less and less.
        """
        if name == "tokens.vectors":
            return _TOKEN_LR_MULTIPLIER
        if not name.startswith("code."):
            return 1.0
        chosen = max(self.code.outputs / _FEW_CLASSES, 1)
        return chosen if self.config.code_rate is None else self.config.code_rate

    @torch.no_grad()
    def static_coupling(self, batch: WindowsAndBagsTensors[Tensor]) -> list[Tensor]:
        """Read out how much of each node's capsules goes to each static capsule.

        Returns:
            For each program ``[n, C, a]``: for its n windows, in the order of the batch, and each
            channel, shares that sum to 1 over the static capsules.
        """
        windows = batch.windows
        if isinstance(self.variable_to_static, TopKRouting):
            raise UsageError("there are no routes: maxima were taken, or the top k of each channel")
        primary, count, weight = self._primary(windows)
        return self.variable_to_static.coupling(
            primary, windows.window, count, weight, windows.bounds
        )

    @torch.no_grad()
    def routes(self, batch: WindowsAndBagsTensors[Tensor]) -> tuple[list[Tensor], Tensor]:
        """Read out where static capsules and code capsules come from.

        Returns:
            For each program ``[n, S]``: how much of each static capsule is due to each of its n
            windows, in the order of the batch; and ``[B, S, classes]``, how much of each code
            capsule is due to each static capsule. What is due sums to 1; what points the other way
            is negative. Static capsules of tokens come after the S that come from windows, and
            ``TokenCapsules.shares`` tells what they are due to.
        """
        if isinstance(self.variable_to_static, TopKRouting) or not self.config.has_routes:
            raise UsageError("there are no routes: maxima were taken, or the top k of each channel")
        windows = batch.windows
        primary, count, weight = self._primary(windows)
        routed = (primary, windows.window, count, weight, windows.bounds)
        shares = self.variable_to_static.shares(*routed)
        static = self._with_tokens(self.variable_to_static(*routed), batch)
        if self.secondary is None:
            return shares, self.code.shares(static)
        return shares, self.secondary.shares(static) @ self.code.shares(self.secondary(static)[0])

    def _static(
        self,
        batch: WindowsAndBagsTensors[Tensor],
        vectors: Tensor | None = None,
        of_tokens: Tensor | None = None,
    ) -> Tensor:
        """Return the static capsules ``[B, S, D_pvc]``."""
        primary, count, weight = self._primary(batch.windows, vectors)
        static = self._make_static(primary, batch.windows, count, weight)
        return self._with_tokens(static, batch, of_tokens)

    def _make_static(
        self, primary: Tensor, windows: WindowTensors[Tensor], count: Tensor, weight: Tensor
    ) -> Tensor:
        """Return the static capsules that primary ones make."""
        if self.config.pooling == "max":
            return dynamic_max_pooling(primary, windows.window, windows.bounds)
        # Routing adds up thousands of capsules, again and again: never in bfloat16.
        with torch.autocast(primary.device.type, enabled=False):
            static: Tensor = self.variable_to_static(
                primary, windows.window, count, weight, windows.bounds
            )
        return static

    def _with_tokens(
        self,
        static: Tensor,
        batch: WindowsAndBagsTensors[Tensor],
        of_tokens: Tensor | None = None,
    ) -> Tensor:
        """Add the static capsules of tokens, if there are any."""
        if self.tokens is None or batch.bags is None:
            return static
        bags = batch.bags
        tokens = self.tokens(bags.offsets, bags.feature, bags.count, of_tokens)
        return torch.cat([static, tokens], 1)

    def _hidden(self, batch: WindowTensors[Tensor], vectors: Tensor | None = None) -> Tensor:
        """Return the outputs of the layers before the capsules."""
        if vectors is None:
            vectors = self.symbol_vectors(batch.symbols)
        for layer, windows in zip(self.hidden, batch.layers, strict=False):
            vectors = layer(vectors, *windows).squeeze(1)  # [W, V']
        return vectors

    def _primary(
        self, batch: WindowTensors[Tensor], vectors: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the capsules of the distinct windows, their counts, and how much they weigh."""
        config = self.config
        outputs = self.primary(self._hidden(batch, vectors), *batch.layers[-1])
        capsules = outputs.view(len(outputs), config.primary_size, -1)
        count = weight = batch.count
        if config.counts == "log":
            weight = 1 + weight.log()
        if batch.share is not None:
            count, weight = (count * batch.share).round(), weight * batch.share
        if config.squash_primary:
            capsules = squash(capsules, config.squash, dim=1)
        if self.gate:
            gates = functional.softplus(self.gate(outputs.flatten(1))).squeeze(1)
            if config.gate_capsules:
                capsules = capsules * gates[:, None, None]
            else:
                weight = weight * gates[batch.window]
        return capsules, count, weight  # [W, D, C], [P], [P]
