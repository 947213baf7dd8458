"""Learn vectors for the kinds of nodes, in one of several ways."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch

from treecaps._version import __version__
from treecaps.data.corpus import Corpus
from treecaps.data.sequences import map_trees
from treecaps.data.vocabulary import Counts, Vocabulary
from treecaps.errors import DataError, UsageError
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
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
    counted = map_trees(trees, partial(Counts.of, words=False))
    vocabulary = Vocabulary.from_counts(counts for _, counts in counted)
    values = (
        draw_random(len(vocabulary), size, seed)
        if method == "random"
        else _learn(trees, vocabulary, method, size, seed, progress or (lambda share: None))
    )
    counts = np.zeros(len(vocabulary), np.int64)
    for _, found in map_trees(trees, partial(_count_kinds, vocabulary)):
        counts += found
    return KindVectors(
        vocabulary=vocabulary,
        values=_normalise(values),
        counts=counts,
        method=method,
        data=trees.name if isinstance(trees, Corpus) else "",
        seed=seed,
        version=__version__,
    )


def _count_kinds(vocabulary: Vocabulary, trees: Sequence[Tree]) -> Longs:
    """Return how many nodes are of each kind."""
    every = np.concatenate([vocabulary.encode(tree) for tree in trees])
    return np.bincount(every, minlength=len(vocabulary))


def _learn(
    trees: Sequence[Tree],
    vocabulary: Vocabulary,
    method: str,
    size: int,
    seed: int,
    step: Callable[[float], None],
) -> Floats:
    """Learn vectors from the windows of trees."""
    programs = Windows.from_trees(trees, vocabulary)
    windows, kinds = programs.layers[0], len(vocabulary)
    counts = np.bincount(programs.window, weights=programs.count, minlength=len(windows))
    counts = counts.astype(np.int64)
    if len(windows.member) == len(windows) or kinds <= 2:
        raise DataError(
            "there is nothing to learn vectors from: no node has children"
            if kinds > 2
            else "there is nothing to learn vectors from: all nodes are of one kind"
        )
    if method == "word2vec":
        from treecaps.training.vectors.word2vec import learn_word2vec  # an extra

        return learn_word2vec(windows, counts, kinds, size, seed, step)
    with _one_thread():
        if method == "coding":
            shares = leaf_shares(trees, vocabulary, windows)
            return learn_coding(windows, counts, shares, kinds, size, seed, step)
        return learn_parent(windows, counts, kinds, size, seed, step)


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
