"""Programs as features with counts."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import treecaps
from tests.conftest import EXAMPLES
from treecaps.data.bags import Bags, BagTable, Feature, find_leaves, leaf_words
from treecaps.syntax.blind import blind
from treecaps.syntax.parse import parse_file
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree


def bags_of(trees: list[Tree], feature: Feature) -> Bags:
    table = BagTable(feature)
    for tree in trees:
        table.add(tree, np.zeros(len(tree), np.int64))
    return table.bags()


def test_leaves_are_counted_one_by_one_and_in_pairs() -> None:
    trees = [parse_file(path) for path in EXAMPLES[::5]]
    bags = bags_of(trees, "leaves")
    for tree, (begin, end) in zip(trees, pairwise(bags.offsets.tolist()), strict=True):
        counts = dict(
            zip(bags.feature[begin:end].tolist(), bags.count[begin:end].tolist(), strict=True)
        )
        assert counts == Counter(feature for feature, _ in find_leaves(tree))
        _, words = leaf_words(tree)
        assert len(counts) == len({*words} | {*pairwise(words)})
        assert sum(counts.values()) == 2 * len(words) - 1


def test_words_are_texts_and_names_their_words() -> None:
    tree = treecaps.parse_code("int maxValue = v17 + 0x1F; // what\n", "c")
    leaves, words = leaf_words(tree)
    assert words == ["int", "max value", "=", "<unknown>", "+", "0x1F", ";"]
    assert [tree.token(leaf) for leaf in leaves.tolist()][1] == "maxValue"


def test_renaming_leaves_the_words_of_what_says_nothing() -> None:
    code = "def f1(x1):\n    return x1 + f1(x1)\n"
    renamed = "def g7(y9):\n    return y9 + g7(y9)\n"
    one, other = (leaf_words(treecaps.parse_code(text, "python"))[1] for text in (code, renamed))
    assert one == other
    blinded = treecaps.parse_code(blind(Program.of(code, "python")).text, "python")
    assert leaf_words(blinded)[1] == one


@pytest.mark.parametrize("feature", ["tokens", "leaves", "windows"])
def test_programs_are_selected_and_features_left_out(feature: Feature) -> None:
    trees = [parse_file(path) for path in EXAMPLES[:6]]
    bags = bags_of(trees, feature)
    programs = np.array([4, 0, 4])
    some = bags.select(programs)
    for place, program in enumerate(programs.tolist()):
        ours, theirs = (
            slice(*one.offsets[[at, at + 1]].tolist())
            for one, at in ((some, place), (bags, program))
        )
        np.testing.assert_array_equal(some.feature[ours], bags.feature[theirs])
        np.testing.assert_array_equal(some.count[ours], bags.count[theirs])
    drawn: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []

    def leave(features: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        drawn.append(np.random.default_rng(0).random(features) < 0.4)
        return drawn[-1]

    fewer = bags.select(programs, leave)
    (left_out,) = drawn
    np.testing.assert_array_equal(fewer.feature, some.feature[~left_out])
    np.testing.assert_array_equal(fewer.count, some.count[~left_out])
    sizes = [(~left_out)[begin:end].sum() for begin, end in pairwise(some.offsets.tolist())]
    np.testing.assert_array_equal(np.diff(fewer.offsets), sizes)
