"""Nothing assumes the CPU.

There is no other device to try on every computer. But torch makes a tensor for which no device is
named on its default device, and with the meta device as the default, which holds no numbers, a
network that forgets to name one fails.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.examples import example_labels, example_trees, small
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.architectures import ARCHITECTURES, new_model
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn.contrastive_loss import contrastive_loss
from treecaps.nn.tensors import to_tensors
from treecaps.rendering.training import train
from treecaps.training.presets import get_preset

TREES = [tree for tree in example_trees() if len(tree) < 400][::4]
VARIANTS = {name: get_preset("default", name).network for name in ARCHITECTURES} | {
    "paper": get_preset("paper").network,
    "published": get_preset("published").network,
    "together": TreeCapsConfig(channels=8, per_channel=False, static_iterations=3, routed=5),
    "maxima": TreeCapsConfig(channels=8, pooling="max", secondary=4, code_iterations=3),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_tensors_are_made_where_the_inputs_are(variant: str) -> None:
    config = VARIANTS[variant]
    vocabulary = Vocabulary.of(TREES, config.known_tokens)
    torch.manual_seed(0)
    model = new_model(config, len(vocabulary), 3, len(vocabulary.tokens))
    inputs = model.read_trees(config, TREES * 6, vocabulary)
    label = torch.arange(len(inputs)) % 3
    with torch.device("meta"):
        if model.CLOSED_FORM:
            model.fit(inputs, label.numpy())
        model.fit_features(inputs)
        batch = to_tensors(inputs, next(model.parameters()))
        output = model(batch)
        loss = model.loss(output, label)
        rebuilt = model.reconstruction(output, label, 1.0)
        total = loss if rebuilt is None else loss + rebuilt
        if not model.CLOSED_FORM:
            total.backward()  # type: ignore[no-untyped-call]
        metrics = model.metrics(output, label)
        if isinstance(model, TreeCaps):
            if model.config.has_routes:
                model.static_coupling(batch)
            contrastive_loss(model.embed(batch), label, 0.1).backward()  # type: ignore[no-untyped-call]
        scores = TorchEngine([model], [1.0], 3).scores(inputs)
    assert np.isfinite(scores).all()
    assert loss.isfinite()
    assert all(value.isfinite() for value in metrics.values())
    for name, weight in model.state_dict().items():
        assert weight.device.type == "cpu", name


def test_routes_are_read_where_the_network_is() -> None:
    config = VARIANTS["treecaps"]
    assert isinstance(config, TreeCapsConfig)
    vocabulary = Vocabulary.of(TREES, config.known_tokens)
    network = TreeCaps(config, len(vocabulary), 3, len(vocabulary.tokens))
    network.fit_features(network.read_trees(config, TREES * 6, vocabulary))
    program = WindowsAndBags.from_trees(TREES[:1], vocabulary, config.depths, config.feature)
    with torch.device("meta"):
        _, code = network.routes(to_tensors(program, network.vectors))
    assert code.isfinite().all()


def test_a_device_is_named_for_training(tmp_path: Path) -> None:
    trees, labels = example_trees(), example_labels()
    model = train(trees, labels, preset=small("epochs=1"), device="cpu")
    assert {weight.device.type for weight in model.members[0].parameters()} == {"cpu"}
    for name in ("meta", "no such thing", "cuda:99"):
        with pytest.raises(UsageError, match=f"there is no device '{name}' to train on"):
            train(trees, labels, preset=small("epochs=1"), device=name, folder=tmp_path / "m")
    assert not (tmp_path / "m").exists()
