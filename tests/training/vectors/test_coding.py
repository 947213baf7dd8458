import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.training.vectors.examples import java_trees
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Floats
from treecaps.inputs.node_windows import WindowLayer
from treecaps.inputs.windows import Windows
from treecaps.syntax.tree import Tree
from treecaps.training.vectors import coding
from treecaps.training.vectors.learn import learn_vectors


def leaves_below(tree: Tree, node: int) -> int:
    """Count leaves by plain recursion."""
    return sum(leaves_below(tree, child) for child in tree.children(node).tolist()) or 1


def obvious_shares(trees: list[Tree], vocabulary: Vocabulary) -> dict[tuple[int, ...], list[float]]:
    """Return the mean share of leaves of each child, for each distinct window."""
    found = defaultdict(list)
    for tree in trees:
        kind = [vocabulary.number(name) for name in tree.kind_names()]
        for node in range(len(tree)):
            children = tree.children(node).tolist()
            window = (kind[node], *(kind[child] for child in children))
            all_leaves = leaves_below(tree, node)
            found[window].append([leaves_below(tree, child) / all_leaves for child in children])
    return {window: np.mean(shares, axis=0).tolist() for window, shares in found.items()}


def obvious_distance(
    vectors: Tensor, weights: Tensor, bias: Tensor, window: tuple[int, ...], shares: list[float]
) -> float:
    """Return the distance of one node, a child and a number at a time."""
    size = vectors.shape[1]
    node, children = window[0], window[1:]
    matrices = weights.T.tolist()  # rows of [W_l, W_r]
    sums = bias.tolist()
    for number, (child, share) in enumerate(zip(children, shares, strict=True)):
        right = number / (len(children) - 1) if len(children) > 1 else 0.5
        for row in range(size):
            for column in range(size):
                mixed = (1 - right) * matrices[row][column] + right * matrices[row][size + column]
                sums[row] += share * mixed * float(vectors[child, column])
    return sum(
        (float(vectors[node, row]) - math.tanh(total)) ** 2 for row, total in enumerate(sums)
    )


@settings(max_examples=40)
@given(st.lists(random_trees(), min_size=1, max_size=3))
def test_distances_equal_those_of_a_node_at_a_time(trees: list[Tree]) -> None:
    vocabulary = Vocabulary.of(trees)
    windows = Windows.from_trees(trees, vocabulary).layers[0]
    shares = coding.leaf_shares(trees, vocabulary, windows)
    chance = torch.Generator().manual_seed(len(windows))
    vectors, weights, bias = (
        torch.randn(shape, generator=chance, dtype=torch.float64)
        for shape in [(len(vocabulary), 3), (6, 3), (3,)]
    )
    distances = coding.coding_distances(vectors, weights, bias, windows, shares)
    expected = obvious_shares(trees, vocabulary)
    assert len(expected) == len(windows)
    for number, distance in enumerate(distances.tolist()):
        begin, end = windows.offsets[number : number + 2]
        window = tuple(windows.member[begin:end].tolist())
        assert shares[begin:end].tolist() == pytest.approx([0, *expected[window]], rel=1e-5)
        twin = obvious_distance(vectors, weights, bias, window, expected[window])
        assert distance == pytest.approx(twin, rel=1e-4, abs=1e-6)


def test_one_member_of_each_window_is_replaced() -> None:
    trees = java_trees()
    vocabulary = Vocabulary.of(trees)
    windows = Windows.from_trees(trees, vocabulary).layers[0]
    corrupted = coding._corrupt(windows, len(vocabulary), np.random.default_rng(0))
    changed = np.add.reduceat(corrupted.member != windows.member, windows.offsets[:-1], dtype=int)
    assert (changed == 1).all()
    assert corrupted.member.min() > 0
    assert corrupted.member.max() < len(vocabulary)
    # Two kinds are the fewest of which one can stand for the other.
    pair = WindowLayer(np.array([0, 2]), np.array([1, 2]))
    assert coding._corrupt(pair, 3, np.random.default_rng(0)).member.tolist() in ([2, 2], [1, 1])


def test_nodes_are_told_from_corrupted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Tensor] = []
    right = coding.coding_distances

    def watch(
        vectors: Tensor, weights: Tensor, bias: Tensor, windows: WindowLayer, shares: Floats
    ) -> Tensor:
        distances = right(vectors, weights, bias, windows, shares)
        found.append(distances.detach())
        return distances

    monkeypatch.setattr(coding, "coding_distances", watch)
    monkeypatch.setattr(coding, "_STEPS", 400)
    learn_vectors(java_trees(), "coding")
    good, bad = found[0::2], found[1::2]
    assert float((good[0] < bad[0]).float().mean()) < 0.75
    assert float((torch.cat(good[-5:]) < torch.cat(bad[-5:])).float().mean()) > 0.95
