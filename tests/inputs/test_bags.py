"""Programs as features with counts."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import treecaps
from tests.conftest import EXAMPLES
from treecaps.inputs.bags import Bags, BagTable, Feature, hash_leaves
from treecaps.inputs.base import InputDropout
from treecaps.syntax.blind import blind
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.names import is_name
from treecaps.syntax.parse import parse_file
from treecaps.syntax.program import Program
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree


def bags_of(trees: list[Tree], feature: Feature) -> Bags:
    return Bags.from_trees(trees, feature)


def words_of(tree: Tree) -> list[str]:
    """Return what the leaves of a tree count by."""
    found = []
    for node, kind in enumerate(tree.kind_names()):
        if text := tree.token(node):
            words = " ".join(split_token(text.encode(), name=True))
            spoken = kind[1:-1] if kind.startswith('"') else text
            found.append(words if is_name(kind) else spoken)
    return found


def test_leaves_are_counted_one_by_one_and_up_to_three_together() -> None:
    trees = [parse_file(path) for path in EXAMPLES[::5]]
    bags = bags_of(trees, "leaves")
    for tree, (begin, end) in zip(trees, pairwise(bags.offsets.tolist()), strict=True):
        counts = dict(
            zip(bags.feature[begin:end].tolist(), bags.count[begin:end].tolist(), strict=True)
        )
        words = words_of(tree)
        expected: Counter[tuple[str, ...]] = Counter()
        named: dict[int, tuple[str, ...]] = {}
        for length, hashes in enumerate(hash_leaves(JoinedTrees([tree]))[1], 1):
            runs = [tuple(words[begin : begin + length]) for begin in range(len(hashes))]
            assert len(runs) == len(words) - length + 1
            named.update(zip(hashes.tolist(), runs, strict=True))
            expected.update(runs)
        assert {named[feature]: count for feature, count in counts.items()} == expected


@pytest.mark.parametrize("feature", ["tokens", "leaves", "windows"])
def test_features_of_a_program_are_sorted_and_those_of_an_empty_one_none(feature: Feature) -> None:
    codes = ["", "x = x + x", "", "", "x = x + x; y", ""]
    trees = [treecaps.parse_code(code, "python") for code in codes]
    bags = bags_of(trees, feature)
    assert len(bags) == len(codes)
    table = BagTable(feature)
    for tree, (begin, end) in zip(trees, pairwise(bags.offsets.tolist()), strict=True):
        (every,) = table._features(JoinedTrees([tree]))
        expected, counts = np.unique(every, return_counts=True)
        np.testing.assert_array_equal(bags.feature[begin:end], expected)
        np.testing.assert_array_equal(bags.count[begin:end], counts)
    assert bags_of([], feature).sizes.tolist() == []


def test_which_leaf_comes_first_matters() -> None:
    codes = ("a--;", "--a;")
    one, other = (hash_leaves(JoinedTrees([treecaps.parse_code(code, "c")]))[1] for code in codes)
    assert all(mine[0] != yours[0] for mine, yours in zip(one[1:], other[1:], strict=True))
    assert [
        run.tolist() for run in hash_leaves(JoinedTrees([treecaps.parse_code("", "c")]))[1]
    ] == [[], [], []]


def test_renaming_leaves_the_words_of_what_says_nothing() -> None:
    code = "def f1(x1):\n    return x1 + f1(x1)\n"
    renamed = "def g7(y9):\n    return y9 + g7(y9)\n"
    blinded = blind(Program(code, "python")).text
    one, *others = (
        hash_leaves(JoinedTrees([treecaps.parse_code(text, "python")]))[1]
        for text in (code, renamed, blinded)
    )
    for other in others:
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))


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
    dropout = InputDropout(np.array([2, 3, 5]), windows=0.4)
    stays = dropout.keep_features(some.sizes)
    assert stays is not None
    fewer = bags.select(programs, dropout)
    np.testing.assert_array_equal(fewer.feature, some.feature[stays])
    np.testing.assert_array_equal(fewer.count, some.count[stays])
    sizes = [stays[begin:end].sum() for begin, end in pairwise(some.offsets.tolist())]
    np.testing.assert_array_equal(np.diff(fewer.offsets), sizes)
    keep = np.array([True, False, True])
    for one, all_of_it in (
        (bags.select(programs, None, keep), some),
        (bags.select(programs, dropout, keep), fewer),
    ):
        assert len(one.offsets) == 4
        assert one.offsets[1] == one.offsets[2] == all_of_it.offsets[1]
        np.testing.assert_array_equal(
            one.feature, np.delete(all_of_it.feature, slice(*all_of_it.offsets[1:3].tolist()))
        )
