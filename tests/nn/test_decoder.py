"""Rebuilding the windows of programs from code capsules."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from tests.conftest import EXAMPLES
from tests.networks import batch_of
from tests.training.examples import example_labels, example_trees, small
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.windows import Windows
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn.decoder import _LONGEST, Decoder
from treecaps.syntax.parse import parse_code, parse_file
from treecaps.syntax.tree import Tree
from treecaps.training.train import train

DEPTHS = ((2,), (2, 2, 2))


def windows_of(tree: Tree) -> Counter[tuple[str, ...]]:
    """Count the nodes with children by their kind and those of their children."""
    kinds = tree.kind_names()
    below: dict[int, list[str]] = {}
    for node, parent in enumerate(tree.parent.tolist()):
        below.setdefault(parent, []).append(kinds[node])
    return Counter((kinds[node], *below[node]) for node in range(len(tree)) if node in below)


def spelled(decoder: Decoder, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    return [
        tuple(vocabulary.kinds[kind - 1] for kind in row if kind) for row in decoder.known.tolist()
    ]


@pytest.mark.parametrize("depths", DEPTHS)
@pytest.mark.parametrize("known", [5, 40, 5000])
def test_shares_are_those_counted_one_by_one(depths: tuple[int, ...], known: int) -> None:
    trees = [parse_file(path) for path in EXAMPLES[::3]]
    vocabulary = Vocabulary.of(trees, 100)
    inputs = Windows.from_trees(trees, vocabulary, depths)
    decoder = Decoder(3, 4, known)
    decoder.learn_windows(inputs)

    counts = [windows_of(tree) for tree in trees]
    programs = Counter(window for count in counts for window in count if len(window) <= _LONGEST)
    assert any(len(window) > _LONGEST for count in counts for window in count)
    names = [name for name in spelled(decoder, vocabulary) if name]
    assert len(set(names)) == len(names) == min(known, len(programs))
    fewest = min(programs[name] for name in names)
    assert all(programs[window] <= fewest for window in programs.keys() - set(names))

    shares = decoder.shares(batch_of(inputs, torch.float64))
    for count, row in zip(counts, shares.tolist(), strict=True):
        total = sum(count.values())
        for name, share in zip(names, row, strict=False):
            assert share == pytest.approx(count[name] / total)
        others = sum(number for window, number in count.items() if window not in names)
        assert row[-1] == pytest.approx(others / total)
        assert sum(row) == pytest.approx(1)


def test_a_long_window_is_none_that_begins_like_it() -> None:
    short, long = (parse_code("a\n" * count, "python") for count in (_LONGEST - 1, 30))
    trees = [short, long]
    assert max(map(len, windows_of(short))) == _LONGEST
    vocabulary = Vocabulary.of(trees)
    decoder = Decoder(2, 4, 20)
    decoder.learn_windows(Windows.from_trees(trees, vocabulary))
    assert max(map(len, spelled(decoder, vocabulary))) == _LONGEST
    shares = decoder.shares(batch_of(Windows.from_trees(trees, vocabulary)))
    assert shares[:, -1].tolist() == pytest.approx([0, 1 / windows_of(long).total()])


def test_a_program_of_one_node_has_nothing_to_rebuild() -> None:
    leaf = parse_code("", "python")
    assert len(leaf) == 1
    trees = [leaf, *example_trees()[:3]]
    inputs = Windows.from_trees(trees, Vocabulary.of(trees))
    decoder = Decoder(2, 4, 20)
    decoder.learn_windows(inputs)
    assert decoder.shares(batch_of(inputs)).sum(1).tolist() == pytest.approx([0, 1, 1, 1])


def test_a_program_with_other_numbers_is_rebuilt_otherwise() -> None:
    decoder = Decoder(3, 4, 20)
    capsules = torch.randn(2, 3, 4)
    capsules[1] = capsules[0]
    capsules[1, 1] += 1
    rebuilt = [decoder(capsules, torch.tensor([label, label])) for label in (0, 1)]
    assert torch.equal(*rebuilt[0])  # the capsules of other classes do not matter
    assert not torch.allclose(*rebuilt[1])
    assert rebuilt[1].exp().sum(1).tolist() == pytest.approx([1, 1], abs=1e-5)


def test_it_learns_and_leaves_the_network_alone_unless_asked_to() -> None:
    trees, labels = example_trees(), example_labels()

    def weights(*settings: str) -> tuple[dict[str, torch.Tensor], list[float]]:
        errors: list[float] = []
        preset = small("epochs=20", *settings)
        model = train(
            trees,
            labels,
            val=(trees, labels),
            preset=preset,
            on_epoch=lambda _, metrics: errors.append(metrics.get("reconstruction", 0.0)),
        )
        return model.members[0].state_dict(), errors

    without, nothing = weights("windows=0")
    alone, errors = weights("windows=500")
    together, _ = weights("windows=500", "reconstruction=1")
    assert nothing == [0.0] * 20
    assert errors[-1] < 0.98 * errors[0]
    assert all(torch.equal(value, alone[name]) for name, value in without.items())
    assert not all(torch.equal(value, together[name]) for name, value in without.items())


def test_slopes_into_the_capsules_are_scaled() -> None:
    trees = example_trees()[:4]
    vocabulary = Vocabulary.of(trees)
    config = TreeCapsConfig(vector_size=5, channels=6, slices=4, capsule_size=4, windows=30)
    torch.manual_seed(0)
    network = TreeCaps(config, len(vocabulary), 3)
    inputs = network.read_trees(config, trees, vocabulary)
    network.fit_features(inputs)
    label = torch.tensor([0, 1, 2, 0])
    slopes = []
    for weight in (1.0, 0.25, 0.0):
        network.zero_grad()
        output = network(batch_of(inputs))
        loss = network.reconstruction(output, label, weight)
        assert loss is not None
        loss.backward()  # type: ignore[no-untyped-call]
        assert network.decoder is not None
        of_code, of_decoder = network.code.weight.grad, network.decoder.first.grad
        assert of_code is not None
        assert of_decoder is not None
        slopes.append((of_code.clone(), of_decoder.clone()))
    whole, quarter, none = slopes
    assert whole[0].abs().max() > 0
    torch.testing.assert_close(quarter[0], whole[0] / 4)
    assert none[0].abs().max() == 0
    for _, decoder in (quarter, none):
        torch.testing.assert_close(decoder, whole[1])
    network.eval()
    assert network.reconstruction(network(batch_of(inputs)), label, 1.0) is None


def test_deeper_windows_are_not_rebuilt() -> None:
    with pytest.raises(UsageError, match="depth 2"):
        TreeCapsConfig(window_depth=3, windows=10)
    assert replace(TreeCapsConfig(window_depth=3), windows=0).windows == 0
