import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.conftest import EXAMPLES
from tests.naive import convolve, naive_forward, nodes_of
from tests.networks import batch_of
from tests.trees import random_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.bags import hash_leaves
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.treecaps import Capsules, TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn import routing_engine
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.parse import parse_file
from treecaps.syntax.tree import Tree
from treecaps.training.presets import get_preset


def _network_of(preset: str) -> TreeCapsConfig:
    network = get_preset(preset).network
    assert isinstance(network, TreeCapsConfig)
    return network


SIZES: dict[str, Any] = {"vector_size": 5, "channels": 6, "slices": 4, "capsule_size": 4}
SMALL = TreeCapsConfig(**SIZES, statics=3, per_channel=False, code_iterations=3)
PAPER = replace(_network_of("paper"), **(SIZES | {"capsule_size": None}))
PUBLISHED = replace(_network_of("published"), **SIZES, statics=5, routed=7, code_std=0.1)
VARIANTS = {
    "paper": PAPER,
    "published": PUBLISHED,
    "published, many": replace(PUBLISHED, statics=60, routed=80),
    "published, all routed": replace(PUBLISHED, routed=None, static_iterations=3),
    "published, by capsule": replace(PUBLISHED, by_coordinate=False),
    "published, each channel": replace(PUBLISHED, joint=False),
    "published, with gradients": replace(PUBLISHED, stop_routed=False, stop_gradients=False),
    "published, squashed": replace(PUBLISHED, squash_primary=True, secondary=4),
    "stopped gradients": replace(SMALL, stop_routed=True, stop_gradients=True, code_bias=True),
    "all capsules compete": SMALL,
    "printed squash": replace(SMALL, squash="printed"),
    "one iteration": replace(SMALL, static_iterations=1, code_iterations=1),
    "many static capsules": replace(SMALL, statics=40),
    "longest routed": replace(SMALL, routed=7),
    "per channel": replace(SMALL, per_channel=True),
    "per channel, many": replace(SMALL, per_channel=True, statics=25),
    "per channel, longest routed": replace(SMALL, per_channel=True, routed=4, statics=4),
    "per channel, one": replace(SMALL, per_channel=True, statics=1),
    "distinct starts": replace(SMALL, distinct_starts=True, statics=9),
    "max pooling": replace(SMALL, pooling="max"),
    "secondary": replace(SMALL, secondary=5, secondary_size=3),
    "code size": replace(SMALL, code_size=12),
    "large capsules": replace(SMALL, capsule_size=8),
    "small capsules": replace(SMALL, capsule_size=2),
    "deep windows": replace(SMALL, window_depth=3),
    "stacked": replace(SMALL, hidden=(7, 6)),
    "residual": replace(SMALL, vector_size=7, hidden=(7, 7, 6), residual=True),
    "stacked deep windows": replace(SMALL, hidden=(7,), window_depth=3),
    "gated": replace(SMALL, gated=True),
    "tokens": replace(SMALL, nodes="kinds+tokens", hidden=(5,)),
    "token capsules": replace(SMALL, nodes="kinds+tokens", token_channels=3, token_features=60),
    "token capsules, secondary": replace(
        SMALL,
        nodes="kinds+tokens",
        per_channel=True,
        token_channels=5,
        token_features=500,
        secondary=4,
    ),
    "gated capsules": replace(SMALL, gated=True, gate_capsules=True, counts="log"),
    "gated capsules per channel": replace(
        SMALL, gated=True, gate_capsules=True, per_channel=True, hidden=(5,)
    ),
    "log counts": replace(SMALL, counts="log", gated=True, per_channel=True, hidden=(5,)),
}
CLASSES = 3


def show(network: TreeCaps, trees: list[Tree], vocabulary: Vocabulary) -> None:
    """Let a network look at trees often enough to know all their tokens."""
    network.fit_features(network.read_trees(network.config, trees * 6, vocabulary))
    if network.tokens:
        assert (network.tokens.known[0] < 2**63 - 1) == any(tree.text for tree in trees)


def assert_equals_naive(config: TreeCapsConfig, trees: list[Tree], scale: float = 1) -> None:
    """Outputs and gradients of the shared and of the naive network are equal."""
    torch.manual_seed(0)
    vocabulary = Vocabulary.of(trees, config.known_tokens)
    network = TreeCaps(config, len(vocabulary), CLASSES, len(vocabulary.tokens)).double()
    network.vectors.data *= scale
    for name, weights in network.named_parameters():
        if "bias" in name or "gate" in name:  # these begin at zero, where errors would not show
            torch.nn.init.normal_(weights, std=0.3 * scale)
    show(network, trees, vocabulary)
    batch = read(trees, vocabulary, config)
    found = network(batch)
    every = [naive_forward(network, nodes_of(t, vocabulary, config.window_depth)) for t in trees]
    code, coupling, static = (torch.stack(parts) for parts in zip(*every, strict=True))
    assert close(found.static, static)
    assert close(found.coupling, coupling)
    assert close(found.code, code)
    label = torch.arange(len(trees)) % CLASSES
    naive = Capsules(code.norm(dim=2), code, coupling, static)
    parameters = list(network.parameters())
    ours = torch.autograd.grad(network.loss(found, label), parameters, materialize_grads=True)
    theirs = torch.autograd.grad(network.loss(naive, label), parameters, materialize_grads=True)
    for mine, other in zip(ours, theirs, strict=True):
        assert close(mine, other)


