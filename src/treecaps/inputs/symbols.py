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


class SymbolTable:
    """Numbers symbols as trees show them; a kind without sub-tokens has its own number."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._kinds: list[int] = []
        self._tokens: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._seen: dict[tuple[int, bool, bytes], int] = {}

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
            keys = list(zip(kind[nodes].tolist(), names, texts, strict=True))
            for key in keys:
                if key not in self._seen:
                    self._seen[key] = self._number(*key)
            symbol[nodes] = list(map(self._seen.__getitem__, keys))
        return symbol

    def symbols(self) -> Symbols:
        """Return all symbols so far, by number."""
        plain = len(self.vocabulary)
        sizes = np.array([0] * (plain + 1) + [len(tokens) for tokens in self._tokens], np.int64)
        return Symbols(
            np.concatenate([np.arange(plain), np.array(self._kinds, np.int64)]),
            np.cumsum(sizes),
            np.array([token for tokens in self._tokens for token in tokens], np.int64),
        )

    def _number(self, kind: int, name: bool, text: bytes) -> int:
        tokens = self.vocabulary.encode_token(text, name=name)
        fresh = len(self.vocabulary) + len(self._kinds)
        number = self._numbers.setdefault((kind, tokens), fresh)
        if number == fresh:
            self._kinds.append(kind)
            self._tokens.append(tokens)
        return number
