"""GGNN: gated graph neural network on program graphs (Li et al. 2016; Allamanis et al. 2018)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.graphs import Graphs, GraphTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.syntax.edges import EDGES
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class GGNNConfig(NetworkConfig):
    """What a GGNN is made of."""

    hidden: int = option(64, "the size of a node's state")
    steps: int = option(4, "message-passing steps", le=1000)
    dropout: float = option(0.0, "share of a program's vector left out in training", ge=0, lt=1)


@register_architecture(
    "ggnn",
    default=Recommended(GGNNConfig(nodes="kinds+tokens", vector_size=64), RECOMMENDED_TRAINING),
)
class GGNN(Network):
    r"""Gated graph neural network.

    .. math::
        m_v = \sum_{e : u \to v} (W_{k(e)} h_u) \qquad h_v \leftarrow \mathrm{GRU}(m_v, h_v)

    over edges of all kinds, each also the other way round with weights of its own. In the end
    attention sums the nodes of a program,

    .. math:: p = \sum_v \sigma(i(h_v, x_v)) \odot \tanh(j(h_v, x_v))

    where x is what a node shows.
    """

    HEAD = ("output.",)

    config: GGNNConfig

    @classmethod
    def read_trees(
        cls, config: GGNNConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Graphs:
        """Return all nodes and their edges."""
        return Graphs.from_trees(trees, vocabulary)

    def __init__(self, config: GGNNConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        size = config.hidden
        self.inputs = nn.Linear(config.vector_size, size)
        self.edges = nn.Parameter(torch.empty(2 * len(EDGES), size, size))
        nn.init.uniform_(self.edges, -1 / math.sqrt(size), 1 / math.sqrt(size))
        self.cell = nn.GRUCell(size, size)
        self.attend = nn.Linear(2 * size, 2 * size)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(size, classes)

    def forward(self, graphs: GraphTensors[Tensor]) -> Logits:
        """Pass messages along all edges, sum the nodes of programs, classify."""
        # Equal symbols begin equal.
        shown = self.inputs(self.symbol_vectors(graphs.symbols))[graphs.symbol]
        states = self.propagate(shown, graphs)
        gate, value = self.attend(torch.cat([states, shown], 1)).chunk(2, 1)
        sums = states.new_zeros(len(graphs), states.shape[1]).index_add(
            0, graphs.program, gate.sigmoid() * value.tanh()
        )
        # Programs differ in size a hundredfold.
        sizes = torch.bincount(graphs.program, minlength=len(graphs)).unsqueeze(1)
        return Logits.of(self.output(self.dropout(sums / sizes.sqrt())))

    def propagate(self, states: Tensor, graphs: GraphTensors[Tensor]) -> Tensor:
        """Return the states of nodes ``[N, size]`` after a few steps of message passing."""
        for _ in range(self.config.steps):
            states = self.cell(self._messages(states, graphs), states)
        return states

    def _messages(self, states: Tensor, graphs: GraphTensors[Tensor]) -> Tensor:
        """Return the messages that reach each node, ``[N, size]``."""
        messages = torch.zeros_like(states)
        for number, (source, target) in enumerate(graphs.edges):
            if len(source):
                there, back = self.edges[2 * number], self.edges[2 * number + 1]
                messages.index_add_(0, target, states.index_select(0, source) @ there)
                messages.index_add_(0, source, states.index_select(0, target) @ back)
        return messages