def close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
@given(trees=st.lists(random_trees(), min_size=1, max_size=3))
@settings(max_examples=4)
def test_equals_the_naive_network_on_random_trees(variant: str, trees: list[Tree]) -> None:
    assert_equals_naive(VARIANTS[variant], trees)


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_naive_network_on_programs(variant: str) -> None:
    assert_equals_naive(VARIANTS[variant], [parse_file(path) for path in EXAMPLES[:3]])


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_naive_network_on_trees_of_one_node(variant: str) -> None:
    trees = [Tree.build(["a"], [-1]), Tree.build(["b"], [-1]), Tree.build(["a"], [-1])]
    assert_equals_naive(VARIANTS[variant], trees)


@pytest.mark.parametrize("variant", ["paper", "per channel", "stacked", "max pooling"])
def test_equals_the_naive_network_with_thousands_of_children(variant: str) -> None:
    wide = Tree.build(["root", *(["a", "b", "c"] * 1000)], [-1, *([0] * 3000)])
    # Vectors are kept small: with tanh at its limits all capsules would be of one length, and it
    # would be open which of them are the longest.
    assert_equals_naive(VARIANTS[variant], [wide, parse_file(EXAMPLES[0])], scale=1e-4)


def test_equals_the_naive_network_at_the_papers_sizes() -> None:
    for preset in ("paper", "published"):
        assert_equals_naive(_network_of(preset), [parse_file(EXAMPLES[0])])


@pytest.mark.parametrize("secondary", [0, 5])
def test_weights_are_scaled_by_the_training_programs(secondary: int) -> None:
    trees = [parse_file(path) for path in EXAMPLES[:12]]
    vocabulary = Vocabulary.of(trees)
    config = replace(PAPER, secondary=secondary)
    torch.manual_seed(0)
    network = TreeCaps(config, len(vocabulary), CLASSES).double()
    inputs = TreeCaps.read_trees(config, trees, vocabulary)
    with torch.no_grad():
        network.vectors.normal_()
        network.scale_weights(inputs)
        nodes = [nodes_of(tree, vocabulary, config.window_depth) for tree in trees]
        outputs = [convolve(network.primary, network.vectors[one.kind], one) for one in nodes]
        before_tanh = torch.cat(outputs).atanh()
        assert before_tanh.mean(0).abs().max() < 1e-5
        assert (before_tanh.std(0) - 1).abs().max() < 1e-2
        whitened = network.secondary or network.code
        assert whitened.whitening is not None
        static = network.embed(batch_of(inputs, torch.float64)).view(len(trees), 2, -1)
        second = torch.einsum("bji,bjk->jik", static, static) / len(trees)
        eye = torch.eye(24, dtype=torch.float64)
        shrunk = second + second.diagonal(dim1=1, dim2=2).mean(1)[:, None, None] * eye
        white = whitened.whitening @ shrunk @ whitened.whitening
        assert close(white, eye.expand(2, -1, -1))
    assert (network.code.whitening is None) == bool(secondary)
    found = network(batch_of(inputs, torch.float64)).code
    slow = [naive_forward(network, one)[0] for one in nodes]
    assert close(found, torch.stack(slow))


@pytest.mark.parametrize("variant", ["paper", "per channel", "longest routed", "gated"])
def test_blocks_make_no_difference(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing_engine, "_BLOCK", 100)
    assert_equals_naive(VARIANTS[variant], [parse_file(path) for path in EXAMPLES[:2]])


def test_a_program_says_the_same_alone_and_in_company() -> None:
    trees = [parse_file(path) for path in EXAMPLES[:8]]
    vocabulary = Vocabulary.of(trees)
    for config in VARIANTS.values():
        network = TreeCaps(config, len(vocabulary), CLASSES).double()
        together = network(read(trees, vocabulary, config)).code
        alone = [network(read([tree], vocabulary, config)).code[0] for tree in trees]
        assert close(together, torch.stack(alone))


def read(trees: list[Tree], vocabulary: Vocabulary, config: TreeCapsConfig) -> Any:
    return batch_of(TreeCaps.read_trees(config, trees, vocabulary), torch.float64)


