"""GGNN: gated graph neural network on program graphs (Li et al. 2016; Allamanis et al. 2018)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.graphs import Graphs, GraphTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.nn.dropout import Dropout
from treecaps.nn.node_readout import NodeOutput, NodeReadout
from treecaps.syntax.edges import EDGES
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class GGNNConfig(NetworkConfig):
    """What a GGNN is made of."""

    hidden: int = option(64, "the size of a node's state")
    steps: int = option(4, "message-passing steps", le=1000)
    dropout: float = option(0.0, "share of a program's vector left out in training", ge=0, lt=1)
    readout: int = option(
        0, "the size of a node's state in a read-out for nodes; there is none if 0", ge=0
    )
    readout_rounds: int = option(3, "how often nodes hear of their surroundings there")


@register_architecture(
    "ggnn",
    default=Recommended(GGNNConfig(nodes="kinds+tokens", vector_size=64), RECOMMENDED_TRAINING),
    bugs=Recommended(
        GGNNConfig(
            nodes="kinds+tokens", tokens=5_000, token_dropout=0.15, vector_size=64, readout=64
        ),
        {"vectors": "random"},
    ),
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
        self.dropout = Dropout(config.dropout)
        self.output = nn.Identity() if config.readout else nn.Linear(size, classes)
        self.readout: NodeReadout | None = None
        if config.readout:
            options = config.readout, config.readout_rounds, classes
            self.readout = NodeReadout(2 * size, size, *options)

    def forward(self, graphs: GraphTensors[Tensor]) -> Logits:
        """Pass messages along all edges, sum the nodes of programs, classify."""
        states, shown = self._states(graphs)
        return Logits.of(self.output(self.dropout(self._sum(states, shown, graphs))))

    def score_bugs(self, graphs: GraphTensors[Tensor]) -> NodeOutput:
        """Return how suspicious nodes are, by their states and the vector of the program."""
        if self.readout is None:
            raise UsageError("this network has no read-out for nodes: train it with readout=64")
        states, shown = self._states(graphs)
        program = self._sum(states, shown, graphs)
        found: NodeOutput = self.readout(torch.cat([states, shown], 1), program, graphs)
        return found

    def _states(self, graphs: GraphTensors[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the states of nodes, and what they began with."""
        # Equal symbols begin equal.
        shown = self.inputs(self.symbol_vectors(graphs.symbols))[graphs.symbol]
        return self.propagate(shown, graphs), shown

    def _sum(self, states: Tensor, shown: Tensor, graphs: GraphTensors[Tensor]) -> Tensor:
        """Return the vectors of programs, ``[B, size]``."""
        gate, value = self.attend(torch.cat([states, shown], 1)).chunk(2, 1)
        sums = states.new_zeros(len(graphs), states.shape[1]).index_add(
            0, graphs.program, gate.sigmoid() * value.tanh()
        )
        # Programs differ in size a hundredfold.
        sizes = torch.bincount(graphs.program, minlength=len(graphs)).unsqueeze(1)
        return sums / sizes.sqrt()

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
