"""``Symbols``: what nodes show, their kinds and the sub-tokens of leaves."""

from dataclasses import dataclass
from typing import Generic

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Array, Convert, select_runs
from treecaps.inputs.distinct import Longs
from treecaps.syntax.subtokens import LeafTexts, leaf_texts
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class SymbolTensors(Generic[Array]):
    """``Symbols`` as a network takes them."""

    kind: Array
    offsets: Array
    token: Array


@dataclass(frozen=True)
class Symbols:
    """S distinct things that nodes show, with T sub-tokens in all.

    Args:
        kind: ``[S]``, kinds of the vocabulary.
        offsets: ``[S + 1]``, where the sub-tokens of each begin.
        token: ``[T]``, sub-tokens of the vocabulary.
        hash: ``[S]``, where the same may be there several times: equal for those.
    """

    kind: Longs
    offsets: Longs
    token: Longs
    hash: Longs | None = None

    def __len__(self) -> int:
        return len(self.kind)

    def select(self, chosen: Longs) -> "Symbols":
        """Return some of the symbols, in the order given."""
        offsets, rows = select_runs(self.offsets, chosen)
        hashes = None if self.hash is None else self.hash[chosen]
        return Symbols(self.kind[chosen], offsets, self.token[rows], hashes)

    def to_tensors(self, convert: Convert[Array]) -> SymbolTensors[Array]:
        """Convert the arrays."""
        return SymbolTensors(convert(self.kind), convert(self.offsets), convert(self.token))


class _Leaves(dict[tuple[int, bool, bytes], int]):
    """Numbers of leaves by their kind, whether it is a name, and text; new ones get the next.

    Leaves of one kind whose texts have the same sub-tokens have one number.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}

    def __missing__(self, key: tuple[int, bool, bytes]) -> int:
        kind, name, text = key
        tokens = self._vocabulary.encode_token(text, name=name)
        fresh = len(self._vocabulary) + len(self._numbers)
        number = self[key] = self._numbers.setdefault((kind, tokens), fresh)
        return number

    def shown(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return kind and sub-tokens by number, less the number of kinds."""
        return list(self._numbers)


class SymbolTable:
    """Numbers symbols as trees show them; a kind without sub-tokens has its own number."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._leaves = _Leaves(vocabulary)

    def encode(self, tree: Tree, leaves: LeafTexts | None = None) -> Longs:
        """Return the number of each node's symbol.

        Args:
            tree: The tree.
            leaves: What ``leaf_texts`` found in it, if it was asked already.
        """
        kind = self.vocabulary.encode(tree)
        symbol = kind.astype(np.int64)
        if self.vocabulary.tokens:
            nodes, names, texts = leaves or leaf_texts(tree)
            keys = zip(kind[nodes].tolist(), names, texts, strict=True)
            symbol[nodes] = list(map(self._leaves.__getitem__, keys))
        return symbol

    def symbols(self) -> Symbols:
        """Return all symbols so far, by number."""
        plain, shown = len(self.vocabulary), self._leaves.shown()
        sizes = np.array([0] * (plain + 1) + [len(tokens) for _, tokens in shown], np.int64)
        return Symbols(
            np.concatenate([np.arange(plain), np.array([kind for kind, _ in shown], np.int64)]),
            np.cumsum(sizes),
            np.array([token for _, tokens in shown for token in tokens], np.int64),
        )
