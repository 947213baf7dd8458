import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.conftest import EXAMPLES
from tests.networks import batch_of
from treecaps import parse_code, parse_file
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.node_graphs import NodeGraphs
from treecaps.inputs.windows import Windows
from treecaps.models.architectures import new_model
from treecaps.models.ggnn import GGNN, GGNNConfig
from treecaps.models.light import readout as light
from treecaps.models.light.engine import NumpyEngine
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn import node_readout
from treecaps.nn.node_readout import FLOW, READ_EDGES, NodeReadout
from treecaps.syntax.edges import find_edges
from treecaps.syntax.tree import Tree

TREES = [parse_file(path) for path in EXAMPLES[:8]]
VOCABULARY = Vocabulary.of(TREES, 100)
CONFIG = TreeCapsConfig(
    nodes="kinds+tokens",
    vector_size=6,
    hidden=(6,),
    residual=True,
    channels=3,
    slices=4,
    capsule_size=4,
    statics=2,
    readout=5,
    readout_rounds=2,
)
KINDS = 7


def treecaps(config: TreeCapsConfig = CONFIG) -> TreeCaps:
    torch.manual_seed(0)
    network = new_model(config, len(VOCABULARY), KINDS, len(VOCABULARY.tokens)).eval()
    assert isinstance(network, TreeCaps)
    return network


def naive(readout: NodeReadout, x: Tensor, program: Tensor | None, tree: Tree) -> list[Tensor]:
    """The scores of one tree, node by node."""
    states = [functional.relu(readout.inputs(one)) for one in x]
    edges = find_edges(tree)
    flow = len(readout.edges) == len(READ_EDGES)
    for layer, norm in zip(readout.rounds, readout.norms, strict=True):
        after = []
        for node, state in enumerate(states):
            heard = [state]
            for name in READ_EDGES:
                if name == FLOW and not flow:
                    continue
                pairs = edges[name].tolist()
                for others in (
                    [source for source, target in pairs if target == node],
                    [target for source, target in pairs if source == node],
                ):
                    mean = torch.stack([states[other] for other in others]).mean(0) if others else 0
                    heard.append(mean + torch.zeros_like(state))
            after.append(norm(state + functional.relu(layer(torch.cat(heard)))))
        states = after
    about = [] if program is None or readout.program is None else [readout.program(program)]
    bug = [readout.bug(torch.cat([state, *about])) for state in states]
    none = readout.none(torch.cat([torch.stack(states).mean(0), *about]))
    return [torch.cat(bug), none, torch.stack([readout.kinds(state) for state in states])]


