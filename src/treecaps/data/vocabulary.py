"""``Vocabulary``: numbers for the node kinds that a model knows."""

from collections.abc import Iterable

import numpy as np

from treecaps.errors import DataError
from treecaps.syntax.tree import Ints, Tree

UNKNOWN = "<unknown>"


class Vocabulary:
    """The kinds of nodes a model knows, numbered from 1; 0 stands for all others.

    A kind goes by its name alone, so what two grammars call the same is the same.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self.kinds = (UNKNOWN, *sorted(set(kinds) - {UNKNOWN}))
        self._numbers = {kind: number for number, kind in enumerate(self.kinds)}
        self._tables: dict[int, tuple[tuple[str, ...], Ints]] = {}

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> "Vocabulary":
        """Return the vocabulary of all kinds that occur in some trees."""
        used: dict[int, tuple[tuple[str, ...], set[int]]] = {}
        for tree in trees:
            _, numbers = used.setdefault(id(tree.kinds), (tree.kinds, set()))
            numbers.update(np.unique(tree.kind).tolist())
        return cls(names[number] for names, numbers in used.values() for number in numbers)

    def __len__(self) -> int:
        return len(self.kinds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.kinds == other.kinds

    def __hash__(self) -> int:
        return hash(self.kinds)

    def number(self, kind: str) -> int:
        """Return the number of a kind, 0 if it is unknown."""
        return self._numbers.get(kind, 0)

    def encode(self, tree: Tree) -> Ints:
        """Return the number of each node's kind."""
        # Trees of one grammar share one table of kinds: look its names up once. The table is
        # kept beside its numbers, so that no other can come to have its identity.
        names, numbers = self._tables.get(id(tree.kinds), (None, None))
        if names is not tree.kinds or numbers is None:
            if len(self._tables) > 100:
                self._tables.clear()
            numbers = np.array([self.number(kind) for kind in tree.kinds], np.int32)
            self._tables[id(tree.kinds)] = (tree.kinds, numbers)
        return numbers[tree.kind]

    def to_list(self) -> list[str]:
        """Return the kinds as plain values for JSON."""
        return list(self.kinds)

    @classmethod
    def from_list(cls, kinds: object) -> "Vocabulary":
        """Make a vocabulary of what ``to_list`` returned, and check it."""
        if not (isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)):
            raise DataError("not a vocabulary: it must be a list of names")
        vocabulary = cls(kinds)
        if vocabulary.to_list() != kinds:
            raise DataError("not a vocabulary: its names are out of order")
        return vocabulary
