"""The way back from code capsules to nodes and tokens, in NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.models.light.test_engine import both, real_trees
from tests.models.test_treecaps import CLASSES, VARIANTS
from tests.naive import naive_forward, nodes_of
from treecaps.inputs.windows_and_bags import WindowsAndBags, WindowsAndBagsTensors
from treecaps.models.light.engine import NumpyEngine
from treecaps.models.light.tracing import find_routes, gradients
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.tensors import to_tensors

CLASS = 1


# Where each node has a window of its own, equal ones are not distinct.
@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "distinct starts"])
def test_gradients_are_those_of_the_naive_network(name: str) -> None:
    # What training does not learn through counts here all the same.
    config = replace(VARIANTS[name], stop_routed=False, stop_gradients=False)
    trees = real_trees()[:1]
    engine, _, vocabulary = both(config, trees)
    (network,) = engine.members
    assert isinstance(network, TreeCaps)
    network.double()
    ((_, light),) = NumpyEngine(config, (1.0,), CLASSES, engine.arrays()).networks
    inputs = WindowsAndBags.node_by_node(trees[0], vocabulary, config.depths, config.feature)
    batch = inputs.to_tensors(np.asarray)
    found = gradients(light, batch, CLASS, light.symbol_vectors(batch.windows.symbols))
    code, _, _ = naive_forward(network, nodes_of(trees[0], vocabulary, config.window_depth))
    code[CLASS].norm().backward()
    assert found.length == pytest.approx(code[CLASS].norm().item(), abs=1e-7)
    assert network.vectors.grad is not None
    of_kinds = np.zeros((len(vocabulary), config.vector_size))
    np.add.at(of_kinds, batch.windows.symbols.kind, found.nodes)
    assert np.abs(of_kinds).max() > 1e-6
    np.testing.assert_allclose(of_kinds, network.vectors.grad.numpy(), rtol=1e-5, atol=1e-8)
    assert (found.tokens is None) == (network.tokens is None)
    if network.tokens and batch.bags is not None:
        assert network.tokens.vectors.grad is not None
        place, _ = light.find_tokens(batch.bags)
        expected = network.tokens.vectors.grad.numpy()[place]
        assert np.abs(expected).max() > 1e-8
        assert found.tokens is not None
        np.testing.assert_allclose(found.tokens, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, one in VARIANTS.items() if one.has_routes])
def test_routes_are_those_of_the_network_on_pytorch(name: str) -> None:
    config, trees = VARIANTS[name], real_trees()
    engine, _, vocabulary = both(config, trees)
    (network,) = engine.members
    assert isinstance(network, TreeCaps)
    network.double()
    ((_, light),) = NumpyEngine(config, (1.0,), CLASSES, engine.arrays()).networks
    program, _ = WindowsAndBags.with_rows(trees[0], vocabulary, config.depths, config.feature)
    found = find_routes(light, program.to_tensors(np.asarray))
    batch: WindowsAndBagsTensors[torch.Tensor] = to_tensors(program, network.vectors)
    (windows,), code = network.routes(batch)
    scores = engine.scores(program)[0]
    np.testing.assert_allclose(found.windows, windows.numpy(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.code, code[0].numpy(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6, atol=1e-9)
    if network.tokens:
        bags = batch.bags
        assert bags is not None
        features, tokens = network.tokens.shares(bags.offsets, bags.feature, bags.count)
        assert torch.equal(torch.from_numpy(found.features), features)
        np.testing.assert_allclose(found.tokens, tokens.numpy(), rtol=1e-6, atol=1e-9)
