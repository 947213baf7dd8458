"""``Engine``: what runs trained networks, with NumPy arrays on the outside."""

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from treecaps.data.forest import Forest
from treecaps.models.network import Network
from treecaps.nn.batch import Batch

Floats = NDArray[np.float32]

# Bounds of what a network looks at in one go, so that memory does not grow with the data.
_PROGRAMS = 256
_WINDOWS = 1 << 16


class Engine(Protocol):
    """Runs the forward pass of trained networks."""

    def scores(self, forest: Forest) -> Floats:
        """Return the scores of classes, ``[B, classes]``."""

    def embed(self, forest: Forest) -> Floats:
        """Return embeddings of length 1, ``[B, E]``: a dot product says how alike two are."""


class TorchEngine:
    """An engine on PyTorch: the definition of what is right.

    Args:
        members: The networks of an ensemble.
        weights: How much each counts: not negative, 1 in all.
        classes: How many classes there are.
    """

    def __init__(self, members: Sequence[Network], weights: Sequence[float], classes: int) -> None:
        pairs = zip(weights, members, strict=True)
        self._members = [(weight, member) for weight, member in pairs if weight]
        self._classes = classes

    def scores(self, forest: Forest) -> Floats:
        """Return the weighted mean of the members' scores."""
        scores = torch.zeros(len(forest), self._classes)
        with torch.no_grad():
            for begin, batch in batches(forest):
                for weight, member in self._members:
                    scores[begin : begin + len(batch)] += weight * member(batch).scores
        return scores.numpy()

    def embed(self, forest: Forest) -> Floats:
        """Return the members' embeddings side by side, each as long as the root of its weight."""
        with torch.no_grad():
            found = [
                torch.cat(
                    [
                        math.sqrt(weight) * functional.normalize(member.embed(batch))
                        for weight, member in self._members
                    ],
                    1,
                )
                for _, batch in batches(forest)
            ]
        return (torch.cat(found) if found else torch.zeros(0, 0)).numpy()


def batches(forest: Forest) -> Iterator[tuple[int, Batch]]:
    """Yield the programs of a forest in batches of bounded size, each with its first's number."""
    begin = 0
    # Of graphs, all nodes are looked at.
    offsets = forest.graphs.offsets if forest.graphs else forest.offsets
    while begin < len(forest):
        end = int(np.searchsorted(offsets, offsets[begin] + _WINDOWS, "right")) - 1
        end = min(max(end, begin + 1), begin + _PROGRAMS, len(forest))
        whole = begin == 0 and end == len(forest)
        yield begin, Batch.of(forest if whole else forest.select(np.arange(begin, end)))
        begin = end


def set_num_threads(count: int) -> None:
    """Set how many threads compute; the other cores may parse meanwhile."""
    torch.set_num_threads(count)
