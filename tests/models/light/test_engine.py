"""The engine in NumPy against the one on PyTorch."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tests.conftest import EXAMPLES
from tests.models.test_treecaps import CLASSES, VARIANTS, show
from treecaps import load
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import Input
from treecaps.models.config import ModelConfig
from treecaps.models.ggnn import GGNNConfig
from treecaps.models.light.engine import NumpyEngine
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.syntax.parse import parse_code, parse_file
from treecaps.syntax.tree import Tree


def real_trees() -> list[Tree]:
    return [parse_file(path) for path in EXAMPLES]


def both(
    config: TreeCapsConfig, trees: list[Tree], weights: tuple[float, ...] = (1.0,)
) -> tuple[TorchEngine, NumpyEngine, Vocabulary]:
    """Return engines of both kinds with the same weights, drawn at random."""
    vocabulary = Vocabulary.of(trees, config.known_tokens)
    members = []
    for seed in range(len(weights)):
        torch.manual_seed(seed)
        network = TreeCaps(config, len(vocabulary), CLASSES, len(vocabulary.tokens))
        for name, weight in network.named_parameters():
            if "bias" in name or "gate" in name:  # these begin at zero, where errors do not show
                torch.nn.init.normal_(weight, std=0.3)
        show(network, trees, vocabulary)
        inputs = network.read_trees(config, trees, vocabulary)
        network.scale_weights(inputs)
        members.append(network)
    engine = TorchEngine(members, weights, CLASSES)
    light = NumpyEngine.build(config, weights, vocabulary, CLASSES, engine.arrays())
    return engine, light, vocabulary


def assert_equal(engine: TorchEngine, light: NumpyEngine, inputs: Input, error: float) -> None:
    expected, found = engine.scores(inputs), light.scores(inputs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=error)
    assert (np.argsort(-found) == np.argsort(-expected)).all()
    np.testing.assert_allclose(light.embed(inputs), engine.embed(inputs), rtol=0, atol=error)


@pytest.mark.parametrize("name", VARIANTS)
def test_scores_and_embeddings_are_equal(name: str) -> None:
    """In twice the precision: it is open otherwise which of almost equal capsules are longest."""
    trees, config = real_trees(), VARIANTS[name]
    engine, _, vocabulary = both(config, trees)
    for member in engine.members:
        member.double()
    light = NumpyEngine(config, (1.0,), CLASSES, engine.arrays())
    assert_equal(engine, light, light.read_trees(trees, vocabulary), 1e-7)


@pytest.mark.parametrize("weights", [(0.25, 0.75), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("name", ["token capsules", "per channel, one", "log counts"])
def test_ensembles_are_equal(name: str, weights: tuple[float, ...]) -> None:
    engine, light, vocabulary = both(VARIANTS[name], real_trees(), weights)
    inputs = light.read_trees(real_trees(), vocabulary)
    assert_equal(engine, light, inputs, 1e-5)
    assert light.scores(inputs).dtype == light.embed(inputs).dtype == np.float32


@pytest.mark.parametrize("name", ["algorithms", "poj104"])
def test_bundled_models_answer_the_same(name: str) -> None:
    whole, light = load(name, engine=TorchEngine.build), load(name)
    inputs = light.read_trees(real_trees())
    assert isinstance(whole.engine, TorchEngine)
    assert isinstance(light.engine, NumpyEngine)
    assert_equal(whole.engine, light.engine, inputs, 1e-5)
    assert light.fingerprint() == whole.fingerprint()


@pytest.mark.parametrize("name", VARIANTS)
def test_it_knows_the_shapes_of_all_weights(name: str) -> None:
    config, trees = VARIANTS[name], real_trees()[:3]
    engine, _, vocabulary = both(config, trees)
    arrays = dict(engine.arrays())
    for weight, array in arrays.items():
        others = {name: one for name, one in arrays.items() if name != weight}
        for wrong in ({}, {weight: array[:0]}, {weight: array.astype(np.complex64)}):
            with pytest.raises(ValueError, match=re.escape(weight)):
                NumpyEngine.build(config, (1.0,), vocabulary, CLASSES, others | wrong)
    with pytest.raises(ValueError, match="x does not belong there"):
        NumpyEngine.build(config, (1.0,), vocabulary, CLASSES, {**arrays, "0.x": np.zeros(1)})


def test_what_is_no_number_is_refused() -> None:
    config, trees = VARIANTS["paper"], real_trees()[:3]
    engine, _, vocabulary = both(config, trees)
    arrays = dict(engine.arrays())
    arrays["0.code.bias"] = arrays["0.code.bias"] * np.float32(np.nan)
    with pytest.raises(ValueError, match=r"0\.code\.bias holds values that are no numbers"):
        NumpyEngine.build(config, (1.0,), vocabulary, CLASSES, arrays)


def test_many_programs_and_one_answer_the_same() -> None:
    model, trees = load("algorithms"), real_trees()
    assert isinstance(model.engine, NumpyEngine)
    ((_, network),) = model.engine.networks
    alone = np.concatenate([model.scores(model.read_trees([tree])) for tree in trees])
    assert "_every_token_unit" not in vars(network)
    together = model.scores(model.read_trees(trees))
    assert "_every_token_unit" in vars(network)
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)


def test_programs_without_known_tokens_are_classified() -> None:
    whole, light = load("algorithms", engine=TorchEngine.build), load("algorithms")
    trees = [parse_code("", "python"), parse_code("x", "python")]
    for some in (trees, trees[:1]):
        inputs = light.read_trees(some)
        np.testing.assert_allclose(light.scores(inputs), whole.scores(inputs), atol=1e-5)


@dataclass(frozen=True)
class OtherConfig(TreeCapsConfig):
    """That of an architecture that extends treecaps."""


@pytest.mark.parametrize("config", [GGNNConfig(), OtherConfig()])
def test_other_architectures_need_pytorch(config: ModelConfig) -> None:
    with pytest.raises(UsageError, match="only models of the architecture treecaps"):
        NumpyEngine.build(config, (1.0,), Vocabulary.of(real_trees()[:1]), CLASSES, {})


def test_threads_are_chosen_before_pytorch_is_loaded() -> None:
    script = """
import sys
from treecaps.models.engine import set_num_threads
set_num_threads(1)
assert "torch" not in sys.modules
import treecaps.models.torch_engine, torch
print(torch.get_num_threads())
"""
    environment = {name: one for name, one in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout == "1\n"


def test_a_tiny_and_a_huge_program_in_one_batch() -> None:
    model = load("algorithms")
    lines = (f"int f{number}(int a) {{ return a + {number}; }}" for number in range(12_500))
    trees = [parse_code("\n".join(lines), "c"), Tree.build(["translation_unit"], [-1])]
    assert len(trees[0]) > 200_000
    together = model.scores(model.read_trees(trees))
    alone = np.concatenate([model.scores(model.read_trees([tree])) for tree in trees])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