@pytest.mark.parametrize("per_channel", [False, True])
def test_coupling_can_be_read_out(per_channel: bool) -> None:
    config = replace(SMALL, per_channel=per_channel, static_iterations=2)
    trees = [parse_file(EXAMPLES[0]), Tree.build(["a"], [-1])]
    vocabulary = Vocabulary.of(trees)
    network = TreeCaps(config, len(vocabulary), CLASSES).double()
    batch = read(trees, vocabulary, config)
    shares = network.static_coupling(batch)
    static = network(batch).static
    capsules, _, weight = network._primary(batch.windows)
    for program, share in enumerate(shares):
        begin, end = batch.windows.bounds[program], batch.windows.bounds[program + 1]
        assert share.shape == (end - begin, 6, 3)
        assert close(share.sum(2), torch.ones(end - begin, 6).double())
        # The last static capsules are made with just these shares.
        u = capsules[batch.windows.window[begin:end]]
        m = weight[begin:end, None, None]
        sums = torch.einsum("nca,ndc->cad", share * m, u)
        sums = sums.flatten(0, 1) if per_channel else sums.sum(0)
        norm = sums.norm(dim=1, keepdim=True)
        assert close(norm / (1 + norm**2) * sums, static[program])
    assert close(network(batch).coupling.sum(2), torch.ones(2, static.shape[1]).double())


@pytest.mark.parametrize("variant", set(VARIANTS) - {"distinct starts"})
def test_node_by_node_it_says_the_same(variant: str) -> None:
    config = VARIANTS[variant]
    tree = parse_file(EXAMPLES[1])
    vocabulary = Vocabulary.of([tree], config.known_tokens)
    torch.manual_seed(0)
    network = TreeCaps(config, len(vocabulary), CLASSES, len(vocabulary.tokens)).double()
    if network.gate:
        torch.nn.init.normal_(network.gate.weight)
    alone = WindowsAndBags.node_by_node(tree, vocabulary, config.depths, feature=config.feature)
    batch = batch_of(alone, torch.float64)
    assert len(batch.windows.symbols.kind) == len(tree)
    show(network, [tree], vocabulary)
    expected = network(read([tree], vocabulary, config)).code
    assert close(network(batch).code, expected)
    assert close(network(batch, network.symbol_vectors(batch.windows.symbols)).code, expected)
    assert not close(
        network(batch, torch.zeros(len(tree), config.vector_size).double()).code, expected
    )


@pytest.mark.parametrize("variant", [v for v, c in VARIANTS.items() if c.has_routes])
def test_routes_lead_back_to_windows(variant: str) -> None:
    config = VARIANTS[variant]
    trees = [parse_file(EXAMPLES[0]), parse_file(EXAMPLES[4])]
    vocabulary = Vocabulary.of(trees, config.known_tokens)
    torch.manual_seed(0)
    network = TreeCaps(config, len(vocabulary), CLASSES, len(vocabulary.tokens)).double()
    batch = read(trees, vocabulary, config)
    show(network, trees, vocabulary)
    shares, code_shares = network.routes(batch)
    answer = network(batch)
    assert close(code_shares.sum(1), torch.ones(2, CLASSES).double())
    for program, (share, static) in enumerate(zip(shares, answer.static, strict=True)):
        begin, end = batch.windows.bounds[program], batch.windows.bounds[program + 1]
        there = static.norm(dim=1) > 0
        assert share.shape == (end - begin, len(static) - config.token_channels)
        assert close(share.sum(0), there[: share.shape[1]].double())
        if config.secondary:
            continue
        # What leads to a class is what its capsule is a sum of.
        layer = network.code
        weight = layer.weight.view(len(static), -1, layer.outputs, layer.output_size)
        for number in range(CLASSES):
            predictions = torch.einsum("ji,jid->jd", static, weight[:, :, number])
            parts = predictions * answer.coupling[program, :, number, None]
            whole = parts.sum(0) if layer.bias is None else parts.sum(0) + layer.bias[number]
            expected = parts @ whole / (parts @ whole).sum()
            assert close(code_shares[program, :, number], expected)
    if config.statics == 1 and config.per_channel:
        capsules, _, weight = network._primary(batch.windows)
        parts = (
            capsules[batch.windows.window[: batch.windows.bounds[1]]]
            * weight[: batch.windows.bounds[1], None, None]
        )
        whole = parts.sum(0)
        assert close(shares[0], (parts * whole).sum(1) / (whole * whole).sum(0))


@pytest.mark.parametrize("variant", ["max pooling", "published"])
def test_maxima_have_no_routes(variant: str) -> None:
    tree = parse_file(EXAMPLES[0])
    vocabulary = Vocabulary.of([tree])
    config = VARIANTS[variant]
    network = TreeCaps(config, len(vocabulary), CLASSES).double()
    with pytest.raises(UsageError, match="there are no routes"):
        network.routes(read([tree], vocabulary, config))


