"""``Engine``: what runs trained models, with NumPy arrays on the outside."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Floats, Input
from treecaps.models.config import ModelConfig
from treecaps.syntax.tree import Tree

__all__ = [
    "Arrays",
    "BugEngine",
    "BugScores",
    "BuildEngine",
    "Engine",
    "Floats",
    "check_array",
    "counting",
    "set_num_threads",
    "split_batches",
]

Arrays = Mapping[str, NDArray[Any]]
"""The weights of an ensemble by name: the number of the member, a dot, and the weight's name."""

CHOSEN: dict[str, int] = {}
"""How many threads compute, if that was chosen."""

_Member = TypeVar("_Member")

# Bounds of what is computed in one go, so that memory does not grow with the data.
_PROGRAMS = 256
_WINDOWS = 1 << 16


@dataclass(frozen=True)
class BugScores:
    """What a network with a read-out for nodes says of the N nodes of B programs.

    Args:
        offsets: ``[B + 1]``, where the nodes of each program begin.
        bug: ``[N]``, how much speaks for a bug at each node.
        none: ``[B]``, how much speaks for no bug at all, on the same scale.
        kinds: ``[N, K]``, logits of the kinds of mistakes, if there is one.
    """

    offsets: NDArray[np.int64]
    bug: Floats
    none: Floats
    kinds: Floats

    @classmethod
    def mean(cls, weights: Sequence[float], parts: "Sequence[BugScores]") -> "BugScores":
        """Return the weighted mean of what several networks say of the same programs."""

        def combine(name: str) -> Floats:
            values = [getattr(part, name) for part in parts]
            found: Floats = np.tensordot(np.array(weights, np.float32), np.stack(values), 1)
            return found

        return cls(parts[0].offsets, combine("bug"), combine("none"), combine("kinds"))

    @classmethod
    def join(cls, parts: "Sequence[BugScores]") -> "BugScores":
        """Return what is said of several batches, one after the other."""
        sizes = [np.diff(part.offsets) for part in parts]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        names = ("bug", "none", "kinds")
        return cls(
            offsets, *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )


class Engine(Protocol):
    """Runs the forward pass of a trained model, or of an ensemble."""

    @property
    def config(self) -> ModelConfig:
        """What each of the models is made of."""

    @property
    def weights(self) -> tuple[float, ...]:
        """How much each member of the ensemble counts: not negative, 1 in all."""

    @property
    def outputs(self) -> int:
        """How many outputs the head of each model has: one for each class, if there are any."""

    @property
    def fork_safe(self) -> bool:
        """Whether it can run in a process that was forked, so that workers answer by themselves."""

    def read_trees(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Input:
        """Return programs in the form that the models read."""

    def scores(self, inputs: Input) -> Floats:
        """Return the scores of classes, ``[B, classes]``."""

    def embed(self, inputs: Input) -> Floats:
        """Return embeddings of length 1, ``[B, E]``: a dot product says how alike two are."""

    def arrays(self) -> Arrays:
        """Return all weights."""


@runtime_checkable
class BugEngine(Protocol):
    """An engine that can run a read-out for nodes too."""

    def score_bugs(self, inputs: Input) -> BugScores:
        """Return how suspicious nodes are, of one program or more."""


BuildEngine = Callable[[ModelConfig, Sequence[float], Vocabulary, int, Arrays], Engine]
"""Makes an engine of a configuration, the weights of the members, the vocabulary, the number of
outputs and the arrays. It raises ``UsageError`` if there can be no such model, and ``ValueError``
if the arrays are not those of one."""


def split_batches(inputs: Input) -> Iterator[tuple[int, Input]]:
    """Yield programs in batches of bounded size, each with its first's number."""
    ends = np.concatenate([[0], np.cumsum(inputs.sizes)])
    begin = 0
    while begin < len(inputs):
        end = int(np.searchsorted(ends, ends[begin] + _WINDOWS, "right")) - 1
        end = min(max(end, begin + 1), begin + _PROGRAMS, len(inputs))
        whole = (begin, end) == (0, len(inputs))
        yield begin, inputs if whole else inputs.select(np.arange(begin, end))
        begin = end


def counting(weights: Sequence[float], members: Sequence[_Member]) -> list[tuple[float, _Member]]:
    """Return the members of an ensemble that count at all, with their weights."""
    return [(weight, one) for weight, one in zip(weights, members, strict=True) if weight]


def check_array(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise ``ValueError`` if there is no such array, or it is not what is wanted."""
    if array is None:
        raise ValueError(f"{name} is missing")
    if (array.shape, array.dtype) != (shape, dtype):
        raise ValueError(
            f"{name} has the shape {array.shape} of {array.dtype}, not {shape} of {dtype} as the"
            " other files say"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds values that are no numbers")


def set_num_threads(count: int) -> None:
    """Set how many threads compute in this process, by NumPy and PyTorch, loaded already or not."""
    threadpool_limits(count, "blas")
    CHOSEN["threads"] = count
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)
