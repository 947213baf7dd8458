from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.inputs.test_windows import DEPTHS, contents
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import InputDropout
from treecaps.inputs.packing import Packing
from treecaps.inputs.stored import decode, encode
from treecaps.inputs.windows import Windows
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.syntax.parse import parse_file
from treecaps.syntax.tree import Tree


def again(inputs: WindowsAndBags, packing: Packing) -> WindowsAndBags:
    """Pack programs, as they lie on disk, and unpack them."""
    return packing.unpack(decode(encode(packing.pack(inputs), packing), packing))


def assert_equal(left: WindowsAndBags, right: WindowsAndBags) -> None:
    assert contents(left.windows) == contents(right.windows)
    for name in ("offsets", "count", "region"):
        assert np.array_equal(getattr(left.windows, name), getattr(right.windows, name))
    # Each window is there once, however many programs have it.
    assert [len(layer) for layer in left.windows.layers] == [
        len(layer) for layer in right.windows.layers
    ]
    assert (left.bags is None) == (right.bags is None)
    if left.bags and right.bags:
        for name in ("offsets", "feature", "count"):
            assert np.array_equal(getattr(left.bags, name), getattr(right.bags, name))


@given(st.lists(random_trees(), min_size=1, max_size=5), DEPTHS, st.data())
def test_what_is_packed_is_the_same_again(
    trees: list[Tree], depths: tuple[int, ...], data: st.DataObject
) -> None:
    vocabulary = Vocabulary.of(trees)
    chosen = data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=6))
    inputs = WindowsAndBags(Windows.from_trees(trees, vocabulary, depths, regions=True))
    unpacked = again(inputs, Packing("test", depths))
    assert contents(unpacked.windows) == contents(inputs.windows)
    assert_equal(unpacked.select(chosen), inputs.select(chosen))


@pytest.mark.parametrize("depths", [(), (2,), (2, 2, 2), (3, 2)])
def test_real_programs_with_words_and_bags(depths: tuple[int, ...]) -> None:
    trees = [parse_file(path) for path in EXAMPLES]
    vocabulary = Vocabulary.of(trees, tokens=200)
    inputs = WindowsAndBags.from_trees(trees, vocabulary, depths, "leaves")
    unpacked = again(inputs, Packing("test", depths, "leaves"))
    rows = [3, 0, 3, 5]
    assert_equal(unpacked.select(rows), inputs.select(rows))
    dropout = InputDropout(np.array([5, 8, 13, 21]), windows=0.5, tokens=0.3)
    assert_equal(unpacked.select(rows, dropout), inputs.select(rows, dropout))


def test_large_numbers_take_more_room() -> None:
    many = Tree.build(["top", *["leaf"] * 70_000], [-1, *[0] * 70_000])
    few = Tree.build(["top", "leaf"], [-1, 0])
    inputs = WindowsAndBags.from_trees([few, many], Vocabulary.of([few, many]))
    packing = Packing("test", (2,))
    small, _ = encode(packing.pack(inputs), packing)
    assert len(small) < 200
    assert_equal(again(inputs, packing).select([1, 0]), inputs.select([1, 0]))


def test_only_some_columns() -> None:
    trees = [parse_file(path) for path in EXAMPLES[:3]]
    packing = Packing("test", (2,), "leaves")
    inputs: Any = WindowsAndBags.from_trees(trees, Vocabulary.of(trees), (2,), "leaves")
    packed = encode(packing.pack(inputs), packing)
    found = decode(packed, packing, ["feature"])
    assert list(found) == ["feature"]
    assert np.array_equal(found["feature"].values, inputs.bags.feature)
