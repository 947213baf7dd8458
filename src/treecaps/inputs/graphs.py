"""``Graphs``: programs as all of their nodes, with edges of several kinds between them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Array, Convert, InputDropout, Programs, select_runs
from treecaps.inputs.distinct import Longs, compact
from treecaps.inputs.symbols import Symbols, SymbolTable, SymbolTensors
from treecaps.syntax.edges import EDGES, find_edges
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class GraphTensors(Generic[Array]):
    """``Graphs`` as a network takes them.

    Args:
        symbols: What nodes show.
        symbol: ``[N]``, what each node shows.
        program: ``[N]``, the program that each node is of.
        edges: For each kind of ``EDGES`` the sources and the targets, nodes.
        languages: The language of each program.
    """

    symbols: SymbolTensors[Array]
    symbol: Array
    program: Array
    edges: tuple[tuple[Array, Array], ...]
    languages: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.languages)


@dataclass(frozen=True)
class Graphs:
    """B programs with N nodes and E edges in all.

    Args:
        symbols: What nodes show.
        offsets: ``[B + 1]``, where each program's nodes begin.
        symbol: ``[N]``, what each node shows.
        edge_offsets: ``[B + 1]``, where each program's edges begin.
        kind: ``[E]``, places in ``EDGES``.
        source: ``[E]``, nodes, counted from the first of the program.
        target: ``[E]``, likewise.
        languages: The language of each program.
    """

    symbols: Symbols
    offsets: Longs
    symbol: Longs
    edge_offsets: Longs
    kind: Longs
    source: Longs
    target: Longs
    languages: tuple[str, ...]

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], vocabulary: Vocabulary) -> "Graphs":
        """Take all nodes of trees, and find the edges between them."""
        table = SymbolTable(vocabulary)
        shown: list[Longs] = []
        found: list[Longs] = []
        languages = []
        for tree in trees:
            shown.append(table.encode(JoinedTrees([tree])))
            rows = [
                np.column_stack([np.full(len(pairs), EDGES.index(kind)), pairs])
                for kind, pairs in find_edges(tree).items()
            ]
            found.append(np.concatenate(rows).astype(np.int32))
            languages.append(tree.language)
        edges = np.concatenate([np.zeros((0, 3), np.int32), *found]).astype(np.int64)
        kind, source, target = np.ascontiguousarray(edges.T)
        return cls(
            table.symbols(),
            np.cumsum([0, *map(len, shown)]),
            np.concatenate([np.zeros(0, np.int64), *shown]),
            np.cumsum([0, *map(len, found)]),
            kind,
            source,
            target,
            tuple(languages),
        )

    def __len__(self) -> int:
        return len(self.languages)

    @property
    def sizes(self) -> Longs:
        """``[B]``, how many nodes each program has."""
        return np.diff(self.offsets)

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> "Graphs":
        """Return some of the programs, in the order given; nothing of them is left out."""
        programs = np.asarray(programs, np.int64)
        offsets, nodes = select_runs(self.offsets, programs)
        edge_offsets, edges = select_runs(self.edge_offsets, programs)
        used, symbol = compact(self.symbol[nodes], len(self.symbols))
        return Graphs(
            self.symbols.select(used),
            offsets,
            symbol,
            edge_offsets,
            self.kind[edges],
            self.source[edges],
            self.target[edges],
            tuple(self.languages[program] for program in programs),
        )

    def to_tensors(self, convert: Convert[Array]) -> GraphTensors[Array]:
        """Count the nodes of all programs through, and part the edges by kind."""
        shift = np.repeat(self.offsets[:-1], np.diff(self.edge_offsets))
        source, target = self.source + shift, self.target + shift
        edges = []
        for kind in range(len(EDGES)):
            chosen = self.kind == kind
            edges.append((convert(source[chosen]), convert(target[chosen])))
        return GraphTensors(
            self.symbols.to_tensors(convert),
            convert(self.symbol),
            convert(np.repeat(np.arange(len(self)), self.sizes)),
            tuple(edges),
            self.languages,
        )
