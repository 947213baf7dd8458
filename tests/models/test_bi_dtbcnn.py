"""Two towers: pairs, what is remembered, and classes from it."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.models.test_architectures import naive_tower, shown
from tests.networks import batch_of
from tests.training.examples import example_labels, example_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.models.bi_dtbcnn import BiDTBCNN, BiDTBCNNConfig, Compared
from treecaps.models.dtbcnn import DependencyTower
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train

SMALL = BiDTBCNNConfig(nodes="kinds+tokens", vector_size=6, convolutions=(7, 5), hidden=6, shots=2)
TREES = [tree for tree in example_trees() if len(tree) < 400][::3]
SECOND = tuple(sorted({tree.language for tree in TREES})[::2])


def build(second: tuple[str, ...]) -> tuple[BiDTBCNN, Any, Vocabulary, Tensor]:
    vocabulary = Vocabulary.of(TREES, 500)
    config = replace(SMALL, second=second)
    torch.manual_seed(0)
    network = BiDTBCNN(config, len(vocabulary), 3, len(vocabulary.tokens)).double()
    batch = batch_of(network.read_trees(config, TREES, vocabulary), torch.float64)
    label = torch.zeros(len(TREES), dtype=torch.int64)
    for tower in (False, True):
        mine = torch.tensor([(tree.language in second) == tower for tree in TREES])
        label[mine] = torch.arange(int(mine.sum())) % 3
    return network, batch, vocabulary, label


@pytest.mark.parametrize("second", [(), SECOND])
def test_it_equals_pairs_one_by_one(second: tuple[str, ...]) -> None:
    network, batch, vocabulary, label = build(second)
    network.train()
    with torch.no_grad():
        network.loss(network(batch), label)
    network.eval()
    towers = [int(tree.language in second) for tree in TREES]
    assert set(towers) == ({0, 1} if second else {0})
    vectors = []
    for tree, tower in zip(TREES, towers, strict=True):
        reads = network.towers[tower]
        assert isinstance(reads, DependencyTower)
        vectors.append(network.scale(naive_tower(reads, shown(network, tree, vocabulary), tree)))

    # The last two programs of each class and tower are remembered.
    kept = {
        (tower, number): [
            vector.detach()
            for vector, here, one in zip(vectors, towers, label.tolist(), strict=True)
            if (here, one) == (tower, number)
        ][-2:]
        for tower in set(towers)
        for number in range(3)
    }
    assert all(len(found) == 2 for found in kept.values())

    def alike(one: Tensor, other: Tensor) -> Tensor:
        apart = network.apart((one - other).abs())
        found: Tensor = network.same((network.one(one) + network.other(other) + apart).relu())
        return found[0]

    answer: Compared = network(batch)
    across = {0: 1, 1: 0} if second else {0: 0}
    for row, (vector, tower) in enumerate(zip(vectors, towers, strict=True)):
        for number in range(3):
            others = kept[across[tower], number]
            expected = torch.stack([alike(vector, other).sigmoid() for other in others]).mean()
            torch.testing.assert_close(answer.scores[row, number], expected)

    losses: dict[bool, list[Tensor]] = {True: [], False: []}
    for row, vector in enumerate(vectors):
        pairs = [(other, int(label[at])) for at, other in enumerate(vectors) if at != row]
        pairs += [(other, number) for (_, number), found in kept.items() for other in found]
        for other, number in pairs:
            same = number == int(label[row])
            likely = alike(vector, other).sigmoid()
            losses[same].append(-(likely if same else 1 - likely).log())
    expected = (torch.stack(losses[True]).mean() + torch.stack(losses[False]).mean()) / 2
    loss = network.loss(answer, label)
    torch.testing.assert_close(loss, expected)
    weights = list(network.parameters())
    ours, theirs = (
        torch.autograd.grad(one, weights, materialize_grads=True) for one in (loss, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_a_class_that_the_other_tower_never_saw_is_told_by_the_own() -> None:
    network, batch, _, label = build(SECOND)
    network.train()
    answer: Compared = network(batch)
    assert answer.scores.count_nonzero() == 0  # nothing is remembered yet
    first = answer.tower == 0
    only = Compared(answer.scores[first], answer.vectors[first], answer.tower[first])
    network.loss(only, label[first])
    assert network.seen[1].sum() == 0
    assert (network(batch).scores > 0).all()
    # One program alone, without any to compare it with, teaches nothing.
    fresh, *_ = build(())
    alone = Compared(answer.scores[:1], answer.vectors[:1], answer.tower[:1])
    assert fresh.loss(alone, label[:1]).item() == 0


def test_one_language_is_told_by_others() -> None:
    trees, labels = example_trees(), example_labels()
    settings = [
        f"second={','.join(SECOND)}",
        "epochs=30",
        "batch_size=8",
        "rename_probability=0",
        "dropout=0",
    ]
    preset = apply_settings(get_preset("default", "bi-dtbcnn"), settings)
    model = train(trees, labels, preset=preset)
    (network,) = model.members
    assert isinstance(network, BiDTBCNN)
    network.seen[1] = 0  # the second tower forgets all
    rows = [number for number, tree in enumerate(trees) if tree.language in SECOND]
    found = model.scores(model.read_trees([trees[row] for row in rows])).argmax(1).tolist()
    right = [model.labels[one] == labels[row] for one, row in zip(found, rows, strict=True)]
    assert sum(right) >= 0.8 * len(right), f"{sum(right)} of {len(right)}"


def test_a_second_tower_reads_languages() -> None:
    with pytest.raises(UsageError, match="second names languages; 'jawa' is none of c, "):
        BiDTBCNNConfig(second=("jawa",))
    with pytest.raises(UsageError, match=r"second must be names .* \(c,cpp\)"):
        apply_settings(get_preset("default", "bi-dtbcnn"), {"second": [3]})
