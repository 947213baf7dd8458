"""``NodeGraphs``: programs as all of their nodes, with a window for each and edges between them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Array, Convert, InputDropout, Programs
from treecaps.inputs.distinct import Longs
from treecaps.inputs.graphs import Graphs, GraphTensors
from treecaps.inputs.node_windows import WindowLayer
from treecaps.inputs.windows import WindowTensors
from treecaps.inputs.windows_and_bags import WindowsAndBagsTensors
from treecaps.syntax.edges import EDGES
from treecaps.syntax.tree import Tree

_CHILD = EDGES.index("Child")


@dataclass(frozen=True)
class NodeTensors(WindowsAndBagsTensors[Array]):
    """``NodeGraphs`` as a network takes them: the windows are those of the nodes, in order."""

    graph: GraphTensors[Array]


@dataclass(frozen=True)
class NodeGraphs:
    """B programs as graphs, with windows of depth 2 for every node.

    Networks compute the same of these as of ``Windows``, if equal windows count as often as they
    occur; and they can tell of each node what they make of it.

    Args:
        graphs: The nodes and the edges between them.
        layers: How many convolution layers there are.
    """

    graphs: Graphs
    layers: int

    @classmethod
    def from_trees(
        cls, trees: Iterable[Tree], vocabulary: Vocabulary, layers: int = 1
    ) -> "NodeGraphs":
        """Take all nodes of trees, and find the edges between them."""
        return cls(Graphs.from_trees(trees, vocabulary), layers)

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def sizes(self) -> Longs:
        """``[B]``, how many nodes each program has."""
        return self.graphs.sizes

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> "NodeGraphs":
        """Return some of the programs, in the order given; nothing of them is left out."""
        return NodeGraphs(self.graphs.select(programs, dropout), self.layers)

    def to_tensors(self, convert: Convert[Array]) -> NodeTensors[Array]:
        """Make a window of each node and its children."""
        graphs = self.graphs
        graph = graphs.to_tensors(convert)
        child = graphs.kind == _CHILD
        shift = np.repeat(graphs.offsets[:-1], np.diff(graphs.edge_offsets))[child]
        above, below = graphs.source[child] + shift, graphs.target[child] + shift
        nodes = len(graphs.symbol)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(above, minlength=nodes) + 1)])
        # Edges are sorted by where they come from, so a window's members are in order.
        member = np.empty(offsets[-1], np.int64)
        is_top = np.zeros(len(member), bool)
        is_top[offsets[:-1]] = True
        member[is_top], member[~is_top] = np.arange(nodes), below
        layer = WindowLayer(offsets, member).to_tensors(convert)
        first = layer._replace(member=convert(graphs.symbol[member]))
        windows = WindowTensors(
            graph.symbols,
            (first, *[layer] * (self.layers - 1)),
            graphs.offsets.tolist(),
            convert(np.arange(nodes)),
            graph.program,
            convert(np.ones(nodes, np.float32)),
            convert(np.zeros(nodes, np.int64)),
        )
        return NodeTensors(windows, None, graph)
