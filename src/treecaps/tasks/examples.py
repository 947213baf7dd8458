"""What networks learn from: programs with their classes, or with what else a task asks for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treecaps.inputs.base import Input
    from treecaps.inputs.distinct import Longs

UNKNOWN = -1
"""The class of a program whose label the training data do not have."""
BACKGROUND = -2
"""The class of a program that is of none of the classes."""


@dataclass(frozen=True)
class Examples:
    """Programs and their classes ``[B]``; ``UNKNOWN`` for a class that no network can name.

    Training programs may be followed by background, which is of none of the classes.

    Args:
        inputs: The programs as they are, and again after all others in each of the other views.
        label: Their classes.
        target: What is to be predicted of each, in all views, as the task has it; rows of it can
            be taken.
        views: The other views of the same programs, by data augmentation: ``blind``,
            ``rewritten``.
    """

    inputs: "Input"
    label: "Longs"
    target: Any
    views: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    @property
    def num_labelled(self) -> int:
        """How many programs are of a class, and not background."""
        import numpy as np

        return int(np.count_nonzero(self.label != BACKGROUND))

    @property
    def class_rows(self) -> "Longs | None":
        """Where the programs of a class are in the inputs, in all views; ``None`` if all are."""
        import numpy as np

        rows = np.flatnonzero(self.label != BACKGROUND)
        if len(rows) == len(self):
            return None
        return (rows + len(self) * np.arange(len(self.views) + 1)[:, None]).ravel()

    @property
    def has_blind(self) -> bool:
        """Whether the programs are there a second time, blind."""
        return "blind" in self.views

    @property
    def every_label(self) -> "Longs":
        """The classes of all programs of the input."""
        import numpy as np

        return np.tile(self.label, 1 + len(self.views))

    def rows_of(self, view: str, rows: "Longs") -> "Longs":
        """Return where another view of some programs is in the input."""
        return rows + len(self) * (1 + self.views.index(view))
