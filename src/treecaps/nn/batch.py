"""A forest as tensors: what networks take as their input."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from treecaps.data.bags import Bags
from treecaps.data.forest import Forest, Windows
from treecaps.data.graphs import Graphs
from treecaps.data.subtrees import Subtrees
from treecaps.data.symbols import Symbols
from treecaps.syntax.edges import EDGES


@dataclass(frozen=True)
class SymbolTensors:
    """``Symbols`` as tensors; ``offsets`` without its end, as torch wants it."""

    kind: Tensor
    offsets: Tensor
    token: Tensor

    @classmethod
    def of(cls, symbols: Symbols) -> "SymbolTensors":
        """Take over the arrays of symbols."""
        offsets = symbols.offsets[:-1]
        return cls(*map(torch.from_numpy, (symbols.kind, offsets, symbols.token)))


@dataclass(frozen=True)
class WindowTensors:
    """``Windows`` as tensors; ``offsets`` without its end, as torch wants it."""

    offsets: Tensor
    member: Tensor
    top: Tensor
    left: Tensor
    right: Tensor

    @classmethod
    def of(cls, windows: Windows, dtype: torch.dtype) -> "WindowTensors":
        """Take over the arrays of a layer's windows."""
        return cls(
            torch.from_numpy(windows.offsets[:-1]),
            torch.from_numpy(windows.member),
            *(
                torch.from_numpy(weights).to(dtype)
                for weights in (windows.top, windows.left, windows.right)
            ),
        )


@dataclass(frozen=True)
class SubtreeTensors:
    """``Subtrees`` as tensors, with the subtrees of each height together.

    Args:
        symbol: ``[D]``, what the top node of each subtree shows.
        levels: For each height the subtrees' first number, the one after their last, and the
            families: ``[F]`` children and ``[F]`` their parents, counted from the first.
        offsets: ``[B + 1]``, where each program's subtrees begin.
        subtree: ``[Q]``, subtrees.
    """

    symbol: Tensor
    levels: tuple[tuple[int, int, Tensor, Tensor], ...]
    offsets: Tensor
    subtree: Tensor

    @classmethod
    def of(cls, subtrees: Subtrees) -> "SubtreeTensors":
        """Take over the arrays of subtrees."""
        heights = int(subtrees.height[-1]) + 1 if len(subtrees.height) else 0
        bounds = np.searchsorted(subtrees.height, np.arange(heights + 1)).tolist()
        parent = np.repeat(np.arange(len(subtrees.symbol)), np.diff(subtrees.child_offsets))
        levels = []
        for first, end in pairwise(bounds):
            rows = slice(*subtrees.child_offsets[[first, end]].tolist())
            families = (subtrees.child[rows], parent[rows] - first)
            levels.append((first, end, *map(torch.from_numpy, families)))
        arrays = (subtrees.symbol, subtrees.offsets, subtrees.subtree)
        symbol, offsets, subtree = map(torch.from_numpy, arrays)
        return cls(symbol, tuple(levels), offsets, subtree)


@dataclass(frozen=True)
class GraphTensors:
    """``Graphs`` as tensors.

    Args:
        symbol: ``[N]``, what each node shows.
        program: ``[N]``, the program that each node is of.
        edges: For each kind of ``EDGES`` the sources and the targets, nodes.
    """

    symbol: Tensor
    program: Tensor
    edges: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    def of(cls, graphs: Graphs) -> "GraphTensors":
        """Take over the arrays of graphs."""
        sizes = np.diff(graphs.offsets)
        shift = np.repeat(graphs.offsets[:-1], np.diff(graphs.edge_offsets))
        ends = graphs.source + shift, graphs.target + shift
        edges = []
        for kind in range(len(EDGES)):
            chosen = graphs.kind == kind
            source, target = (torch.from_numpy(end[chosen]) for end in ends)
            edges.append((source, target))
        program = np.repeat(np.arange(len(sizes)), sizes)
        return cls(torch.from_numpy(graphs.symbol), torch.from_numpy(program), tuple(edges))


@dataclass(frozen=True)
class BagTensors:
    """``Bags`` as tensors."""

    offsets: Tensor
    feature: Tensor
    count: Tensor

    @classmethod
    def of(cls, bags: Bags) -> "BagTensors":
        """Take over the arrays of bags."""
        return cls(*map(torch.from_numpy, (bags.offsets, bags.feature, bags.count)))


@dataclass(frozen=True)
class Batch:
    """``Forest`` as tensors.

    Args:
        symbols: What nodes show.
        layers: The distinct windows of each convolution layer.
        bounds: ``B + 1`` numbers, where each program's windows begin.
        window: ``[P]``, distinct windows of the last layer.
        count: ``[P]``, how many nodes of the program have that window.
        region: ``[P]``, the part of the program that those nodes are in.
        languages: The language of each program.
        share: ``[P]``, the share of those nodes that a row stands for; all of them if ``None``.
        subtrees: The programs as distinct subtrees, where the forest has them.
        graphs: The programs as nodes and edges, where the forest has them.
        bags: The programs as features with counts, where the forest has them.
    """

    symbols: SymbolTensors
    layers: tuple[WindowTensors, ...]
    bounds: list[int]
    window: Tensor
    count: Tensor
    region: Tensor
    languages: tuple[str, ...]
    share: Tensor | None = None
    subtrees: SubtreeTensors | None = None
    graphs: GraphTensors | None = None
    bags: BagTensors | None = None

    @classmethod
    def of(cls, forest: Forest, dtype: torch.dtype = torch.float32) -> "Batch":
        """Take over a forest's arrays."""
        return cls(
            SymbolTensors.of(forest.symbols),
            tuple(WindowTensors.of(layer, dtype) for layer in forest.layers),
            forest.offsets.tolist(),
            torch.from_numpy(forest.window),
            torch.from_numpy(forest.count).to(dtype),
            torch.from_numpy(forest.region),
            forest.languages,
            None if forest.share is None else torch.from_numpy(forest.share).to(dtype),
            SubtreeTensors.of(forest.subtrees) if forest.subtrees else None,
            GraphTensors.of(forest.graphs) if forest.graphs else None,
            BagTensors.of(forest.bags) if forest.bags else None,
        )

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def programs(self) -> Tensor:
        """``[P]``, the program that each window belongs to."""
        sizes = torch.tensor(self.bounds).diff()
        return torch.arange(len(self)).repeat_interleave(sizes)
