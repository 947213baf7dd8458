import pytest
import torch

from tests.naive import route
from treecaps.nn.dynamic_routing import CapsuleLayer, dynamic_routing
from treecaps.nn.squash import squash


def test_equals_the_algorithm_line_by_line() -> None:
    predictions = torch.randn(5, 4, 3, 6, dtype=torch.float64)
    for iterations in (1, 2, 5):
        values, coupling = dynamic_routing(predictions, iterations)
        for program in range(4):
            expected, gamma = route(predictions[:, program], iterations, "sabour")
            assert torch.allclose(values[program], expected)
            assert torch.allclose(coupling[program], gamma)


def test_agreement_draws_coupling() -> None:
    """Four capsules agree on output 0 and quarrel about output 1: they go to output 0."""
    predictions = torch.zeros(4, 1, 2, 2)
    predictions[:, 0, 0] = torch.tensor([1.0, 0.0])
    predictions[:, 0, 1] = torch.tensor([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    values, coupling = dynamic_routing(predictions, 3)
    assert (coupling[0, :, 0] > 0.6).all()
    assert values[0, 0].norm() > values[0, 1].norm()


def test_a_new_layer_gives_every_class_a_signal() -> None:
    """Of 104 classes as of 4: lengths begin neither at zero nor at one."""
    torch.manual_seed(0)
    below = torch.nn.functional.normalize(torch.randn(8, 20, 8), dim=2)
    for classes in (4, 104):
        values, _ = CapsuleLayer(20, 8, classes, 8, iterations=1)(below)
        assert 0.05 < values.norm(dim=2).mean() < 0.5


def test_one_iteration_equals_routing_the_predictions_once() -> None:
    below = torch.randn(3, 6, 4)
    layer = CapsuleLayer(6, 4, 5, 7, iterations=1)
    predictions = torch.bmm(below.transpose(0, 1), layer.weight).view(6, 3, 5, 7)
    expected = dynamic_routing(predictions, 1)
    for found, wanted in zip(layer(below), expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_without_gradients_through_the_coupling_only_the_last_sum_learns(iterations: int) -> None:
    torch.manual_seed(0)
    predictions = torch.randn(5, 2, 4, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    plain, _ = dynamic_routing(predictions, iterations, bias=bias)
    found, coupling = dynamic_routing(predictions, iterations, bias=bias, stop_gradients=True)
    torch.testing.assert_close(found, plain)
    assert not coupling.requires_grad
    sums = (predictions * coupling.transpose(0, 1).unsqueeze(3)).sum(0) + bias
    inputs = (predictions, bias)
    ours = torch.autograd.grad(found.sum(), inputs)
    theirs = torch.autograd.grad(squash(sums).sum(), inputs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_a_bias_begins_at_a_tenth_and_weights_as_asked() -> None:
    layer = CapsuleLayer(6, 4, 3, 5, bias=True, std=0.01)
    assert layer.bias is not None
    assert (layer.bias == 0.1).all()
    assert layer.weight.std().item() == pytest.approx(0.01, rel=0.2)
    nothing = torch.zeros(1, 6, 4)
    torch.testing.assert_close(layer(nothing)[0][0], squash(layer.bias))


def test_whitening_makes_second_moments_equal_and_leaves_missing_capsules() -> None:
    torch.manual_seed(0)
    layer = CapsuleLayer(2, 3, 4, 5, whiten=True)
    capsules = torch.randn(500, 2, 3) @ torch.diag(torch.tensor([5.0, 1.0, 0.1]))
    capsules[:, 1] = 0  # no program has the second
    layer.fit_whitening(capsules)
    assert layer.whitening is not None
    first, second = layer.whitening
    torch.testing.assert_close(second, torch.eye(3))
    moments = capsules[:, 0].T @ capsules[:, 0] / len(capsules)
    shrunk = moments + moments.diagonal().mean() * torch.eye(3)
    torch.testing.assert_close(first @ shrunk @ first, torch.eye(3), rtol=1e-4, atol=1e-4)
    # The same as other weights, without whitening.
    plain = CapsuleLayer(2, 3, 4, 5)
    with torch.no_grad():
        plain.weight.copy_(torch.bmm(layer.whitening, layer.weight))
    for one, other in zip(layer(capsules), plain(capsules), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
