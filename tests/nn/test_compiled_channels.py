"""The compiled round of routing against the one in PyTorch, in twice the precision."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from treecaps.nn import routing_engine
from treecaps.nn.compiled_channels import CompiledRoute
from treecaps.nn.routing_engine import Route


def run(
    function: type[torch.autograd.Function],
    values: list[Tensor],
    present: Tensor,
    window: Tensor,
    bounds: list[int],
) -> list[Tensor]:
    """Return the sums and all gradients."""
    leaves = [one.clone().requires_grad_() for one in values[:3]]
    sums = function.apply(*leaves, present, window, bounds)  # type: ignore[no-untyped-call]
    return [sums.detach(), *torch.autograd.grad(sums, leaves, values[3])]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("size", "channels"), [(1, 1), (3, 5), (8, 64), (12, 30)])
@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("by_channel", [False, True])
def test_it_equals_the_one_in_pytorch(
    threads: int, size: int, channels: int, others: int, by_channel: bool
) -> None:
    torch.manual_seed(size)
    bounds = [0, 7, 7, 20, 21]
    values = [
        torch.randn(9, size, channels).tanh(),
        torch.rand(21, channels if by_channel else 1) * 3,
        torch.randn(4, others, size, channels),
        torch.randn(4, others, size, channels),
    ]
    present = torch.ones(4, others, dtype=torch.bool)
    present[3] = False
    window = torch.randint(9, (21,))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = run(CompiledRoute, values, present, window, bounds)
    finally:
        torch.set_num_threads(before)
    expected = run(Route, [one.double() for one in values], present, window, bounds)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [CompiledRoute, Route])
def test_large_products_do_not_overflow(function: type[torch.autograd.Function]) -> None:
    """Of two static capsules beside the first, in three channels."""
    capsules = torch.ones(1, 1, 3)
    differences = torch.tensor([[[[500.0, -500.0, 90.0]], [[499.0, -600.0, 75.0]]]])
    there = torch.ones(1, 2, dtype=torch.bool)
    sums = function.apply(  # type: ignore[no-untyped-call]
        capsules, torch.ones(1, 1), differences, there, torch.zeros(1, dtype=torch.long), [0, 1]
    )
    share = 1 / (1 + math.exp(-1))
    expected = torch.tensor([[[[share, 0.0, 1.0]], [[1 - share, 0.0, 0.0]]]])
    torch.testing.assert_close(sums, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [CompiledRoute, Route])
def test_what_is_no_number_stays_none(function: type[torch.autograd.Function]) -> None:
    capsules = torch.full((1, 1, 2), torch.nan, requires_grad=True)
    there = torch.ones(1, 1, dtype=torch.bool)
    window = torch.zeros(1, dtype=torch.long)
    sums = function.apply(  # type: ignore[no-untyped-call]
        capsules, torch.ones(1, 1), torch.ones(1, 1, 1, 2), there, window, [0, 1]
    )
    assert sums.isnan().all()
    assert torch.autograd.grad(sums.sum(), capsules)[0].isnan().all()


@pytest.mark.parametrize(
    ("dtype", "size", "compiled"),
    [(torch.float32, 3, True), (torch.float64, 3, False), (torch.float32, 1024, False)],
)
def test_it_is_taken_where_it_can_be(
    dtype: torch.dtype, size: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    real: Any = CompiledRoute.apply

    def apply(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(CompiledRoute, "apply", apply)
    capsules, ones = torch.randn(2, size, 4, dtype=dtype), torch.ones(2, 1, dtype=dtype)
    differences, there = torch.randn(1, 1, size, 4, dtype=dtype), torch.ones(1, 1, dtype=torch.bool)
    arguments = (capsules, ones, differences, there, torch.arange(2), [0, 2])
    found = routing_engine.route(*arguments)
    assert bool(calls) is compiled
    monkeypatch.setattr(routing_engine, "find_compiled", lambda _: None)
    torch.testing.assert_close(routing_engine.route(*arguments), found)
