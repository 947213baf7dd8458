"""``Graphs``: programs as all of their nodes, with edges of several kinds between them."""

from dataclasses import dataclass

import numpy as np

from treecaps.data.distinct import Longs
from treecaps.data.symbols import select_runs
from treecaps.syntax.edges import EDGES, find_edges
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class Graphs:
    """B programs with N nodes and E edges in all.

    Args:
        offsets: ``[B + 1]``, where each program's nodes begin.
        symbol: ``[N]``, what each node shows.
        edge_offsets: ``[B + 1]``, where each program's edges begin.
        kind: ``[E]``, places in ``EDGES``.
        source: ``[E]``, nodes, counted from the first of the program.
        target: ``[E]``, likewise.
    """

    offsets: Longs
    symbol: Longs
    edge_offsets: Longs
    kind: Longs
    source: Longs
    target: Longs

    def select(self, programs: Longs, symbols: Longs) -> "Graphs":
        """Return some of the programs.

        Args:
            programs: Which, in the order wanted.
            symbols: The symbols that they show, sorted; they get the numbers of their places.
        """
        offsets, nodes = select_runs(self.offsets, programs)
        edge_offsets, edges = select_runs(self.edge_offsets, programs)
        return Graphs(
            offsets,
            np.searchsorted(symbols, self.symbol[nodes]),
            edge_offsets,
            self.kind[edges],
            self.source[edges],
            self.target[edges],
        )


class GraphTable:
    """Gathers the nodes and edges of trees."""

    def __init__(self) -> None:
        self._symbols: list[Longs] = []
        self._edges: list[Longs] = []

    def add(self, tree: Tree, symbol: Longs) -> None:
        """Add a program whose nodes show some symbols."""
        self._symbols.append(symbol)
        rows = [
            np.column_stack([np.full(len(pairs), EDGES.index(kind)), pairs])
            for kind, pairs in find_edges(tree).items()
        ]
        self._edges.append(np.concatenate(rows).astype(np.int32))

    def graphs(self) -> Graphs:
        """Return all that was added."""
        edges = np.concatenate([np.zeros((0, 3), np.int32), *self._edges]).astype(np.int64)
        return Graphs(
            np.cumsum([0, *map(len, self._symbols)]),
            np.concatenate([np.zeros(0, np.int64), *self._symbols]),
            np.cumsum([0, *map(len, self._edges)]),
            *np.ascontiguousarray(edges.T),
        )
