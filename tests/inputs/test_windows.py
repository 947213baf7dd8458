from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treecaps.syntax.joined as module
from tests.conftest import EXAMPLES
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs import node_windows
from treecaps.inputs.base import InputDropout
from treecaps.inputs.distinct import mix
from treecaps.inputs.windows import Windows
from treecaps.syntax.parse import parse_file
from treecaps.syntax.tree import Tree

DEPTHS = st.sampled_from([(2,), (3,), (2, 2), (3, 2), (2, 2, 2)])


def cut(tree: Tree, node: int, edges: int) -> Any:
    """A subtree down to some depth, as nested tuples."""
    if edges == 0:
        return (tree.kind_names()[node],)
    below = (cut(tree, child, edges - 1) for child in tree.children(node).tolist())
    return (tree.kind_names()[node], *below)


def unfold(inputs: Windows, vocabulary: Vocabulary, layer: int, window: int, depth: int) -> Any:
    """What a window of a inputs of depth-2 windows stands for, as nested tuples."""
    if layer < 0:
        return (vocabulary.kinds[window],)
    windows = inputs.layers[layer]
    members = windows.member[windows.offsets[window] : windows.offsets[window + 1]].tolist()
    own = unfold(inputs, vocabulary, layer - 1, members[0], depth)
    return (own[0], *(unfold(inputs, vocabulary, layer - 1, m, depth) for m in members[1:]))


@given(st.lists(random_trees(), min_size=1, max_size=4), st.integers(1, 3))
def test_counts_every_node_under_the_subtree_it_has(trees: list[Tree], layers: int) -> None:
    vocabulary = Vocabulary.of(trees)
    inputs = Windows.from_trees(trees, vocabulary, (2,) * layers)
    for number, tree in enumerate(trees):
        expected = Counter(cut(tree, node, layers) for node in range(len(tree)))
        rows = range(inputs.offsets[number], inputs.offsets[number + 1])
        found = {
            unfold(inputs, vocabulary, layers - 1, int(inputs.window[row]), 2): inputs.count[row]
            for row in rows
        }
        assert found == expected
        assert len(rows) == len(expected)


@given(st.lists(random_trees(), min_size=1, max_size=6), DEPTHS)
def test_keeps_each_window_once(trees: list[Tree], depths: tuple[int, ...]) -> None:
    inputs = Windows.from_trees(trees, Vocabulary.of(trees), depths)
    reach = 0
    for layer, depth in zip(inputs.layers, depths, strict=True):
        reach += depth - 1
        distinct = {cut(tree, node, reach) for tree in trees for node in range(len(tree))}
        assert len(layer) == len(distinct)
    assert inputs.node_counts.tolist() == [len(tree) for tree in trees]


@given(st.lists(random_trees(), min_size=1, max_size=6), DEPTHS, st.data())
def test_a_selection_is_the_forest_of_the_selected(
    trees: list[Tree], depths: tuple[int, ...], data: st.DataObject
) -> None:
    vocabulary = Vocabulary.of(trees)
    chosen = data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=4))
    selected = Windows.from_trees(trees, vocabulary, depths).select(chosen)
    alone = Windows.from_trees([trees[number] for number in chosen], vocabulary, depths)
    assert [len(layer) for layer in selected.layers] == [len(layer) for layer in alone.layers]
    assert contents(selected) == contents(alone)


@given(st.lists(random_trees(), min_size=1, max_size=6), DEPTHS)
def test_chunks_make_no_difference(trees: list[Tree], depths: tuple[int, ...]) -> None:
    vocabulary = Vocabulary.of(trees)
    whole = Windows.from_trees(trees, vocabulary, depths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_NODES", 1)
        chunked = Windows.from_trees(trees, vocabulary, depths)
    assert [len(layer) for layer in whole.layers] == [len(layer) for layer in chunked.layers]
    assert contents(whole) == contents(chunked)


def contents(inputs: Windows) -> list[Any]:
    """Each program's windows, spelled out, with their counts."""

    def spell(layer: int, window: int) -> Any:
        if layer < 0:
            tokens = inputs.symbols.token[slice(*inputs.symbols.offsets[window : window + 2])]
            return int(inputs.symbols.kind[window]), tuple(tokens.tolist())
        windows = inputs.layers[layer]
        rows = range(windows.offsets[window], windows.offsets[window + 1])
        return tuple(
            (
                spell(layer - 1, int(windows.member[row])),
                *(float(weight[row]) for weight in windows.weights),
            )
            for row in rows
        )

    programs = []
    for begin, end in zip(inputs.offsets[:-1], inputs.offsets[1:], strict=True):
        windows = [spell(len(inputs.layers) - 1, int(w)) for w in inputs.window[begin:end]]
        programs.append(Counter(dict(zip(windows, inputs.count[begin:end].tolist(), strict=True))))
    return programs


@given(st.lists(random_trees(), min_size=2, max_size=4), DEPTHS, st.integers(0, 99))
def test_windows_can_be_left_out(trees: list[Tree], depths: tuple[int, ...], seed: int) -> None:
    inputs = Windows.from_trees(trees, Vocabulary.of(trees), depths)
    numbers = np.random.default_rng(seed).integers(2**63, size=len(trees))
    dropout = InputDropout(numbers, windows=0.6)
    kept = dropout.keep_windows(inputs.sizes)
    assert kept is not None
    left = ~kept
    found = inputs.select(range(len(trees)), dropout)
    for program, (whole, rest) in enumerate(zip(contents(inputs), contents(found), strict=True)):
        gone = left[inputs.offsets[program] : inputs.offsets[program + 1]].tolist()
        items = list(whole.items())
        stays = [item for item, out in zip(items, gone, strict=True) if not out]
        assert list(rest.items()) == (stays or items[:1])
    assert len(set(found.window.tolist())) == len(found.layers[-1])


def test_weights_of_a_window_of_depth_two() -> None:
    tree = Tree.build(["p", "a", "b", "c"], [-1, 0, 0, 0])
    windows = Windows.from_trees([tree], Vocabulary.of([tree])).layers[0]
    top = int(np.argmax(np.diff(windows.offsets)))
    rows = slice(windows.offsets[top], windows.offsets[top + 1])
    assert windows.weights.top[rows].tolist() == [1, 0, 0, 0]
    assert windows.weights.left[rows].tolist() == [0, 1, 0.5, 0]
    assert windows.weights.right[rows].tolist() == [0, 0, 0.5, 1]


def test_hash_collisions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that deceives at first, equal numbers still mean equal windows."""

    def poor(values: Any, salt: Any) -> Any:
        return values % 2 if np.ndim(salt) == 0 and salt in (0, 1) else mix(values, salt)

    trees = [parse_file(path) for path in EXAMPLES[:6]]
    vocabulary = Vocabulary.of(trees)
    expected = contents(Windows.from_trees(trees, vocabulary))
    monkeypatch.setattr(node_windows, "mix", poor)
    assert contents(Windows.from_trees(trees, vocabulary)) == expected


def test_no_trees_at_all() -> None:
    inputs = Windows.from_trees([], Vocabulary([]), (2, 2))
    assert len(inputs) == 0
    assert [len(layer) for layer in inputs.layers] == [0, 0]
    assert len(inputs.select([])) == 0
