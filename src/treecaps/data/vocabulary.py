"""``Vocabulary``: numbers for what a model knows of nodes."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treecaps.errors import DataError
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.subtokens import UNKNOWN, split_token
from treecaps.syntax.tree import Ints, Tree

_LEAST_PROGRAMS = 2
"""A sub-token of one program alone says nothing of others."""
_MOST_SPLIT = 1 << 16
"""How many leaves' texts are remembered with their sub-tokens."""


class Counts(NamedTuple):
    """The kinds that occur in some trees, and in how many of them each sub-token does."""

    kinds: set[str]
    programs: Counter[str]

    @classmethod
    def of(cls, trees: Iterable[Tree], *, words: bool) -> "Counts":
        """Count kinds and, if asked for, sub-tokens."""
        used: dict[int, tuple[tuple[str, ...], set[int]]] = {}
        programs: Counter[str] = Counter()
        for tree in trees:
            _, numbers = used.setdefault(id(tree.kinds), (tree.kinds, set()))
            numbers.update(np.unique(tree.kind).tolist())
            if words:
                said = JoinedTrees([tree]).leaf_texts
                programs.update(set(chain.from_iterable(map(_split, said.names, said.texts))))
        return cls({names[number] for names, found in used.values() for number in found}, programs)


@lru_cache(_MOST_SPLIT)
def _split(name: bool, text: bytes) -> tuple[str, ...]:
    return split_token(text, name=name)


class Vocabulary:
    """What a model knows of nodes: their kinds and, if it has any, the sub-tokens of leaves.

    Both are numbered from 1; 0 stands for all others. A kind goes by its name alone, so what two
    grammars call the same is the same.

    Args:
        kinds: The kinds of nodes.
        tokens: The sub-tokens of leaves; none for a model that sees kinds alone.
    """

    def __init__(self, kinds: Iterable[str], tokens: Iterable[str] = ()) -> None:
        self.kinds = (UNKNOWN, *sorted(set(kinds) - {UNKNOWN}))
        words = sorted(set(tokens) - {UNKNOWN})
        self.tokens = (UNKNOWN, *words) if words else ()
        self._numbers = {kind: number for number, kind in enumerate(self.kinds)}
        self._token_numbers = {token: number for number, token in enumerate(self.tokens)}
        self._tables: dict[int, tuple[tuple[str, ...], Ints]] = {}
        self._split: dict[tuple[bool, bytes], tuple[int, ...]] = {}

    @classmethod
    def of(cls, trees: Iterable[Tree], tokens: int = 0) -> "Vocabulary":
        """Return the vocabulary of all kinds that occur in some trees.

        Args:
            trees: The trees.
            tokens: How many sub-tokens to know, those of the most programs first.
        """
        return cls.from_counts([Counts.of(trees, words=tokens > 0)], tokens)

    @classmethod
    def from_counts(cls, counts: "Iterable[Counts]", tokens: int = 0) -> "Vocabulary":
        """Return the vocabulary of trees of which some at a time were counted."""
        kinds: set[str] = set()
        programs: Counter[str] = Counter()
        for found in counts:
            kinds |= found.kinds
            programs.update(found.programs)
        # Equal counts go by name, so that the same programs in another order give the same.
        known = sorted(
            (-count, token) for token, count in programs.items() if count >= _LEAST_PROGRAMS
        )[:tokens]
        return cls(kinds, (token for _, token in known))

    def __len__(self) -> int:
        return len(self.kinds)

    def __or__(self, other: "Vocabulary") -> "Vocabulary":
        """Return the vocabulary of all that either knows."""
        return Vocabulary({*self.kinds, *other.kinds}, {*self.tokens, *other.tokens})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.kinds, self.tokens) == (
            other.kinds,
            other.tokens,
        )

    def __hash__(self) -> int:
        return hash((self.kinds, self.tokens))

    def number(self, kind: str) -> int:
        """Return the number of a kind, 0 if it is unknown."""
        return self._numbers.get(kind, 0)

    def number_token(self, token: str) -> int:
        """Return the number of a sub-token, 0 if it is unknown."""
        return self._token_numbers.get(token, 0)

    def encode(self, tree: Tree) -> Ints:
        """Return the number of each node's kind."""
        return self.number_kinds(tree.kinds)[tree.kind]

    def number_kinds(self, kinds: tuple[str, ...]) -> Ints:
        """Return the number of each kind of a table."""
        # Trees of one grammar share one table of kinds: look its names up once. The table is
        # kept beside its numbers, so that no other can come to have its identity.
        names, numbers = self._tables.get(id(kinds), (None, None))
        if names is not kinds or numbers is None:
            if len(self._tables) > 100:
                self._tables.clear()
            numbers = np.array([self.number(kind) for kind in kinds], np.int32)
            self._tables[id(kinds)] = (kinds, numbers)
        return numbers

    def encode_token(self, token: bytes, *, name: bool) -> tuple[int, ...]:
        """Return the numbers of the sub-tokens of a leaf's text."""
        numbers = self._split.get((name, token))
        if numbers is None:
            if len(self._split) >= _MOST_SPLIT:
                self._split.clear()
            numbers = tuple(map(self.number_token, split_token(token, name=name)))
            self._split[name, token] = numbers
        return numbers

    def to_json(self) -> list[str] | dict[str, list[str]]:
        """Return plain values for JSON."""
        if not self.tokens:
            return list(self.kinds)
        return {"kinds": list(self.kinds), "tokens": list(self.tokens)}

    @classmethod
    def from_json(cls, value: object) -> "Vocabulary":
        """Make a vocabulary of what ``to_json`` returned, and check it."""
        lists: dict[str, Any] = value if isinstance(value, dict) else {"kinds": value, "tokens": []}
        if set(lists) != {"kinds", "tokens"} or not all(
            isinstance(names, list) and all(isinstance(name, str) for name in names)
            for names in lists.values()
        ):
            raise DataError("not a vocabulary: it must be a list of names")
        vocabulary = cls(lists["kinds"], lists["tokens"])
        if vocabulary.to_json() != value:
            raise DataError("not a vocabulary: its names are out of order")
        return vocabulary
