"""DTBCNN: tree-based convolution over trees with dependencies (Bui et al. 2019)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.graphs import Graphs, GraphTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.nn.dropout import Dropout
from treecaps.syntax.edges import EDGES
from treecaps.syntax.tree import Tree

_CHILD = EDGES.index("Child")
_DEPENDENCIES = tuple(
    EDGES.index(kind) for kind in ("LastWrite", "ComputedFrom", "GuardedBy", "GuardedByNegation")
)


@dataclass(frozen=True)
class DTBCNNConfig(NetworkConfig):
    """What a DTBCNN is made of."""

    convolutions: tuple[int, ...] = option((128,), "sizes of the convolution layers")
    hidden: int = option(128, "the size of the hidden layer")
    dropout: float = option(0.0, "share of the hidden layer left out in training", ge=0, lt=1)


class DependencyConvolution(nn.Module):
    r"""Tree convolution of windows that also hold what a node depends on.

    .. math::
        y_v = \tanh\Bigl(W^t x_v + \sum_c (\eta^l_c W^l + \eta^r_c W^r) x_c
            + \frac{1}{|D_v|} \sum_{u \in D_v} W^d x_u + b\Bigr)

    over the children c of a node v, with the weights of TBCNN, and over the nodes D that it depends
    on: where a variable was last written, what it is computed from, what guards it.

    Args:
        inputs: V, the size of a node's vector.
        outputs: V', the size of the output.

    Shapes:
        vectors ``[N, V]``; parent and child ``[E]``, the edges of the tree, sorted by parents;
        node and other ``[D]``, which nodes depend on which; output ``[N, V']``.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.sizes = inputs, outputs
        self.top = nn.Linear(inputs, outputs)
        self.left = nn.Linear(inputs, outputs, bias=False)
        self.right = nn.Linear(inputs, outputs, bias=False)
        self.depends = nn.Linear(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for layer in (self.top, self.left, self.right, self.depends):
            layer.reset_parameters()

    def extra_repr(self) -> str:
        """Return the sizes that ``print`` shows."""
        return "{} -> {}".format(*self.sizes)

    def forward(
        self, vectors: Tensor, parent: Tensor, child: Tensor, node: Tensor, other: Tensor
    ) -> Tensor:
        """Convolve every node."""
        right = _places(parent, len(vectors)).to(vectors.dtype).unsqueeze(1)
        none = torch.zeros_like(vectors)
        below = vectors[child]
        to_left = none.index_add(0, parent, (1 - right) * below)
        to_right = none.index_add(0, parent, right * below)
        count = torch.bincount(node, minlength=len(vectors)).clamp(min=1).unsqueeze(1)
        depends = none.index_add(0, node, vectors[other]) / count
        sums = self.top(vectors) + self.left(to_left) + self.right(to_right)
        found: Tensor = (sums + self.depends(depends)).tanh()
        return found


def _places(parent: Tensor, nodes: int) -> Tensor:
    """Return of each child how far to the right it stands, from 0 to 1; 1/2 for an only one."""
    counts = torch.bincount(parent, minlength=nodes)
    first = counts.cumsum(0) - counts  # edges to children are sorted by parents
    place = torch.arange(len(parent), device=parent.device) - first[parent]
    last = counts[parent] - 1
    return torch.where(last > 0, place / last.clamp(min=1), 0.5)


class DependencyTower(nn.Module):
    """What DTBCNN makes of a program before it is classified.

    Nodes' vectors ``[N, V]`` -> convolution ``[N, V']`` -> maxima over each program -> hidden layer
    ``[B, hidden]``.
    """

    def __init__(self, config: DTBCNNConfig) -> None:
        super().__init__()
        sizes = (config.vector_size, *config.convolutions)
        self.convolutions = nn.ModuleList(DependencyConvolution(*pair) for pair in pairwise(sizes))
        self.hidden = nn.Linear(sizes[-1], config.hidden)
        self.dropout = Dropout(config.dropout)

    def forward(self, vectors: Tensor, graphs: GraphTensors[Tensor], programs: int) -> Tensor:
        """Convolve, take maxima, and look at them once more."""
        depends = (torch.cat([graphs.edges[kind][end] for kind in _DEPENDENCIES]) for end in (0, 1))
        edges = (*graphs.edges[_CHILD], *depends)
        for layer in self.convolutions:
            vectors = layer(vectors, *edges)
        place = graphs.program.unsqueeze(1).expand(-1, vectors.shape[1])
        none = vectors.new_zeros(programs, vectors.shape[1])
        pooled = none.scatter_reduce(0, place, vectors, "amax", include_self=False)
        found: Tensor = self.dropout(self.hidden(pooled).relu())
        return found


@register_architecture(
    "dtbcnn",
    default=Recommended(
        DTBCNNConfig(nodes="kinds+tokens", vector_size=64, convolutions=(128, 128), dropout=0.3),
        RECOMMENDED_TRAINING,
    ),
)
class DTBCNN(Network):
    """Dependency tree-based convolutional neural network: TBCNN whose windows hold dependencies."""

    HEAD = ("output.",)

    config: DTBCNNConfig

    @classmethod
    def read_trees(
        cls, config: DTBCNNConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Graphs:
        """Return all nodes and their edges."""
        return Graphs.from_trees(trees, vocabulary)

    def __init__(self, config: DTBCNNConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        self.tower = DependencyTower(config)
        self.output = nn.Linear(config.hidden, classes)

    def forward(self, graphs: GraphTensors[Tensor]) -> Logits:
        """Look at each program, classify it."""
        vectors = self.symbol_vectors(graphs.symbols)[graphs.symbol]
        return Logits.of(self.output(self.tower(vectors, graphs, len(graphs))))
