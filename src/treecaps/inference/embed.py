"""Embeddings of programs: the more alike two programs are, the nearer."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.cluster import Workers
from treecaps.errors import Failure
from treecaps.inference.stream import stream
from treecaps.inference.units import CodeUnit
from treecaps.models.bundled import SIMILAR
from treecaps.models.trained import ModelLike, as_model
from treecaps.syntax.program import Item
from treecaps.syntax.tree import Tree
from treecaps.text import short_repr

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Embedding:
    """A program as a vector.

    Args:
        id: The program's name.
        vector: ``[E]``, of length 1.
        function: The name of the function that this is about; ``None`` for a whole program.
        line: The line where that begins, from 1.
    """

    id: str
    vector: Vectors
    function: str | None = None
    line: int | None = None

    def __repr__(self) -> str:
        where = {} if self.function is None else {"function": self.function}
        return short_repr(self, self.id, size=len(self.vector), **where)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {**vars(self), "vector": [round(one, 6) for one in self.vector.tolist()]}
        return {name: value for name, value in values.items() if value is not None}


_ALIKE, _EQUAL = 0.95, 0.999


class Embedder:
    """Makes vectors of programs: the product of two says how alike their programs are.

    Args:
        model: A trained model, its folder, or the name of a bundled one.
    """

    def __init__(self, model: ModelLike = SIMILAR) -> None:
        self.model = as_model(model)

    def embed(
        self,
        programs: Iterable[Item | str | Path],
        *,
        functions: bool = False,
        workers: Workers | None = None,
        times: dict[str, float] | None = None,
    ) -> Generator[Embedding | Failure]:
        """Yield the vectors of programs, in order; some at a time, so there may be many.

        Args:
            programs: Programs, or files to read; failures pass through.
            functions: Whether each function of a program gets a vector, not the whole.
            workers: How many processes there are, or a ``RayCluster``; as many processes as
                there are cores by default.
            times: Is told the seconds spent so far on ``parsing`` and ``network``, by all
                processes.
        """
        return stream(
            self.model,
            programs,
            self.embed_units,
            functions=functions,
            workers=workers,
            times=times,
        )

    def embed_units(self, units: Sequence[CodeUnit]) -> list[Embedding]:
        """Return the vectors of programs that are parsed, or of functions, all in one go."""
        vectors = self.embed_trees([unit.tree for unit in units])
        return [
            Embedding(unit.id, vector, unit.function, unit.line)
            for unit, vector in zip(units, vectors, strict=True)
        ]

    def probability(self, similarity: float) -> float | None:
        """Return how probable it is that two programs of such a similarity solve the same problem.

        ``None`` if the model was not trained for similarity, and does not know.
        """
        return self.probabilities(np.array([similarity]))[0]

    def probabilities(self, similarity: Vectors) -> list[float] | list[None]:
        """Return what ``probability`` does for each of several."""
        if self.model.task != "similarity":
            return [None] * len(similarity)
        found: list[float] = self.model.calibration.same(similarity).tolist()
        return found

    @property
    def alike(self) -> float:
        """From which similarity on two programs count as alike.

        That is where 9 of 10 such pairs solve the same problem, or 0.95 if that is not known.
        """
        if self.model.task != "similarity":
            return _ALIKE
        return min(self.model.calibration.similarity(0.9), _EQUAL)

    def embed_trees(self, trees: Iterable[Tree]) -> Vectors:
        """Return the vectors of programs that are parsed, ``[B, E]``."""
        return self.model.embeddings(self.model.read_trees(trees))
