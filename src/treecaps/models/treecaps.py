"""TreeCaps: tree-structured capsule networks."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.models.config import TreeCapsConfig
from treecaps.nn.batch import Batch, SymbolTensors
from treecaps.nn.dynamic_max_pooling import dynamic_max_pooling
from treecaps.nn.dynamic_routing import CapsuleLayer
from treecaps.nn.margin_loss import margin_loss
from treecaps.nn.squash import lengths, squash
from treecaps.nn.tree_convolution import TreeConvolution
from treecaps.nn.variable_to_static import VariableToStatic
from treecaps.nn.weights import new_weight


@dataclass(frozen=True)
class Capsules:
    """All that a network says of B programs.

    Args:
        lengths: ``[B, classes]``, the lengths of the code capsules: how present each class is.
        code: ``[B, classes, D_cc]``, the code capsules.
        coupling: ``[B, S, classes]``, how much of each static (or secondary) capsule goes to each
            code capsule.
        static: ``[B, S, D_pvc]``, the static capsules.
    """

    lengths: Tensor
    code: Tensor
    coupling: Tensor
    static: Tensor


class TreeCaps(nn.Module):
    """The network of the paper.

    Symbols -> vectors ``[N, V]`` -> tree convolution -> primary variable capsules
    ``[W, D_pvc, C]`` -> static capsules ``[B, S, D_pvc]`` -> code capsules
    ``[B, classes, D_cc]``.

    Args:
        config: What the network is made of.
        kinds: How many kinds of nodes there are.
        classes: How many classes there are.
        tokens: How many sub-tokens there are; none for kinds alone.
    """

    def __init__(self, config: TreeCapsConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__()
        self.config = config
        sizes = (config.vector_size, *config.hidden)
        self.vectors = new_weight(kinds, config.vector_size, std=1)
        # Words begin quieter than kinds: as loud, blind programs scored a point less in a trial.
        self.token_vectors = new_weight(tokens, config.vector_size, std=0.3) if tokens else None
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
        self.secondary: CapsuleLayer | None = None
        if config.secondary:
            self.secondary = CapsuleLayer(
                statics, size, config.secondary, config.secondary_size, *routing
            )
            statics, size = config.secondary, config.secondary_size
        self.code = CapsuleLayer(statics, size, classes, config.code_size, *routing)

    def forward(self, batch: Batch) -> Capsules:
        """Say all that the network makes of a batch of programs."""
        primary, weight = self._primary(batch)
        if self.config.pooling == "max":
            static = dynamic_max_pooling(primary, batch.window, batch.bounds)
        else:
            static = self.variable_to_static(
                primary, batch.window, batch.count, weight, batch.bounds
            )
        below = self.secondary(static)[0] if self.secondary else static
        code, coupling = self.code(below)
        return Capsules(lengths(code), code, coupling, static)

    def loss(self, capsules: Capsules, label: Tensor) -> Tensor:
        """Return the loss of a batch whose right classes are ``[B]``."""
        return margin_loss(capsules.lengths, label)

    @torch.no_grad()
    def static_coupling(self, batch: Batch) -> list[Tensor]:
        """Read out how much of each node's capsules goes to each static capsule.

        Returns:
            For each program ``[n, C, a]``: for its n windows, in the order of the batch, and each
            channel, shares that sum to 1 over the static capsules.
        """
        primary, weight = self._primary(batch)
        return self.variable_to_static.coupling(
            primary, batch.window, batch.count, weight, batch.bounds
        )

    def _symbol_vectors(self, symbols: SymbolTensors) -> Tensor:
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

    def _primary(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the capsules of the distinct windows, and their weights in the programs."""
        config = self.config
        vectors = self._symbol_vectors(batch.symbols)
        for layer, windows in zip(self.hidden, batch.layers, strict=False):
            vectors = layer(vectors, windows).squeeze(1)  # [W, V']
        outputs = self.primary(vectors, batch.layers[-1])
        capsules = outputs.view(len(outputs), config.capsule_size, -1)
        weight = batch.count
        if config.counts == "log":
            weight = 1 + weight.log()
        if self.gate:
            gates = functional.softplus(self.gate(outputs.flatten(1))).squeeze(1)
            weight = weight * gates[batch.window]
        return squash(capsules, config.squash, dim=1), weight  # [W, D, C]
