import pytest
import torch
from torch.nn import functional

from treecaps.nn.cross_entropy import cross_entropy


def test_equals_that_of_torch_where_a_class_is_right() -> None:
    logits, label = torch.randn(20, 5), torch.randint(5, (20,))
    expected = functional.cross_entropy(logits, label)
    torch.testing.assert_close(cross_entropy(logits, label), expected)


def test_where_no_class_is_right_all_are_to_be_alike() -> None:
    logits, label = torch.randn(4, 5), torch.tensor([3, -2, 0, -2])
    every = torch.full((4, 5), 1 / 5)
    every[[0, 2]] = functional.one_hot(label[[0, 2]], 5).float()
    expected = functional.cross_entropy(logits, every)  # of shares of the classes
    torch.testing.assert_close(cross_entropy(logits, label), expected)
    even = cross_entropy(torch.zeros(1, 5), torch.tensor([-2])).item()
    assert even == pytest.approx(torch.tensor(5.0).log().item())
    assert cross_entropy(torch.eye(5)[:1], torch.tensor([-2])).item() > even
