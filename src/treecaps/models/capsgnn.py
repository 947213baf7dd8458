"""CapsGNN: a capsule graph neural network (Xinyi and Chen 2019)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.graphs import Graphs, GraphTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Network, NetworkOutput
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.nn.dynamic_routing import CapsuleLayer
from treecaps.nn.margin_loss import margin_loss
from treecaps.nn.squash import lengths, squash
from treecaps.nn.weights import new_weight
from treecaps.syntax.edges import EDGES
from treecaps.syntax.tree import Tree

_CHILD = EDGES.index("Child")


@dataclass(frozen=True)
class CapsGNNConfig(NetworkConfig):
    """What a CapsGNN is made of."""

    layers: int = option(
        3, "layers of graph convolution, each of which gives node capsules", le=100
    )
    channels: int = option(4, "capsules of a node in each layer")
    capsule_size: int = option(8, "the size of a node's capsule")
    graph_capsules: int = option(16, "capsules of a program")
    graph_size: int = option(8, "the size of a program's capsule")
    class_size: int = option(8, "the size of a class capsule")
    graph_iterations: int = option(3, "iterations of routing to the capsules of a program", le=1000)
    class_iterations: int = option(3, "iterations of routing to the class capsules", le=1000)


@register_architecture(
    "capsgnn",
    default=Recommended(CapsGNNConfig(nodes="kinds+tokens", vector_size=64), RECOMMENDED_TRAINING),
)
class CapsGNN(Network):
    r"""Capsule graph neural network.

    Symbols -> graph convolution along the tree, whose every layer gives each node some capsules ->
    attention, which weighs the nodes of a program against each other in each channel -> capsules of
    the program, by routing -> class capsules, by routing.

    .. math:: H_{l+1} = \tanh(\tilde D^{-1/2} (A + I) \tilde D^{-1/2} H_l W_l)
    """

    HEAD = ("classes.",)

    config: CapsGNNConfig

    @classmethod
    def read_trees(
        cls, config: CapsGNNConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Graphs:
        """Return all nodes and their edges."""
        return Graphs.from_trees(trees, vocabulary)

    def __init__(self, config: CapsGNNConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        width = config.channels * config.capsule_size
        sizes = [config.vector_size, *[width] * config.layers]
        self.convolutions = nn.ModuleList(
            nn.Linear(inputs, width, bias=False) for inputs in sizes[:-1]
        )
        channels = config.layers * config.channels
        self.attention = nn.Sequential(
            nn.Linear(channels * config.capsule_size, channels),
            nn.Tanh(),
            nn.Linear(channels, channels),
        )
        votes = config.graph_capsules * config.graph_size
        # The first iteration gives each of the capsules of a program its part of everything, so
        # votes are as many times larger; smaller ones leave classes without a signal.
        size = config.graph_capsules / math.sqrt(config.capsule_size)
        self.votes = new_weight(channels, config.capsule_size, votes, std=size)
        self.classes = CapsuleLayer(
            config.graph_capsules,
            config.graph_size,
            classes,
            config.class_size,
            config.class_iterations,
        )

    def forward(self, graphs: GraphTensors[Tensor]) -> NetworkOutput:
        """Convolve, attend, route twice."""
        nodes = self._convolve(self.symbol_vectors(graphs.symbols)[graphs.symbol], graphs)
        graph = self._route(self._attend(nodes, graphs, len(graphs)), graphs, len(graphs))
        return NetworkOutput(lengths(self.classes(graph)[0]))

    def loss(self, output: NetworkOutput, label: Tensor) -> Tensor:
        """Return the margin loss."""
        return margin_loss(output.scores, label)

    def _convolve(self, states: Tensor, graphs: GraphTensors[Tensor]) -> Tensor:
        """Return the capsules of each node, ``[N, channels of all layers, size]``."""
        source, target = graphs.edges[_CHILD]
        degree = 1 + torch.bincount(torch.cat([source, target]), minlength=len(states))
        scale = degree.to(states.dtype).rsqrt().unsqueeze(1)
        found = []
        for layer in self.convolutions:
            sent = scale * layer(states)
            heard = sent.index_add(0, target, sent[source]).index_add(0, source, sent[target])
            states = (scale * heard).tanh()
            found.append(states.view(len(states), self.config.channels, -1))
        return torch.cat(found, 1)

    def _attend(self, nodes: Tensor, graphs: GraphTensors[Tensor], programs: int) -> Tensor:
        """Weigh the nodes of a program against each other, in each channel by themselves."""
        # The softmax of tanh-bounded numbers needs no largest one taken off.
        weight = self.attention(nodes.flatten(1)).tanh().exp()
        total = weight.new_zeros(programs, weight.shape[1]).index_add(0, graphs.program, weight)
        attended: Tensor = nodes * (weight / total[graphs.program]).unsqueeze(2)
        return attended

    def _route(self, nodes: Tensor, graphs: GraphTensors[Tensor], programs: int) -> Tensor:
        """Route the capsules of nodes to those of their programs, ``[B, capsules, size]``."""
        config = self.config
        votes = torch.einsum("nci,civ->ncv", nodes, self.votes).view(
            *nodes.shape[:2], config.graph_capsules, config.graph_size
        )
        agreement = votes.new_zeros(votes.shape[:3])
        graph = votes
        for iteration in range(config.graph_iterations):
            weighted = (agreement.softmax(2).unsqueeze(3) * votes).sum(1)
            shape = (programs, *weighted.shape[1:])
            graph = squash(weighted.new_zeros(shape).index_add(0, graphs.program, weighted))
            if iteration + 1 < config.graph_iterations:
                agreement = agreement + (votes * graph[graphs.program].unsqueeze(1)).sum(3)
        return graph