@pytest.mark.parametrize("flow", [True, False])
@pytest.mark.parametrize("program", [0, 4])
def test_it_equals_a_loop_over_nodes(program: int, flow: bool) -> None:
    torch.manual_seed(1)
    readout = NodeReadout(8, program, 5, 2, KINDS, flow=flow).eval()
    for norm in readout.norms:
        assert isinstance(norm, nn.LayerNorm)
        nn.init.normal_(norm.weight)
    some = [parse_code(code, "python") for code in ("x = 1\ny = x + x\n", "f(a)", "")]
    graph = batch_of(NodeGraphs.from_trees(some, VOCABULARY)).graph
    x = torch.randn(len(graph.symbol), 8)
    about = torch.randn(3, program) if program else None
    with torch.no_grad():
        found = readout(x, about, graph)
        parts = torch.split(x, [len(tree) for tree in some])
        slow = [
            naive(readout, parts[row], None if about is None else about[row], tree)
            for row, tree in enumerate(some)
        ]
    for value, expected in zip(found, zip(*slow, strict=True), strict=True):
        torch.testing.assert_close(value, torch.cat(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("flow", [True, False])
def test_the_light_engine_says_the_same(static: bool, flow: bool) -> None:
    config = TreeCapsConfig(
        **{**vars(CONFIG), "readout_static": static, "readout_flow": flow, "readout_rounds": 3}
    )
    network = treecaps(config)
    engine = TorchEngine([network, treecaps(config)], [0.25, 0.75], KINDS)
    numpy = NumpyEngine.build(config, engine.weights, VOCABULARY, KINDS, engine.arrays())
    inputs = engine.read_trees(TREES, VOCABULARY)
    expected, found = engine.score_bugs(inputs), numpy.score_bugs(inputs)
    for name in ("offsets", "bug", "none", "kinds"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_what_the_light_engine_repeats_is_the_same() -> None:
    for name in ("READ_EDGES", "FLOW", "EPSILON"):
        assert getattr(light, name) == getattr(node_readout, name)


def test_no_program_sees_another() -> None:
    engine = TorchEngine([treecaps()], [1.0], KINDS)
    together = engine.score_bugs(engine.read_trees(TREES, VOCABULARY))
    for row in (0, 5):
        alone = engine.score_bugs(engine.read_trees([TREES[row]], VOCABULARY))
        begin, end = together.offsets[row : row + 2]
        np.testing.assert_allclose(alone.bug, together.bug[begin:end], rtol=0, atol=1e-5)
        np.testing.assert_allclose(alone.none, together.none[[row]], rtol=0, atol=1e-5)


def test_windows_of_all_nodes_make_the_same_static_capsules() -> None:
    plain = TreeCapsConfig(**{**vars(CONFIG), "readout": 0, "counts": "exact"})
    network, other = treecaps(), treecaps(plain)
    shared = {name: network.state_dict()[name] for name in other.state_dict() if "code" not in name}
    other.load_state_dict(shared, strict=False)
    with torch.no_grad():
        for tree in TREES[:4]:
            nodes = batch_of(network.read_trees(CONFIG, [tree], VOCABULARY))
            windows = batch_of(other.read_trees(plain, [tree], VOCABULARY))
            torch.testing.assert_close(
                network.embed(nodes), other.embed(windows), rtol=1e-4, atol=1e-5
            )


def test_windows_are_those_of_nodes() -> None:
    some = TREES[2:5]
    nodes = NodeGraphs.from_trees(some, VOCABULARY, 2).select([2, 0, 1])
    found = nodes.to_tensors(np.asarray)
    begin = 0
    for tree in (some[2], some[0], some[1]):
        slow = Windows.node_by_node(tree, VOCABULARY, (2, 2)).to_tensors(np.asarray)
        end = begin + len(tree)
        for layer, expected in zip(found.windows.layers, slow.layers, strict=True):
            rows = slice(layer.offsets[begin], layer.offsets[end])
            assert np.array_equal(
                np.diff(layer.offsets[begin : end + 1]), np.diff(expected.offsets)
            )
            for name in ("top", "left", "right"):
                assert np.array_equal(getattr(layer, name)[rows], getattr(expected, name))
        rows = slice(found.windows.layers[1].offsets[begin], found.windows.layers[1].offsets[end])
        assert np.array_equal(found.windows.layers[1].member[rows] - begin, slow.layers[1].member)
        begin = end


def test_ggnn_has_the_same_read_out() -> None:
    torch.manual_seed(0)
    config = GGNNConfig(nodes="kinds+tokens", vector_size=6, hidden=4, readout=5)
    network = new_model(config, len(VOCABULARY), KINDS, len(VOCABULARY.tokens)).eval()
    assert isinstance(network, GGNN)
    engine = TorchEngine([network], [1.0], KINDS)
    found = engine.score_bugs(engine.read_trees(TREES, VOCABULARY))
    assert len(found.bug) == sum(map(len, TREES))
    assert found.kinds.shape == (len(found.bug), KINDS)


def test_a_network_without_one_says_so() -> None:
    config = TreeCapsConfig(vector_size=6)
    network = new_model(config, len(VOCABULARY), 3)
    with pytest.raises(UsageError, match="no read-out for nodes"):
        network.score_bugs(batch_of(network.read_trees(config, TREES[:1], VOCABULARY)))
    ggnn = GGNN(GGNNConfig(), len(VOCABULARY), 3)
    with pytest.raises(UsageError, match="no read-out for nodes"):
        ggnn.score_bugs(batch_of(ggnn.read_trees(GGNNConfig(), TREES[:1], VOCABULARY)))


@pytest.mark.parametrize("setting", [{"counts": "log"}, {"window_depth": 3}])
def test_it_needs_every_node(setting: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="a read-out for nodes takes windows of depth 2"):
        TreeCapsConfig(readout=5, **setting)  # type: ignore[arg-type]
