"""Learn vectors for the kinds of nodes, in one of several ways."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from treecaps._version import __version__
from treecaps.data.corpus import Corpus
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, UsageError
from treecaps.inputs.base import Floats
from treecaps.inputs.windows import Windows
from treecaps.syntax.tree import Tree
from treecaps.training.vectors import METHODS
from treecaps.training.vectors.coding import leaf_shares, learn_coding
from treecaps.training.vectors.kind_vectors import KindVectors
from treecaps.training.vectors.parent import learn_parent
from treecaps.training.vectors.random import draw_random

_MAX_SIZE = 4096


def learn_vectors(
    trees: Sequence[Tree],
    method: str = "parent",
    size: int = 30,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> KindVectors:
    """Learn a vector for each kind of node that occurs in some trees, without labels.

    Args:
        trees: A corpus, or any trees.
        method: ``parent``, ``coding``, ``word2vec`` (needs ``treecaps[vectors]``) or ``random``.
        size: V, how many numbers a vector has.
        seed: The same trees and seed give the same vectors.
        progress: Called with the share done, from 0 to 1, while learning.
    """
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    if not 1 <= size <= _MAX_SIZE:
        raise UsageError(f"vectors have from 1 to {_MAX_SIZE:,} numbers, not {size:,}")
    if not 0 <= seed < 2**32:
        raise UsageError(f"a seed lies between 0 and {2**32 - 1:,}; {seed:,} does not")
    if not len(trees):
        raise DataError("there are no trees to learn vectors from")
    step = progress or (lambda share: None)
    vocabulary = Vocabulary.of(trees)
    programs = Windows.from_trees(trees, vocabulary)
    windows, kinds = programs.layers[0], len(vocabulary)
    counts = np.bincount(programs.window, weights=programs.count, minlength=len(windows))
    counts = counts.astype(np.int64)
    if method != "random" and (len(windows.member) == len(windows) or kinds <= 2):
        raise DataError(
            "there is nothing to learn vectors from: no node has children"
            if kinds > 2
            else "there is nothing to learn vectors from: all nodes are of one kind"
        )
    if method == "random":
        values = draw_random(kinds, size, seed)
    elif method == "word2vec":
        from treecaps.training.vectors.word2vec import learn_word2vec  # an extra

        values = learn_word2vec(windows, counts, kinds, size, seed, step)
    elif method == "coding":
        shares = leaf_shares(trees, vocabulary, windows)
        with _one_thread():
            values = learn_coding(windows, counts, shares, kinds, size, seed, step)
    else:
        with _one_thread():
            values = learn_parent(windows, counts, kinds, size, seed, step)
    nodes = np.bincount(windows.member[windows.offsets[:-1]], weights=counts, minlength=kinds)
    return KindVectors(
        vocabulary=vocabulary,
        values=_normalise(values),
        counts=nodes.astype(np.int64),
        method=method,
        data=trees.name if isinstance(trees, Corpus) else "",
        seed=seed,
        version=__version__,
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch work in one thread for a while.

    The steps are small: on a busy computer, threads that wait for each other make them ten times
    slower. And sums do not depend on the number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _normalise(values: Floats) -> Floats:
    """Bring the vectors of all methods to one scale, and give the unknown kind the mean vector.

    The mean square of the known kinds' numbers becomes 1, which is what networks expect. One
    factor for all: directions and relations of lengths stay.
    """
    known = values[1:]
    known = known / np.sqrt(np.square(known).mean())
    normal: Floats = np.concatenate([known.mean(0, keepdims=True), known]).astype(np.float32)
    return normal
