import pytest
import torch

from treecaps.nn.margin_loss import margin_loss


def test_equals_the_formula_by_hand() -> None:
    lengths = torch.tensor([[0.5, 0.3, 0.05], [0.95, 0.0, 1.0]])
    first = (0.9 - 0.5) ** 2 + 0.5 * (0.3 - 0.1) ** 2
    second = 0.5 * (0.95 - 0.1) ** 2
    found = margin_loss(lengths, torch.tensor([0, 2]))
    assert found.item() == pytest.approx((first + second) / 2)


def test_is_zero_when_all_is_as_it_should_be() -> None:
    assert margin_loss(torch.tensor([[0.92, 0.1, 0.0]]), torch.tensor([0])) == 0


def test_where_no_class_is_right_all_are_to_be_short() -> None:
    lengths = torch.tensor([[0.5, 0.3, 0.05]])
    expected = 0.5 * ((0.5 - 0.1) ** 2 + (0.3 - 0.1) ** 2)
    assert margin_loss(lengths, torch.tensor([-2])).item() == pytest.approx(expected)
