"""``Input``: programs in the form that a network reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.distinct import Longs, mix

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

    What a program loses depends on its number alone, not on the programs beside it. So it is the
    same whichever of several processes reads the program.

    Args:
        numbers: ``[B]``, a random number for each of the programs that are selected.
        windows: Share of the windows of a program, and of its token features, that are left out.
        tokens: Share of the programs that lose all token features.
    """

    numbers: Longs
    windows: float = 0.0
    tokens: float = 0.0

    def keep_windows(self, sizes: Longs) -> Bools | None:
        """Draw which windows stay of programs that have so many each; ``None`` if all do."""
        return self._keep_rows(sizes, 0)

    def keep_features(self, sizes: Longs) -> Bools | None:
        """Draw which token features stay of programs that have so many each, likewise."""
        return self._keep_rows(sizes, 1)

    def keep_tokens(self) -> Bools | None:
        """Draw which programs keep their token features at all; ``None`` if all do."""
        return _draw(2, self.numbers) >= self.tokens if self.tokens else None

    def _keep_rows(self, sizes: Longs, what: int) -> Bools | None:
        if not self.windows:
            return None
        place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return _draw(3 * place + what, np.repeat(self.numbers, sizes)) >= self.windows


def _draw(place: int | Longs, number: Longs) -> NDArray[np.floating[Any]]:
    """Return a random number from 0 to 1 for each place of a program with a number."""
    places = np.broadcast_to(np.asarray(place, np.int64), number.shape)
    drawn: NDArray[np.floating[Any]] = (
        mix(places, number).view(np.uint64) >> np.uint64(11)
    ) * 2.0**-53
    return drawn


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
