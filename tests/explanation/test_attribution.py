"""What nodes, tokens and lines have to do with an answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import treecaps
from tests.conftest import EXAMPLES
from tests.networks import batch_of, members_of
from tests.training.examples import example_labels, example_trees, small
from treecaps.errors import UsageError
from treecaps.explanation.attribution import METHODS, Method, attribute
from treecaps.explanation.explanation import explain
from treecaps.explanation.spreading import Contributions, spread, to_leaves, to_tokens
from treecaps.inputs.bags import hash_leaves
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.trained import TrainedModel, load
from treecaps.models.treecaps import TreeCaps
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return load("algorithms")


def test_routes_lead_all_of_a_capsule_back(model: TrainedModel) -> None:
    for path in EXAMPLES[::10]:
        found = explain(model, path, method="routing")
        assert found.method == "routing"
        assert found.nodes.shape == (len(found.tree),)
        assert found.nodes.sum() == pytest.approx(found.classification.length, abs=1e-4)
        assert found.tokens.sum() == pytest.approx(found.classification.length, abs=1e-4)
        assert found.lines.sum() == pytest.approx(found.classification.length, abs=1e-4)


def test_routes_of_shared_windows_are_those_of_each_node(model: TrainedModel) -> None:
    tree = example_trees()[7]
    (network,) = model.members
    assert isinstance(network, TreeCaps)
    config = network.config
    batch = batch_of(
        WindowsAndBags.node_by_node(tree, model.vocabulary, config.depths, feature=config.feature)
    )
    (shares,), code_shares = network.routes(batch)
    number = model.labels.index("gcd")
    length = float(model.scores(model.read_trees([tree]))[0, number])
    due = code_shares[0, :, number] * length
    windows = (shares @ due[: shares.shape[1]]).double().numpy()
    expected = spread(tree, windows, len(config.depths))
    assert network.tokens is not None
    assert batch.bags is not None
    features, of_tokens = network.tokens.shares(
        batch.bags.offsets, batch.bags.feature, batch.bags.count
    )
    tokens = (of_tokens @ due[shares.shape[1] :]).double().numpy()
    expected = expected + to_leaves(tree, features.numpy(), tokens)
    found = attribute(model, tree, "gcd", "routing")
    np.testing.assert_allclose(found, expected, atol=1e-6)


def walk_slowly(model: TrainedModel, tree: Tree, number: int) -> Contributions:
    """Integrate gradients in a thousand small steps."""
    (network,) = model.members
    assert isinstance(network, TreeCaps)
    config = network.config
    batch = batch_of(
        WindowsAndBags.node_by_node(tree, model.vocabulary, config.depths, feature=config.feature)
    )
    vectors = [network.symbol_vectors(batch.windows.symbols).detach()]
    if network.tokens and batch.bags:
        features, _, _ = network.tokens.find(
            batch.bags.offsets, batch.bags.feature, batch.bags.count
        )
        vectors.append(network.tokens.vectors[features].detach())
    totals = [torch.zeros(len(one)) for one in vectors]
    for step in range(1000):
        here = [((step + 0.5) / 1000 * one).requires_grad_() for one in vectors]
        slopes = torch.autograd.grad(network(batch, *here).scores[0, number], here)
        for total, slope, one in zip(totals, slopes, vectors, strict=True):
            total.add_((slope * one).sum(1) / 1000)
    nodes, *tokens = (total.double().numpy() for total in totals)
    if tokens and network.tokens:
        nodes = nodes + to_leaves(tree, network.tokens.known[features].numpy(), tokens[0])
    return nodes


@pytest.mark.parametrize(
    "settings", [("hidden=8",), ("nodes=kinds+tokens", "token_channels=6", "token_features=300")]
)
def test_gradients_are_those_of_many_small_steps(settings: tuple[str, ...]) -> None:
    """Of networks with one static capsule a channel: with several, the length makes a jump where
    another capsule begins to be among the longest, which gradients do not see.
    """
    trees = example_trees()
    model = train(trees, example_labels(), preset=small("statics=1", "epochs=8", *settings))
    tree, number = trees[0], model.labels.index("gcd")
    found = attribute(model, tree, "gcd", "gradients")
    slow = walk_slowly(model, tree, number)
    np.testing.assert_allclose(found, slow, atol=0.05 * np.abs(slow).max())
    (network,) = model.members
    assert isinstance(network, TreeCaps)
    whole = model.scores(model.read_trees([tree]))[0, number].item()
    weights = [network.vectors, network.token_vectors]
    weights += [network.tokens.vectors] if network.tokens else []
    kept = [(weight, weight.detach().clone()) for weight in weights if weight is not None]
    with torch.no_grad():
        for weight, _ in kept:
            weight.zero_()
        without = model.scores(model.read_trees([tree]))[0, number].item()
        for weight, value in kept:
            weight.copy_(value)
    assert found.sum() == pytest.approx(whole - without, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_said_of_an_ensemble_is_the_mean(method: Method) -> None:
    trees, labels = example_trees(), example_labels()
    both = train(trees, labels, preset=small("epochs=1"), ensemble=2)
    alone = members_of(both)
    parts = [attribute(one, trees[3], "stack", method) for one in alone]
    expected = sum(weight * part for weight, part in zip(both.engine.weights, parts, strict=True))
    np.testing.assert_allclose(attribute(both, trees[3], "stack", method), expected, atol=1e-9)


@pytest.mark.parametrize("reach", [0, 1, 3])
def test_windows_share_with_their_nodes(reach: int) -> None:
    tree = example_trees()[2]
    windows = np.random.default_rng(0).normal(size=len(tree))
    expected = np.zeros(len(tree))
    for top in range(len(tree)):
        inside = [top]
        last = [top]
        for _ in range(reach):
            last = [child for node in last for child in tree.children(node).tolist()]
            inside += last
        for node in inside:
            expected[node] += windows[top] / len(inside)
    np.testing.assert_allclose(spread(tree, windows, reach), expected)


def test_leaves_get_what_is_due_to_those_above() -> None:
    #     0
    #   1   4
    #  2 3
    tree = Tree.build(["a"] * 5, [-1, 0, 1, 1, 0])
    found = to_tokens(tree, np.array([3.0, 2.0, 0.5, 0.25, 1.0]))
    np.testing.assert_allclose(found, [0, 0, 1 + 1 + 0.5, 1 + 1 + 0.25, 1 + 1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("code", ["zzqqy", "\n", "é"])
def test_programs_without_known_tokens_are_explained(
    model: TrainedModel, code: str, method: Method
) -> None:
    found = attribute(model, treecaps.parse_code(code, "python"), "gcd", method)
    assert np.isfinite(found).all()


def test_other_classes_and_unknown_programs_are_explained_too(model: TrainedModel) -> None:
    tree = treecaps.parse_code("x = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n", "python")
    found = explain(model, tree)
    assert not found.classification.known
    assert found.label == found.classification.guess
    assert len(found.lines) == 2
    other = explain(model, tree, label="gcd")
    assert other.label == "gcd"
    with pytest.raises(UsageError, match="the model knows no class 'gcdd'; did you mean gcd\\?"):
        explain(model, tree, label="gcdd")
    with pytest.raises(UsageError, match="there is no method 'x'; there are gradients and"):
        explain(model, tree, method="x")  # type: ignore[arg-type]


def test_an_empty_program_is_not_explained(model: TrainedModel) -> None:
    with pytest.raises(UsageError, match=r"a\.py is empty: there is nothing to explain"):
        explain(model, Program("# gcd\n", "python", id="a.py"), label="gcd")


def test_what_has_no_class_is_explained_if_one_is_chosen(model: TrainedModel) -> None:
    little = Program("app = 1\n", "python", id="a.py")
    model = replace(model, calibration=replace(model.calibration, min_nodes=24))
    with pytest.raises(
        UsageError, match=r"a\.py has no class to explain: there is too little code"
    ):
        explain(model, little)
    found = explain(model, little, label="gcd")
    assert (found.label, found.classification.guess) == ("gcd", None)


def test_only_treecaps_is_explained() -> None:
    preset = apply_settings(get_preset("default", "tbcnn"), ["epochs=1", "rename_probability=0"])
    other = train(example_trees(), example_labels(), preset=preset)
    with pytest.raises(UsageError, match="only the architecture treecaps can be explained"):
        explain(other, example_trees()[0])


def test_trees_by_another_front_end_are_refused(model: TrainedModel) -> None:
    tree = treecaps.parse_code("x = 1\n", "python", frontend="ast")
    with pytest.raises(UsageError, match="wants a tree by tree-sitter, not by ast"):
        explain(model, tree)


def test_large_programs_are_explained_by_routing_where_there_is_any(model: TrainedModel) -> None:
    little, large = (treecaps.parse_code("x = 1\n" * count, "python") for count in (10, 600))
    for tree, method in ((little, "gradients"), (large, "routing")):
        assert explain(model, tree).method == method
    maxima = small("pooling=max", "statics=1", "per_channel=false", "epochs=1")
    other = train(example_trees()[::4], example_labels()[::4], preset=maxima)
    assert explain(other, large).method == "gradients"


@pytest.fixture(scope="module")
def with_tokens() -> TrainedModel:
    preset = small("epochs=5", "nodes=kinds+tokens", "token_channels=6", "token_features=300")
    return train(example_trees(), example_labels(), preset=preset)


def test_tokens_have_their_part_by_routing(with_tokens: TrainedModel) -> None:
    for path in EXAMPLES[::12]:
        found = explain(with_tokens, path, method="routing")
        assert found.nodes.sum() == pytest.approx(found.classification.length, abs=1e-4)
    (network,) = with_tokens.members
    assert isinstance(network, TreeCaps)
    config = network.config
    windows = config.statics * config.channels * config.slices // config.primary_size
    tree = found.tree
    routes = {route.capsule: route for route in found.routes}
    of_tokens = [route for capsule, route in routes.items() if capsule >= windows]
    assert of_tokens
    leaves = set(hash_leaves(JoinedTrees([tree]))[0].tolist())
    assert all(node in leaves for route in of_tokens for node, _ in route.nodes)


def test_features_share_with_their_leaves() -> None:
    tree = treecaps.parse_code("a + a\n", "python")
    leaf, (single, pairs, triples) = hash_leaves(JoinedTrees([tree]))
    assert [tree.token(node) for node in leaf.tolist()] == ["a", "+", "a"]
    assert single[0] == single[2]
    due = {single[0]: 1.0, single[1]: 2.0, pairs[1]: 0.5, triples[0]: 0.3}
    features = sorted(due)
    values = np.array([due[feature] for feature in features])
    found = to_leaves(tree, np.array(features), values)
    np.testing.assert_allclose(found[leaf], [0.6, 2.35, 0.85])
    assert found.sum() == pytest.approx(3.8)
