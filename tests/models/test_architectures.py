"""All architectures: trained, kept and read alike; each equal to a slow network for one tree."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC
from torch import Tensor

from tests.naive import convolve, nodes_of, route
from tests.networks import batch_of
from tests.training.examples import example_labels, example_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import InputDropout
from treecaps.models.architectures import ARCHITECTURES, get_architecture, new_model
from treecaps.models.astnn import ASTNN
from treecaps.models.capsgnn import CapsGNN
from treecaps.models.dtbcnn import DTBCNN, DependencyConvolution, DependencyTower
from treecaps.models.ggnn import GGNN
from treecaps.models.network import Logits, Network, NetworkOutput
from treecaps.models.tbcnn import TBCNN
from treecaps.models.trained import TrainedModel
from treecaps.models.tree_lstm import TreeLSTM
from treecaps.rendering.training import train
from treecaps.syntax.edges import EDGES, find_edges
from treecaps.syntax.statements import begin_statements
from treecaps.syntax.tree import Tree
from treecaps.training.presets import apply_settings, get_preset

QUICK = ("epochs=6", "batch_size=16", "rename_probability=0")
SMALL = (*QUICK, "vector_size=6")
TOKENS = r"\w+|[^\w\s]"


def test_every_architecture_has_a_preset() -> None:
    for name in ARCHITECTURES:
        preset = get_preset("default", name)
        assert type(preset.network) is get_architecture(name).config
    with pytest.raises(UsageError, match="there is no preset 'paper' of tbcnn; there is default"):
        get_preset("paper", "tbcnn")
    with pytest.raises(UsageError, match="there is no model 'x'; there are treecaps, tbcnn"):
        get_architecture("x")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_it_is_trained_kept_and_read(name: str, tmp_path: Path) -> None:
    trees, labels = example_trees(), example_labels()
    preset = apply_settings(get_preset("default", name), QUICK if "svm" in name else SMALL)
    metrics: list[dict[str, Any]] = []
    model = train(
        trees,
        labels,
        preset=preset,
        folder=tmp_path / "model",
        on_epoch=lambda _, epoch: metrics.append(epoch),
    )
    assert len(metrics) == (1 if "svm" in name else 6)
    assert metrics[-1]["loss"] < metrics[0]["loss"] or "svm" in name
    assert type(model.members[0]) is get_architecture(name).model
    again = TrainedModel.load(tmp_path / "model")
    assert again.config.untrained == preset.network
    scores = model.scores(model.read_trees(trees))
    assert np.array_equal(again.torch_engine.scores(again.read_trees(trees)), scores)
    np.testing.assert_allclose(again.scores(again.read_trees(trees)), scores, rtol=0, atol=1e-5)
    assert scores.min() >= 0
    assert scores.max() <= 1
    # No program sees another.
    alone = np.concatenate([model.scores(model.read_trees([tree])) for tree in trees])
    np.testing.assert_allclose(alone, scores, rtol=1.3e-6, atol=1e-5)
    selected = model.scores(model.read_trees(trees).select([7, 3, 3]))
    np.testing.assert_allclose(selected, scores[[7, 3, 3]], rtol=1.3e-6, atol=1e-5)
    # Graphs and subtrees stay whole.
    left = model.read_trees(trees).select([7, 3], InputDropout(np.array([1, 2]), windows=0.9))
    same = np.allclose(model.scores(left), scores[[7, 3]], atol=1e-5)
    assert same == (name not in {"treecaps", "tbcnn", "svm-tokens", "svm-windows"})


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if "svm" not in name])
def test_a_start_is_taken_over(name: str) -> None:
    trees, labels = example_trees(), example_labels()
    preset = apply_settings(get_preset("default", name), SMALL)
    still = replace(preset, training=replace(preset.training, learning_rate=1e-12))
    start = train(trees, [label if label == "gcd" else "other" for label in labels], preset=preset)
    model = train(trees, labels, preset=still, init_from=start)
    before, after = (one.members[0].state_dict() for one in (start, model))
    kept = [key for key in before if not key.startswith(model.members[0].HEAD)]
    assert len(kept) > 3
    for key in kept:
        if "vectors" not in key:
            torch.testing.assert_close(after[key], before[key])


def shown(network: Network, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    """Return the vector of each node."""
    nodes = nodes_of(tree, vocabulary, 2)
    words = network.token_vectors
    assert words is not None
    none = torch.zeros_like(network.vectors[0])
    means = [words[list(t)].mean(0) if t else none for t in nodes.tokens]
    return network.vectors[nodes.kind] + torch.stack(means)


def naive_tbcnn(network: TBCNN, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    x = shown(network, tree, vocabulary)
    nodes = nodes_of(tree, vocabulary, 2)
    for layer in network.convolutions:
        x = convolve(layer, x, nodes)[:, 0]  # type: ignore[arg-type]
    if network.parts == 1:
        pooled = x.amax(0)
    else:
        leaves = [node for node in range(len(tree)) if not len(tree.children(node))]
        mean_depth = sum(int(tree.depth[leaf]) for leaf in leaves) / len(leaves)
        slots: list[list[int]] = [[], [], []]
        for node in range(len(tree)):
            if tree.depth[node] < 0.6 * mean_depth:
                slots[0].append(node)
                continue
            end = node + len(tree.subtree(node))
            first = sum(leaf < node for leaf in leaves)
            last = sum(leaf < end for leaf in leaves)
            slots[1 if (first + last) / 2 < len(leaves) / 2 else 2].append(node)
        pooled = torch.cat([x[slot].amax(0) if slot else 0 * x[0] for slot in slots])
    logits: Tensor = network.output(network.hidden(pooled).relu())
    return logits


def naive_tree_lstm(network: TreeLSTM, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    x = network.inputs(shown(network, tree, vocabulary))
    size = network.config.hidden

    def cell(node: int) -> tuple[Tensor, Tensor]:
        below = [cell(int(child)) for child in tree.children(node)]
        total = sum((h for h, _ in below), torch.zeros(size, dtype=x.dtype))
        i, o, u = (x[node, : 3 * size] + network.states(total)).chunk(3)
        c = i.sigmoid() * u.tanh()
        for h_k, c_k in below:
            c = c + (x[node, 3 * size :] + network.forget(h_k)).sigmoid() * c_k
        return o.sigmoid() * c.tanh(), c

    logits: Tensor = network.output(cell(0)[0])
    return logits


def naive_astnn(network: ASTNN, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    x = network.encode(shown(network, tree, vocabulary))
    starts = begin_statements(tree)

    def encode(node: int, seen: list[Tensor]) -> Tensor:
        state: Tensor = x[node]
        for child in tree.children(node):
            if not starts[child]:
                state = state + encode(int(child), seen)
        seen.append(state)
        return state

    statements = []
    for node in range(len(tree)):
        if starts[node]:
            seen: list[Tensor] = []
            encode(node, seen)
            statements.append(torch.stack(seen).amax(0))
    assert len(statements) > 1
    states, _ = network.sequence(torch.stack(statements))
    logits: Tensor = network.output(states.amax(0))
    return logits


def naive_ggnn(network: GGNN, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    x = network.inputs(shown(network, tree, vocabulary))
    h = x
    edges = find_edges(tree)
    for _ in range(network.config.steps):
        heard = [torch.zeros_like(h[0]) for _ in h]
        for number, kind in enumerate(EDGES):
            for one, other in edges[kind].tolist():
                heard[other] = heard[other] + h[one] @ network.edges[2 * number]
                heard[one] = heard[one] + h[other] @ network.edges[2 * number + 1]
        h = network.cell(torch.stack(heard), h)
    total = torch.zeros_like(h[0])
    for state, own in zip(h, x, strict=True):
        gate, value = network.attend(torch.cat([state, own])).chunk(2)
        total = total + gate.sigmoid() * value.tanh()
    logits: Tensor = network.output(total / len(tree) ** 0.5)
    return logits


def naive_tower(tower: DependencyTower, x: Tensor, tree: Tree) -> Tensor:
    edges = find_edges(tree)
    for layer in tower.convolutions:
        assert isinstance(layer, DependencyConvolution)
        rows = []
        for node in range(len(tree)):
            y = layer.top(x[node])
            children = tree.children(node).tolist()
            for place, child in enumerate(children):
                right = place / (len(children) - 1) if len(children) > 1 else 0.5
                y = y + (1 - right) * layer.left(x[child]) + right * layer.right(x[child])
            others = [
                other
                for kind in ("LastWrite", "ComputedFrom", "GuardedBy", "GuardedByNegation")
                for one, other in edges[kind].tolist()
                if one == node
            ]
            for other in others:
                y = y + layer.depends(x[other]) / len(others)
            rows.append(y.tanh())
        x = torch.stack(rows)
    found: Tensor = tower.hidden(x.amax(0)).relu()
    return found


def naive_dtbcnn(network: DTBCNN, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    x = shown(network, tree, vocabulary)
    logits: Tensor = network.output(naive_tower(network.tower, x, tree))
    return logits


def naive_capsgnn(network: CapsGNN, tree: Tree, vocabulary: Vocabulary) -> Tensor:
    """Return the lengths of class capsules."""
    h = shown(network, tree, vocabulary)
    size = len(tree)
    adjacent = torch.eye(size, dtype=h.dtype)
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            adjacent[node, parent] = adjacent[parent, node] = 1
    scale = torch.diag(adjacent.sum(1) ** -0.5)
    found = []
    for layer in network.convolutions:
        h = (scale @ adjacent @ scale @ layer(h)).tanh()
        found += list(h.view(size, network.config.channels, -1).unbind(1))
    nodes = torch.stack(found, 1)
    nodes = nodes * network.attention(nodes.flatten(1)).tanh().softmax(0)[:, :, None]
    config = network.config
    votes = [
        (nodes[n, c] @ network.votes[c]).view(config.graph_capsules, -1)
        for n in range(size)
        for c in range(nodes.shape[1])
    ]
    graph, _ = route(torch.stack(votes), config.graph_iterations, "sabour")
    layer = network.classes
    weight = layer.weight.view(len(graph), -1, layer.outputs, layer.output_size)
    predictions = torch.einsum("ji,jimd->jmd", graph, weight)
    lengths: Tensor = route(predictions, layer.iterations, "sabour")[0].norm(dim=1)
    return lengths


NAIVE: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "tbcnn": (naive_tbcnn, ("convolutions=7,5",)),
    "tbcnn, three parts": (naive_tbcnn, ("convolutions=7", "pooling=three")),
    "tree-lstm": (naive_tree_lstm, ("hidden=7",)),
    "ggnn": (naive_ggnn, ("hidden=7", "steps=2")),
    "dtbcnn": (naive_dtbcnn, ("convolutions=7,5", "hidden=6")),
    "capsgnn": (naive_capsgnn, ("capsule_size=3", "channels=2", "graph_capsules=4", "layers=2")),
    "astnn": (naive_astnn, ("encoded=7", "hidden=5")),
}


@pytest.mark.parametrize("variant", NAIVE)
def test_it_equals_a_network_for_one_tree(variant: str) -> None:
    name = variant.partition(",")[0]
    naive, settings = NAIVE[variant]
    trees = [tree for tree in example_trees() if len(tree) < 400][::5]
    vocabulary = Vocabulary.of(trees, 500)
    config = apply_settings(get_preset("default", name), ["vector_size=6", *settings]).network
    torch.manual_seed(0)
    network = new_model(config, len(vocabulary), 4, len(vocabulary.tokens)).double().eval()
    batch = batch_of(network.read_trees(config, trees, vocabulary), torch.float64)
    label = torch.arange(len(trees)) % 4
    answer = network(batch)
    expected = torch.stack([naive(network, tree, vocabulary) for tree in trees])
    wanted = Logits.of(expected) if isinstance(answer, Logits) else NetworkOutput(expected)
    torch.testing.assert_close(answer.scores, wanted.scores)
    weights = list(network.parameters())
    ours = torch.autograd.grad(network.loss(answer, label), weights)
    theirs = torch.autograd.grad(network.loss(wanted, label), weights)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as it is imported
def test_gated_propagation_equals_that_of_pytorch_geometric() -> None:
    from torch_geometric.nn import GatedGraphConv

    trees = example_trees()[:3]
    vocabulary = Vocabulary.of(trees, 500)
    config = apply_settings(get_preset("default", "ggnn"), ["hidden=7", "steps=3"]).network
    torch.manual_seed(0)
    network = new_model(config, len(vocabulary), 4, len(vocabulary.tokens)).double()
    assert isinstance(network, GGNN)
    graphs = batch_of(network.read_trees(network.config, trees, vocabulary), torch.float64)
    theirs = GatedGraphConv(7, num_layers=3).double()
    theirs.rnn.load_state_dict(network.cell.state_dict())
    # It knows one kind of edges, in one direction.
    kind = EDGES.index("NextToken")
    with torch.no_grad():
        theirs.weight.copy_(network.edges[2 * kind])
        network.edges[: 2 * kind] = 0
        network.edges[2 * kind + 1 :] = 0
    states = torch.randn(len(graphs.symbol), 7, dtype=torch.float64)
    expected = theirs(states, torch.stack(graphs.edges[kind]))
    torch.testing.assert_close(network.propagate(states, graphs), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as it is imported
def test_graph_convolution_equals_that_of_pytorch_geometric() -> None:
    from torch_geometric.nn import GCNConv

    trees = example_trees()[:3]
    vocabulary = Vocabulary.of(trees)
    settings = ["nodes=kinds", "vector_size=6", "layers=2"]
    config = apply_settings(get_preset("default", "capsgnn"), settings).network
    torch.manual_seed(0)
    network = new_model(config, len(vocabulary), 4).double()
    assert isinstance(network, CapsGNN)
    graphs = batch_of(network.read_trees(network.config, trees, vocabulary), torch.float64)
    there = torch.stack(graphs.edges[EDGES.index("Child")])
    edges = torch.cat([there, there.flip(0)], 1)
    states = torch.randn(len(graphs.symbol), 6, dtype=torch.float64)
    expected, layer = [], states
    for ours in network.convolutions:
        assert isinstance(ours, torch.nn.Linear)
        theirs = GCNConv(ours.in_features, ours.out_features, bias=False).double()
        theirs.lin.load_state_dict(ours.state_dict())
        layer = theirs(layer, edges).tanh()
        expected.append(layer)
    found = network._convolve(states, graphs)
    torch.testing.assert_close(found.flatten(1), torch.cat(expected, 1))


@pytest.mark.parametrize("name", ["svm-tokens", "svm-windows"])
@pytest.mark.parametrize("classes", [2, 4])
def test_linear_machines_equal_those_of_scikit_learn(name: str, classes: int) -> None:
    trees = example_trees()
    labels = [label if classes == 4 else str(label == "gcd") for label in example_labels()]
    learn, score = slice(0, None, 2), slice(1, None, 2)
    preset = apply_settings(get_preset("default", name), ["val_share=0"])
    model = train(trees[learn], labels[learn], preset=preset)
    scores = torch.from_numpy(model.scores(model.read_trees(trees[score])))

    def spell(tree: Tree) -> str:
        if name == "svm-tokens":
            return tree.text.decode()
        kinds = tree.kind_names()
        windows = [
            "|".join([kind, *(kinds[child] for child in tree.children(node))])
            for node, kind in enumerate(kinds)
        ]
        return "\n".join(windows)

    words = {"token_pattern": TOKENS, "ngram_range": (1, 2)}
    weigh = TfidfVectorizer(
        sublinear_tf=True,
        lowercase=False,
        **(words if name == "svm-tokens" else {"token_pattern": ".+"}),
    )
    machine = LinearSVC(random_state=0).fit(
        weigh.fit_transform(map(spell, trees[learn])), labels[learn]
    )
    distances = machine.decision_function(weigh.transform(map(spell, trees[score])))
    if classes == 2:
        distances = np.stack([-distances, distances], 1)
    expected = torch.from_numpy(distances).softmax(1).float()
    torch.testing.assert_close(scores, expected, rtol=1e-3, atol=1e-4)


def test_linear_machines_learn_from_blind_programs_and_are_resumed(tmp_path: Path) -> None:
    trees, labels = example_trees(), example_labels()
    preset = apply_settings(get_preset("default", "svm-tokens"), ["rename_probability=0.5"])
    folder = tmp_path / "model"

    class StopError(Exception): ...

    def stop(*_: Any) -> None:
        raise StopError

    with pytest.raises(StopError):
        train(trees, labels, preset=preset, folder=folder, on_epoch=stop)
    model = train(trees, labels, preset=preset, folder=folder, resume=True)
    assert "validation_accuracy_blind" in model.card["metrics"]
    again = train(trees, labels, preset=preset, folder=folder, resume=True)
    assert again.fingerprint() == model.fingerprint()
    with pytest.raises(UsageError, match="a linear model cannot be fine-tuned"):
        train(trees, labels, preset=preset, init_from=model)


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("capsgnn", "layers"),
        ("capsgnn", "graph_iterations"),
        ("capsgnn", "class_iterations"),
        ("ggnn", "steps"),
    ],
)
def test_what_is_done_again_and_again_is_bounded(model: str, setting: str) -> None:
    with pytest.raises(UsageError, match=f"{setting} must be at most"):
        apply_settings(get_preset("default", model), [f"{setting}=1001"])
