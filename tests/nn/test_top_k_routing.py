"""Top-k routing against one capsule for every node, and the whole matrix at once."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from treecaps.nn import top_k_routing
from treecaps.nn.squash import squash
from treecaps.nn.top_k_routing import TopKRouting
from treecaps.nn.variable_to_static import VariableToStatic

COUNT = torch.tensor([1, 3, 1, 2, 1, 1, 4])
SIZE, CHANNELS = 3, 4


def slow(nodes: Tensor, layer: TopKRouting) -> Tensor:
    """Route capsules ``[T, C, D]`` of all nodes with every row in the matrix."""

    def largest(channel: int, most: int) -> Tensor:
        mine = nodes[:, channel]
        if layer.by_coordinate:
            return mine.sort(0, descending=True).values[:most]
        return mine[mine.norm(dim=1).argsort(descending=True, stable=True)[:most]]

    channels = range(nodes.shape[1])
    values = torch.cat([largest(channel, layer.statics) for channel in channels])
    routed = torch.cat([largest(channel, layer.routed or len(nodes)) for channel in channels])
    if layer.stop_gradient:
        routed = routed.detach()
    agreement = torch.zeros(len(routed), len(values), dtype=nodes.dtype)
    for _ in range(layer.iterations):
        agreement = agreement + routed @ values.T
        values = squash(agreement.softmax(1).T @ routed, layer.form)
    found = values.view(nodes.shape[1], -1, nodes.shape[2])
    missing = layer.statics - found.shape[1]
    return torch.nn.functional.pad(found, (0, 0, 0, missing)).flatten(0, 1)


@pytest.mark.parametrize("by_coordinate", [False, True])
@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize(("statics", "routed"), [(4, 6), (20, 25), (5, None)])
@pytest.mark.parametrize("scale", [1.0, 30.0])  # large products must not overflow
def test_it_equals_the_whole_matrix(
    by_coordinate: bool,
    stop: bool,
    iterations: int,
    statics: int,
    routed: int | None,
    scale: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(top_k_routing, "_BLOCK", 100)
    torch.manual_seed(0)
    capsules = scale * torch.randn(len(COUNT), SIZE, CHANNELS, dtype=torch.float64)
    capsules.requires_grad_()
    layer = TopKRouting(
        statics,
        routed=routed,
        iterations=iterations,
        by_coordinate=by_coordinate,
        stop_gradient=stop,
    )
    window, count = torch.arange(len(COUNT)), COUNT.double()
    found = layer(capsules, window, count, count, [0, len(COUNT)])[0]
    expected = slow(capsules.transpose(1, 2).repeat_interleave(COUNT, 0), layer)
    torch.testing.assert_close(found, expected)
    pull = torch.randn_like(expected)
    ours, theirs = (
        torch.autograd.grad((one * pull).sum(), capsules)[0] for one in (found, expected)
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_equal_rows_are_routed_once() -> None:
    capsules = torch.randn(2, SIZE, 1, dtype=torch.float64)
    place = top_k_routing._places(capsules, torch.tensor([3.0, 2.0], dtype=torch.float64), 5)
    found = top_k_routing._distinct_rows(capsules, place.unsqueeze(0))
    assert found.times.sum() == 5
    assert len(found.rows) < 5
    assert found.row.shape == (1, 1, 5)
    assert "by_coordinate=False" in repr(TopKRouting(2))


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_batch_equals_its_programs_one_by_one(
    joint: bool, dtype: torch.dtype, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(top_k_routing, "find_compiled", lambda _: None)
    torch.manual_seed(0)
    capsules = torch.randn(12, SIZE, CHANNELS, dtype=dtype, requires_grad=True)
    bounds = [0, 5, 6, 6, 9, 12]
    count = torch.tensor([2, 1, 1, 0, 1, 1, 1, 3, 1, 0, 0, 0], dtype=dtype)
    window = torch.randperm(12)
    layer = TopKRouting(4, routed=6, by_coordinate=True, joint=joint, stop_gradient=True)
    together = layer(capsules, window, count, count, bounds)
    alone = []
    for begin, end in pairwise(bounds):
        mine = (window[begin:end], count[begin:end], count[begin:end], [0, end - begin])
        groups = torch.split(capsules, CHANNELS if joint else 1, 2)
        alone.append(torch.cat([TopKRouting.forward(layer, one, *mine)[0] for one in groups]))
    torch.testing.assert_close(together, torch.stack(alone))
    pull = torch.randn_like(together)
    ours, theirs = (
        torch.autograd.grad((one * pull).sum(), capsules)[0]
        for one in (together, torch.stack(alone))
    )
    torch.testing.assert_close(ours, theirs)
    assert not together[[2, 4]].any()  # programs without nodes
    nothing = capsules[:0], window[:0], count[:0], count[:0]
    assert not layer(*nothing, [0, 0]).any()
    assert len(layer(*nothing, [0])) == 0
    assert len(TopKRouting(2)(*nothing, [0])) == 0


def test_all_channels_together_take_programs_without_capsules() -> None:
    capsules, count = torch.randn(3, 2, 2), torch.tensor([1.0, 0.0, 0.0])
    found = VariableToStatic(2)(capsules, torch.arange(3), count, count, [0, 1, 3])
    assert found.isfinite().all()
    assert not found[1].any()
