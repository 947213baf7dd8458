import logging
from typing import Any

import numpy as np
import pytest

from tests.training.examples import LABELS, example_labels, example_trees
from treecaps.data.sequences import Joined
from treecaps.errors import DataError, UsageError
from treecaps.inputs.base import Input
from treecaps.inputs.windows import Windows
from treecaps.syntax.tree import Tree
from treecaps.tasks.examples import UNKNOWN
from treecaps.training.prepare import Data, Labels, prepare

TREE = Tree.build(["a", "b", "c"], [-1, 0, 0])
OTHER = Tree.build(["a", "c", "d"], [-1, 0, 0])


def some(
    labels: Labels,
    val: tuple[list[Tree], Labels] | None = None,
    share: float = 0.1,
    seed: int = 0,
) -> Data:
    return prepare(
        [TREE] * len(labels), labels, val, read_trees=Windows.from_trees, val_share=share, seed=seed
    )


def test_a_share_of_each_class_is_set_aside() -> None:
    data = some(["a"] * 30 + ["b"] * 10 + ["c"] * 3 + ["d"])
    assert np.bincount(data.val.label).tolist() == [3, 1, 1]
    assert np.bincount(data.train.label).tolist() == [27, 9, 2, 1]
    assert data.labels == ("a", "b", "c", "d")
    assert data.facts["training"]["programs"] == 39
    assert data.facts["validation"]["programs"] == 5


def test_what_is_set_aside_depends_on_the_seed_alone() -> None:
    trees, labels = example_trees(), example_labels()
    prints = [
        prepare(
            trees, labels, None, read_trees=Windows.from_trees, val_share=0.2, seed=seed
        ).fingerprint()
        for seed in (1, 1, 2)
    ]
    assert prints[0] == prints[1] != prints[2]


def nodes_of(inputs: Input) -> int:
    assert isinstance(inputs, Windows)
    return int(inputs.node_counts.sum())


def test_a_tree_is_in_one_part_only() -> None:
    trees, labels = example_trees(), example_labels()
    data = prepare(trees, labels, None, read_trees=Windows.from_trees, val_share=0.25, seed=0)
    assert (len(data.train), len(data.val), len(data.trees)) == (40, 12, 40)
    whole = prepare(trees, labels, None, read_trees=Windows.from_trees, val_share=0, seed=0)
    assert nodes_of(data.train.inputs) + nodes_of(data.val.inputs) == nodes_of(whole.train.inputs)


def test_everything_changes_the_fingerprint() -> None:
    first = some(["a", "a", "b", "b"])
    assert first.fingerprint() == some(["a", "a", "b", "b"]).fingerprint()
    assert first.fingerprint() != some(["a", "b", "b", "b"]).fingerprint()
    assert first.fingerprint() != some(["a", "a", "x", "x"]).fingerprint()
    assert first.fingerprint() != some(["a", "a", "b", "b"], share=0).fingerprint()
    val = some(["a", "b"], ([TREE], ["a"]))
    assert val.fingerprint() != some(["a", "b"], ([OTHER], ["a"])).fingerprint()


def test_programs_without_label_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        data = some(["a", None, "b", None, "a"])
    assert "left out 2 of 5 training programs: they have no label" in caplog.text
    assert data.facts["training"]["unlabelled"] == 2
    assert len(data.train) + len(data.val) == 3


def test_single_programs_stay_in_training(caplog: pytest.LogCaptureFixture) -> None:
    data = some(["a", "b", "c"])
    assert (len(data.train), len(data.val)) == (3, 0)
    assert "nothing to validate with" in caplog.text


def test_kinds_of_validation_data_alone_are_unknown() -> None:
    data = some(["a", "b"], ([OTHER], ["a"]))
    assert "d" not in data.vocabulary.kinds
    assert isinstance(data.val.inputs, Windows)
    assert 0 in data.val.inputs.layers[0].member


def test_labels_of_validation_data_alone_are_named(caplog: pytest.LogCaptureFixture) -> None:
    data = some(["a", "b"], ([TREE] * 4, ["a", "x", "y", "x"]))
    assert data.val.label.tolist() == [0, UNKNOWN, UNKNOWN, UNKNOWN]
    assert "3 validation programs count as wrong: the training data have no class x, y" in (
        caplog.text
    )


def test_data_that_cannot_be_learned_from() -> None:
    with pytest.raises(UsageError, match="at least two classes; there is only 'a'"):
        some(["a", "a"])
    with pytest.raises(DataError, match="no training programs"):
        some([])
    with pytest.raises(DataError, match="none of the 2 training programs has a label"):
        some([None, None])
    with pytest.raises(DataError, match="no validation programs"):
        some(["a", "b"], ([], []))
    with pytest.raises(DataError, match="none of the 1 validation programs has a label"):
        some(["a", "b"], ([TREE], [None]))
    numbers: Any = [1, 2]
    with pytest.raises(UsageError, match="a label is text or None, not int: 1"):
        some(numbers)
    with pytest.raises(UsageError, match="a label is text or None, not int: 2"):
        some(["a", "b"], ([TREE], numbers[1:]))
    with pytest.raises(UsageError, match="training data are a list of trees"):
        some("ab")
    with pytest.raises(UsageError, match="2 training programs cannot have 1 labels"):
        prepare([TREE, TREE], ["a"], None, read_trees=Windows.from_trees, val_share=0, seed=0)


def test_no_name_is_a_name_and_none_is_not() -> None:
    data = some(["", "b", None, ""], share=0)
    assert data.labels == ("", "b")
    assert data.train.label.tolist() == [0, 1, 0]


def test_examples_have_four_classes() -> None:
    data = prepare(
        example_trees(),
        example_labels(),
        None,
        read_trees=Windows.from_trees,
        val_share=0.1,
        seed=0,
    )
    assert list(data.labels) == LABELS


def test_joined_sequences_are_one() -> None:
    parts = [[TREE, OTHER], [], [OTHER]]
    joined = Joined(parts)
    assert list(joined) == joined[:] == [TREE, OTHER, OTHER]
    assert (len(joined), joined[-1], joined[-3]) == (3, OTHER, TREE)
    with pytest.raises(IndexError):
        joined[3]
