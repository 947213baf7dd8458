"""RAdam in one pass against PyTorch's."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from treecaps.training.radam import RAdam

Weights = list[torch.nn.Parameter]


def descend(
    make: Callable[[list[dict[str, Any]]], torch.optim.Optimizer],
    steps: range,
    state: dict[str, Any] | None = None,
    weights: Weights | None = None,
) -> tuple[Weights, dict[str, Any]]:
    if weights is None:
        torch.manual_seed(0)
        weights = [torch.nn.Parameter(torch.randn(5, 3)) for _ in range(3)]
    optimizer = make([{"params": weights[:1], "lr": 1e-2}, {"params": weights[1:]}])
    if state:
        optimizer.load_state_dict(state)
    for step in steps:
        torch.manual_seed(step)
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        weights[2].grad = None if step < 2 else weights[2].grad
        optimizer.step()
    return weights, optimizer.state_dict()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_its_steps_are_those_of_pytorch(decay: float) -> None:
    def theirs(groups: Any) -> torch.optim.Optimizer:
        return torch.optim.RAdam(groups, weight_decay=decay, decoupled_weight_decay=True)

    for count in (1, 5, 6, 60):  # it begins to divide by the roots of squares with the sixth
        ours, _ = descend(lambda groups: RAdam(groups, weight_decay=decay), range(count))
        for one, other in zip(ours, descend(theirs, range(count))[0], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_a_closure_is_called_before_the_step() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = RAdam([{"params": [weight]}])
    rates = []

    def closure() -> float:
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        loss = weight.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    assert optimizer.step(closure) == 2
    assert rates == [1e-3]
    assert (weight < 1).all()


def test_it_goes_on_from_a_saved_state() -> None:
    whole, _ = descend(RAdam, range(12))
    weights, state = descend(RAdam, range(7))
    assert [group["lr"] for group in state["param_groups"]] == [1e-2, 1e-3, 1e-3]
    again, _ = descend(RAdam, range(7, 12), state, weights)
    for one, other in zip(again, whole, strict=True):
        assert one.equal(other)
