"""``Symbols``: what nodes show, their kinds and the sub-tokens of leaves."""

from dataclasses import dataclass
from typing import Generic

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Array, Convert, select_runs
from treecaps.inputs.distinct import Longs, number_distinct
from treecaps.syntax.joined import JoinedTrees


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
        self._tokens: dict[tuple[int, ...], int] = {}
        """Numbers of the sub-tokens of a leaf."""
        self._leaves: dict[tuple[int, tuple[int, ...]], int] = {}
        """Numbers of leaves by their kind and sub-tokens."""

    def encode(self, trees: JoinedTrees) -> Longs:
        """Return the number of each node's symbol."""
        symbol: Longs = trees.look_up(self.vocabulary.number_kinds).astype(np.int64)
        if not self.vocabulary.tokens:
            return symbol
        nodes, text, names, texts = trees.leaf_texts
        split = [
            self.vocabulary.encode_token(said, name=name)
            for name, said in zip(names, texts, strict=True)
        ]
        tokens = self._tokens
        number = np.array([tokens.setdefault(one, len(tokens)) for one in split], np.int64)
        # Each distinct kind and text is looked up once.
        every, first = number_distinct(symbol[nodes] * len(tokens) + number[text])
        plain, leaves = len(self.vocabulary), self._leaves
        keys = zip(symbol[nodes[first]].tolist(), text[first].tolist(), strict=True)
        found = [leaves.setdefault((kind, split[said]), plain + len(leaves)) for kind, said in keys]
        symbol[nodes] = np.array(found, np.int64)[every]
        return symbol

    def symbols(self) -> Symbols:
        """Return all symbols so far, by number."""
        plain, shown = len(self.vocabulary), list(self._leaves)
        sizes = np.array([0] * (plain + 1) + [len(tokens) for _, tokens in shown], np.int64)
        return Symbols(
            np.concatenate([np.arange(plain), np.array([kind for kind, _ in shown], np.int64)]),
            np.cumsum(sizes),
            np.array([token for _, tokens in shown for token in tokens], np.int64),
        )
