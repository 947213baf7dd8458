from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.training.vectors.examples import java_trees
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.windows import Windows
from treecaps.syntax.tree import Tree
from treecaps.training.vectors import parent
from treecaps.training.vectors.learn import learn_vectors


def count_pairs(trees: list[Tree], vocabulary: Vocabulary) -> Counter[tuple[int, int]]:
    """Count (child, parent) kinds, a node at a time."""
    found: Counter[tuple[int, int]] = Counter()
    for tree in trees:
        kind = [vocabulary.number(name) for name in tree.kind_names()]
        for node in range(1, len(tree)):
            found[kind[node], kind[tree.parent[node]]] += 1
    return found


@settings(max_examples=50)
@given(st.lists(random_trees(), min_size=1, max_size=4))
def test_pairs_are_counted_as_a_child_at_a_time(trees: list[Tree]) -> None:
    vocabulary = Vocabulary.of(trees)
    inputs = Windows.from_trees(trees, vocabulary)
    counts = np.bincount(inputs.window, weights=inputs.count).astype(np.int64)
    pairs = parent.pair_counts(inputs.layers[0], counts, len(vocabulary))
    expected = np.zeros_like(pairs)
    for pair, count in count_pairs(trees, vocabulary).items():
        expected[pair] = count
    assert np.array_equal(pairs, expected)


def test_loss_is_the_mean_over_all_pairs() -> None:
    chance = torch.Generator().manual_seed(0)
    shapes = [(4, 3), (100, 3), (100,), (4, 100), (4,)]
    vectors, *layers = (torch.randn(shape, generator=chance) for shape in shapes)
    counts = torch.tensor([[0, 2, 0, 0], [0, 0, 1, 3], [0, 0, 0, 0], [5, 0, 0, 1]])
    total = 0.0
    for child, row in enumerate(counts.tolist()):
        scores = layers[2] @ torch.tanh(layers[0] @ vectors[child] + layers[1]) + layers[3]
        for above, count in enumerate(row):
            total -= count * float(torch.log_softmax(scores, 0)[above])
    loss = parent.parent_loss(vectors, layers, counts / counts.sum())
    assert float(loss) == pytest.approx(total / int(counts.sum()), rel=1e-5)


def test_parents_are_told_nearly_as_well_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    losses: list[float] = []
    right = parent.parent_loss

    def watch(vectors: Tensor, layers: list[Tensor], pairs: Tensor) -> Tensor:
        loss = right(vectors, layers, pairs)
        losses.append(float(loss.detach()))
        return loss

    monkeypatch.setattr(parent, "parent_loss", watch)
    trees = java_trees()
    learn_vectors(trees, "parent")
    pairs = count_pairs(trees, Vocabulary.of(trees))
    children: Counter[int] = Counter()
    parents: Counter[int] = Counter()
    for (child, above), count in pairs.items():
        children[child] += count
        parents[above] += count
    # No model can do better than the entropy of parents given their children.
    nodes = pairs.total()
    best = -sum(n * np.log(n / children[child]) for (child, _), n in pairs.items()) / nodes
    by_frequency = -sum(n * np.log(n / nodes) for n in parents.values()) / nodes
    assert best <= losses[-1] < best + 0.05 < by_frequency
