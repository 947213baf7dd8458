"""A forest as tensors: what networks take as their input."""

from dataclasses import dataclass

import torch
from torch import Tensor

from treecaps.data.forest import Forest, Windows
from treecaps.data.symbols import Symbols


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
class Batch:
    """``Forest`` as tensors.

    Args:
        symbols: What nodes show.
        layers: The distinct windows of each convolution layer.
        bounds: ``B + 1`` numbers, where each program's windows begin.
        window: ``[P]``, distinct windows of the last layer.
        count: ``[P]``, how many nodes of the program have that window.
    """

    symbols: SymbolTensors
    layers: tuple[WindowTensors, ...]
    bounds: list[int]
    window: Tensor
    count: Tensor

    @classmethod
    def of(cls, forest: Forest, dtype: torch.dtype = torch.float32) -> "Batch":
        """Take over a forest's arrays."""
        return cls(
            SymbolTensors.of(forest.symbols),
            tuple(WindowTensors.of(layer, dtype) for layer in forest.layers),
            forest.offsets.tolist(),
            torch.from_numpy(forest.window),
            torch.from_numpy(forest.count).to(dtype),
        )

    def __len__(self) -> int:
        return len(self.bounds) - 1
