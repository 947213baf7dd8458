"""What networks learn from: programs with their classes, or with what else a task asks for."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from treecaps.data.distinct import Longs
from treecaps.data.forest import Forest

UNKNOWN = -1
"""The class of a program whose label the training data do not have."""


@dataclass(frozen=True)
class Examples:
    """Programs and their classes ``[B]``; ``UNKNOWN`` for a class that no network can name.

    Args:
        forest: The programs as they are, and again after all others in each of the other ways.
        label: Their classes.
        target: What is to be predicted of each, as the task has it; rows of it can be taken.
        ways: In which other ways they are there: ``blind``, ``rewritten``.
    """

    forest: Forest
    label: Tensor
    target: Any
    ways: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    @property
    def has_blind(self) -> bool:
        """Whether the programs are there a second time, blind."""
        return "blind" in self.ways

    @property
    def every_label(self) -> Tensor:
        """The classes of all programs of the forest."""
        return self.label.repeat(1 + len(self.ways))

    def told(self, way: str, rows: Longs) -> Longs:
        """Return where programs are in the forest as they are in another way."""
        return rows + len(self) * (1 + self.ways.index(way))
