"""What the numbers of a code capsule stand for."""

import pytest
import torch

from tests.networks import batch_of
from tests.training.examples import example_labels, example_trees, small
from treecaps.errors import UsageError
from treecaps.explanation.explanation import explain
from treecaps.explanation.perturbation import STEP, perturb
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.training.train import train


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return train(example_trees(), example_labels(), preset=small("windows=60", "epochs=10"))


@pytest.mark.parametrize("label", ["gcd", "stack"])
def test_numbers_are_varied_one_at_a_time(model: TrainedModel, label: str) -> None:
    tree = example_trees()[5]
    found = {one.number: one for one in perturb(model, tree, label)}
    (network,) = model.members
    assert isinstance(network, TreeCaps)
    assert network.decoder is not None
    code = network(batch_of(model.read_trees([tree]))).code.detach()
    number = torch.tensor([model.labels.index(label)])
    assert sorted(found) == list(range(code.shape[2]))
    for place, one in found.items():
        ends = []
        for step in (STEP, -STEP):
            moved = code.clone()
            moved[0, number, place] += step
            ends.append(network.decoder(moved, number)[0].exp())
        change = (ends[0] - ends[1]).tolist()
        assert one.moved == pytest.approx(sum(share for share in change if share > 0), abs=1e-5)
        ordered = sorted(change)
        assert [share for _, share in one.goes] == pytest.approx(ordered[:3], abs=1e-6)
        assert [share for _, share in one.comes] == pytest.approx(ordered[:-4:-1], abs=1e-6)


def test_windows_are_spelled(model: TrainedModel) -> None:
    found = explain(model, example_trees()[5], dimensions=True)
    assert [one.moved for one in found.dimensions] == sorted(
        (one.moved for one in found.dimensions), reverse=True
    )
    windows = {change.window for one in found.dimensions for change in (*one.comes, *one.goes)} - {
        "all other windows"
    }
    assert windows
    for window in windows:
        top, colon, below = window.partition(": ")
        assert colon
        assert {top, *below.split(" ")} <= set(model.vocabulary.kinds)
    assert found.to_dict()["dimensions"][0]["number"] == found.dimensions[0].number
    assert "dimensions" not in explain(model, example_trees()[5]).to_dict()


def test_a_model_without_a_decoder_says_what_to_do() -> None:
    without = train(example_trees(), example_labels(), preset=small("windows=0", "epochs=1"))
    with pytest.raises(UsageError, match="train one with windows=1000"):
        perturb(without, example_trees()[0], "gcd")