_LARGE = """
import resource, sys
import numpy as np, torch
from treecaps.data.vocabulary import Vocabulary
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.models.treecaps import TreeCaps
from tests.networks import batch_of
from treecaps.syntax.tree import Tree

torch.set_num_threads(1)
rng = np.random.default_rng(0)
size = 200_000
kinds = [f"kind{number}" for number in rng.integers(0, 60, size)]
parent = [-1] * size
depth = np.arange(size) % 7
path = [0] * 7
for node in range(1, size):
    parent[node] = path[depth[node] - 1] if depth[node] else 0
    path[depth[node]] = node
tree = Tree.build(kinds, parent)
vocabulary = Vocabulary.of([tree])
network = TreeCaps(TreeCapsConfig(), len(vocabulary), 10)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
batch = batch_of(TreeCaps.read_trees(network.config, [tree], vocabulary))
with torch.no_grad():
    lengths = network(batch).lengths
assert torch.isfinite(lengths).all()
network.loss(network(batch), torch.tensor([0])).backward()
taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
print(len(batch.windows.window), taken)
"""


def test_a_program_of_200_000_nodes_works_in_bounded_memory() -> None:
    command = [sys.executable, "-c", _LARGE]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    windows, megabytes = map(int, done.stdout.split())
    # Nothing but the capsules themselves, some times over, grows with the program.
    assert megabytes < 300 + 20 * windows * 1024 * 4 / 2**20


def test_refuses_capsules_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="do not divide"):
        TreeCapsConfig(channels=3, slices=5, capsule_size=4)


def test_code_capsules_learn_as_fast_with_many_classes() -> None:
    config = TreeCapsConfig(channels=8)
    moved = []
    for classes, expected in ((3, 1.0), (10, 1.0), (104, 10.4)):
        network = TreeCaps(config, 5, classes)
        assert {network.lr_multiplier(name) for name in ("vectors", "primary.weight")} == {1.0}
        multiplier = network.lr_multiplier("code.weight")
        assert multiplier == expected
        below = torch.ones(1, len(network.code.weight), config.primary_size)
        with torch.no_grad():
            network.code.weight.fill_(multiplier * 1e-3)
            moved.append(network.code(below)[0][0, 0])
    # A step of that size in every weight moves a capsule as far.
    torch.testing.assert_close(moved[2], moved[1])


def test_capsules_of_tokens_come_from_the_features_that_they_are_due_to() -> None:
    config = VARIANTS["token capsules"]
    trees = [parse_file(path) for path in EXAMPLES[:8]]
    vocabulary = Vocabulary.of(trees)
    torch.manual_seed(0)
    network = TreeCaps(config, len(vocabulary), CLASSES).double()
    show(network, trees, vocabulary)
    layer = network.tokens
    assert layer is not None
    bags = read(trees[:1], vocabulary, config).bags
    assert bags is not None
    features, shares = layer.shares(bags.offsets, bags.feature, bags.count)
    whole = layer(bags.offsets, bags.feature, bags.count)[0]
    assert close(shares.sum(0), torch.ones(config.token_channels).double())
    place, _, weight = layer.find(bags.offsets, bags.feature, bags.count)
    assert features.tolist() == layer.known[place].tolist()
    units = layer.capsules(layer.vectors[place]) * weight[:, None, None]
    sums = units.sum(0).T  # [C, D]
    along = (units * (sums / sums.norm(dim=1, keepdim=True)).T).sum(1) / sums.norm(dim=1)
    assert close(shares, along)
    norm = sums.norm(dim=1, keepdim=True)
    assert close(whole, norm / (1 + norm**2) * sums)
    nothing = torch.zeros(len(place), config.vector_size).double()
    other = layer(bags.offsets, bags.feature, bags.count, nothing)
    assert not close(other[0], whole)


def test_tokens_of_few_programs_are_not_known() -> None:
    config = VARIANTS["token capsules"]
    trees = [parse_file(path) for path in EXAMPLES[:16]]
    vocabulary = Vocabulary.of(trees)
    network = TreeCaps(replace(config, token_features=100_000), len(vocabulary), CLASSES)
    network.fit_features(network.read_trees(config, trees, vocabulary))
    programs = Counter(
        feature
        for tree in trees
        for feature in {*np.concatenate(hash_leaves(JoinedTrees([tree]))[1]).tolist()}
    )
    expected = sorted(feature for feature, count in programs.items() if count >= 6)
    assert network.tokens is not None
    assert expected
    assert network.tokens.known[: len(expected)].tolist() == expected
    assert (network.tokens.known[len(expected) :] == 2**63 - 1).all()
