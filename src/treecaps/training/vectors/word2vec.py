"""Vectors by which a node's neighbours in the tree can be told."""

import zlib
from collections.abc import Callable, Iterator

import numpy as np

from treecaps.errors import MissingExtraError
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.node_windows import WindowLayer

_SENTENCES = 100_000
_EPOCHS = 10


def contexts(windows: WindowLayer, counts: Longs) -> tuple[Longs, Longs]:
    """Return what stands around nodes: each distinct context and its count.

    The context of a node is its parent and the sibling before it; a first child has its parent
    alone. A context is written as (parent, sibling or -1, node).

    Args:
        windows: W windows of depth 2.
        counts: ``[W]``, how many nodes have each.

    Returns:
        ``[C, 3]`` and ``[C]``.
    """
    sizes = np.diff(windows.offsets)
    parent = np.repeat(windows.member[windows.offsets[:-1]], sizes)
    place = np.arange(len(parent)) - np.repeat(windows.offsets[:-1], sizes)
    before = np.where(place > 1, np.roll(windows.member, 1), -1)
    rows = np.stack([parent, before, windows.member], 1)[place > 0]
    distinct, number = np.unique(rows, axis=0, return_inverse=True)
    totals = np.bincount(number, weights=np.repeat(counts, sizes)[place > 0])
    return distinct, totals.astype(np.int64)


class _Sentences:
    """The contexts as sentences of gensim, in the same order each time they are read."""

    def __init__(
        self, contexts: Longs, order: Longs, kinds: int, step: Callable[[float], None]
    ) -> None:
        self.words = [[str(kind) for kind in row if kind >= 0] for row in contexts.tolist()]
        # A sentence of one word teaches nothing, but makes the word known.
        self.alone = [[str(kind)] for kind in range(kinds)]
        self.order = order.tolist()
        self.step = step
        self.readings = 0

    def __iter__(self) -> Iterator[list[str]]:
        yield from self.alone
        for number in self.order:
            yield self.words[number]
        self.readings += 1
        self.step(self.readings / (_EPOCHS + 1))  # gensim reads once more, for the words


def learn_word2vec(
    windows: WindowLayer,
    counts: Longs,
    kinds: int,
    size: int,
    seed: int,
    step: Callable[[float], None],
) -> Floats:
    r"""Learn vectors by skip-gram with negative sampling (Mikolov et al. 2013), with gensim.

    .. math::
        L = -\sum_{(a, b)} \Bigl( \log \sigma(x_a \cdot y_b)
            + \sum_{j=1}^{5} \log \sigma(-x_a \cdot y_{n_j}) \Bigr)

    over the pairs (a, b) of each of ``contexts``, with five kinds n drawn by chance. A context is
    taken as often as the root of its count says, 100,000 of them in all. One thread and one seed:
    the same trees give the same vectors.

    Returns:
        ``[K, V]``.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise MissingExtraError("word2vec", "vectors") from None
    rng = np.random.default_rng(seed)
    distinct, totals = contexts(windows, counts)
    shares = np.sqrt(totals)
    times = np.ceil(shares * (_SENTENCES / shares.sum())).astype(np.int64)
    order = rng.permutation(np.repeat(np.arange(len(distinct)), times))
    model = Word2Vec(
        _Sentences(distinct, order, kinds, step),
        vector_size=size,
        window=2,
        sg=1,
        negative=5,
        sample=0,  # the root has made frequent kinds rarer
        min_count=1,
        epochs=_EPOCHS,
        workers=1,
        seed=seed,
        # Python's own hash of a text differs from run to run.
        hashfxn=lambda text: zlib.crc32(text.encode()),
    )
    values: Floats = model.wv[[str(kind) for kind in range(kinds)]]
    return values
