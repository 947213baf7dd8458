"""Background: programs of none of the classes, so that a classifier learns what it does not know.

People ask about whole files, about functions and about a few lines, so background is all of these.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treecaps.data.sequences import Joined, Longs, Selection, Subtrees, TreeTransform, map_trees
from treecaps.errors import DataError
from treecaps.hashing import hash_64
from treecaps.syntax.functions import find_functions
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.training.ordinary import ordinary_code

_LINES = (3, 12)
"""How many lines a fragment has, at least and at most."""
_MISTAKEN = 0.2
"""The share of fragments that are taken for another language."""


@dataclass(frozen=True)
class Background:
    """Programs of none of the classes, and pieces of them: functions and fragments."""

    files: Selection
    pieces: Sequence[Tree]

    def __len__(self) -> int:
        return len(self.files) + len(self.pieces)

    def view(self, transform: TreeTransform | None = None) -> Joined:
        """Return all of it; files in another view, if one is given. Pieces are always as is."""
        return Joined([transform(self.files) if transform else self.files, self.pieces])

    def in_views(self, views: Mapping[str, TreeTransform]) -> list[Joined]:
        """Return all of it as it is, then in each of the other views."""
        return [self.view(), *map(self.view, views.values())]


def make_background(
    trees: Sequence[Tree], val: Sequence[Tree] | None, share: float, seed: int, cut: TreeTransform
) -> tuple[Background, Background]:
    """Return background for training and for validation.

    Args:
        trees: Programs of none of the classes.
        val: Others for validation.
        share: Without others, the share that is set aside for validation.
        seed: Random seed when it is set aside.
        cut: Returns a fragment of each program: what ``cut_fragment`` makes of it, parsed.
    """
    for some in (trees, val):
        if some is not None and not len(some):
            raise DataError("there are no background programs")
    rows = np.arange(len(trees))
    if val is not None:
        parts = Selection(trees, rows), Selection(val, np.arange(len(val)))
    else:
        count = min(max(round(share * len(rows)), 1), len(rows) - 1) if share else 0
        chosen = np.random.default_rng([seed, 0]).permutation(rows)[:count]
        kept = np.isin(rows, chosen, invert=True)
        parts = Selection(trees, rows[kept]), Selection(trees, rows[~kept])
    train, others = (Background(one, Joined([functions(one), cut(one)])) for one in parts)
    return train, others


def ordinary_background(languages: Collection[str]) -> tuple[Background, Background]:
    """Return ordinary code that comes with the package, for training and for validation.

    Half of it is in some languages, as far as there is enough, and half is blind.
    """
    nothing = Selection([], np.zeros(0, np.int64))
    code = ordinary_code()
    train, val = (
        Background(
            nothing,
            [
                code.tree(row, blind=place % 2 == 1)
                for place, row in enumerate(code.choose(languages, val=val).tolist())
            ],
        )
        for val in (False, True)
    )
    return train, val


def functions(trees: Selection) -> Subtrees:
    """Return one function of each program that has any; the same program has the same."""
    found = [np.zeros((0, 2), np.int64), *(places for _, places in map_trees(trees, _choose))]
    node, size = np.concatenate(found).T
    rows = np.flatnonzero(node >= 0)
    return Subtrees(trees, rows, node[rows], size[rows])


def _choose(trees: list[Tree]) -> Longs:
    """Return for each tree the root of one of its functions, or -1, and the size of that."""
    chosen = np.full((len(trees), 2), -1, np.int64)
    for row, tree in enumerate(trees):
        if found := find_functions(tree):
            function = found[hash_64(tree.text) % len(found)]
            chosen[row] = function.node, len(function.tree)
    return chosen


def cut_fragment(program: Program) -> Program:
    """Return a few lines of a program that follow each other, some as if of another language.

    The same program has the same fragment.
    """
    lines = program.text.splitlines(keepends=True)
    rng = np.random.default_rng(hash_64(program.text))
    count = int(rng.integers(_LINES[0], _LINES[1] + 1))
    begin = int(rng.integers(max(1, len(lines) - count + 1)))
    language = program.language
    if rng.random() < _MISTAKEN:
        language = str(rng.choice(sorted(LANGUAGES)))
    return program.replace(text=b"".join(lines[begin : begin + count]), language=language)
