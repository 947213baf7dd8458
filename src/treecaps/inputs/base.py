"""``Input``: programs in the form that a network reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.distinct import Longs

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Array = TypeVar("Array")
Convert = Callable[[NDArray[Any]], Array]
"""Makes of a NumPy array what an engine computes with: a tensor, or the array itself."""
Programs = Sequence[int] | Longs
"""Numbers of programs, in the order wanted."""


@dataclass(frozen=True)
class InputDropout:
    """Leaves out a random part of what a network reads, while it learns.

    Args:
        rng: The random generator.
        windows: Share of the windows of a program, and of its token features, that are left out.
        tokens: Share of the programs that lose all token features.
    """

    rng: np.random.Generator
    windows: float = 0.0
    tokens: float = 0.0

    def keep_rows(self, count: int) -> Bools | None:
        """Draw which of so many windows or features stay; ``None`` if all do."""
        return self.rng.random(count) >= self.windows if self.windows else None

    def keep_tokens(self, programs: int) -> Bools | None:
        """Draw which of so many programs keep their token features; ``None`` if all do."""
        return self.rng.random(programs) >= self.tokens if self.tokens else None


class Input(Protocol):
    """B programs in the form that a network reads, as NumPy arrays.

    Each kind of input is one file: a frozen dataclass with a class method ``from_trees``, which
    takes trees and a vocabulary, and the methods below.
    """

    def __len__(self) -> int:
        """Return B."""

    @property
    def sizes(self) -> Longs:
        """``[B]``, how much a network has to compute for each program: nodes, or windows."""

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> "Input":
        """Return some of the programs, in the order given, with what they need and no more."""

    def to_tensors(self, convert: Convert[Any]) -> Any:
        """Return what the forward pass takes: the arrays, converted, with all programs as one."""


def select_runs(offsets: Longs, chosen: Longs) -> tuple[Longs, Longs]:
    """Return the offsets of chosen runs laid end to end, and the rows they are made of."""
    begins = offsets[chosen]
    sizes = offsets[chosen + 1] - begins
    ends = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], sizes)
    return ends, rows
