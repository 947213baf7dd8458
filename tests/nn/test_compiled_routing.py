"""The compiled competition against the one in PyTorch, in twice the precision."""

from typing import Any

import pytest
import torch

from treecaps.nn import top_k_routing
from treecaps.nn.compiled_routing import CompiledCompetition
from treecaps.nn.top_k_routing import Competition, TopKRouting


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("rows", "statics", "size"), [(1, 1, 1), (7, 3, 2), (8, 600, 3), (41, 1100, 8), (100, 37, 16)]
)
@pytest.mark.parametrize("longest", [1.0, 7.7])  # products up to 60, where the compiled one ends
def test_it_equals_the_one_in_pytorch(
    threads: int, rows: int, statics: int, size: int, longest: float
) -> None:
    torch.manual_seed(rows)
    units, total = (
        longest * torch.nn.functional.normalize(torch.randn(count, size))
        for count in (rows, statics)
    )
    times, copies = (torch.randint(1, 5, (count,)).float() for count in (rows, statics))
    gradient = torch.randn(statics, size)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = run(CompiledCompetition, units, times, total, copies, gradient)
    finally:
        torch.set_num_threads(before)
    doubles = [one.double() for one in (units, times, total, copies, gradient)]
    expected = run(Competition, *doubles)
    for ours, theirs in zip(found, expected, strict=True):
        scale = theirs.abs().max().clamp(min=1)
        torch.testing.assert_close(ours.double() / scale, theirs / scale, rtol=1e-5, atol=1e-5)


def run(
    function: type[torch.autograd.Function], *values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    units, times, total, copies, gradient = values
    total = total.clone().requires_grad_()
    sums = function.apply(units, times, total, copies)  # type: ignore[no-untyped-call]
    return sums.detach(), torch.autograd.grad(sums, total, gradient)[0]


@pytest.mark.parametrize(
    ("changes", "compiled"),
    [
        ({}, True),
        ({"scale": 30.0}, False),  # products that would overflow
        ({"scale": float("nan")}, False),
        ({"stop": False}, False),  # routed capsules need a gradient
        ({"dtype": torch.float64}, False),
    ],
)
def test_it_is_taken_where_it_can_be(
    changes: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real: Any = CompiledCompetition.apply

    def apply(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(CompiledCompetition, "apply", apply)
    options: dict[str, Any] = {"scale": 1.0, "stop": True, "dtype": torch.float32} | changes
    capsules = torch.randn(5, 3, 2, dtype=options["dtype"]) * options["scale"]
    layer = TopKRouting(4, routed=4, stop_gradient=options["stop"])
    count = torch.ones(5, dtype=capsules.dtype)
    layer(capsules.requires_grad_(), torch.arange(5), count, count, [0, 5])
    assert bool(calls) is compiled


def test_without_numba_pytorch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    capsules, count = torch.randn(6, 3, 2), torch.tensor([1.0, 2, 1, 1, 3, 1])
    layer = TopKRouting(4, routed=5, stop_gradient=True)
    arguments = (capsules, torch.arange(6), count, count, [0, 6])
    with_numba = layer(*arguments)
    monkeypatch.setattr(top_k_routing, "_has_numba", lambda: False)
    monkeypatch.setattr(CompiledCompetition, "apply", None)
    torch.testing.assert_close(layer(*arguments), with_numba, rtol=1e-5, atol=1e-6)
