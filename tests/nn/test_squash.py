import torch
from hypothesis import given
from hypothesis import strategies as st

from treecaps.nn.squash import lengths, squash


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=6).filter(any))
def test_keeps_the_direction_and_bounds_the_length(values: list[int]) -> None:
    u = torch.tensor(values, dtype=torch.float64) / 100
    norm = u.norm()
    for form, expected in (("sabour", norm**2 / (1 + norm**2)), ("printed", norm / (1 + norm**2))):
        squashed = squash(u, form)  # type: ignore[arg-type]
        assert torch.allclose(squashed, expected * u / norm)
        assert torch.allclose(lengths(squashed), expected)
    assert squash(u).norm() <= 1
    assert squash(u, "printed").norm() <= 0.5


def test_zero_stays_zero_and_has_a_gradient() -> None:
    u = torch.zeros(2, 3, requires_grad=True)
    assert not squash(u).any()
    (squash(u).sum() + lengths(u).sum()).backward()  # type: ignore[no-untyped-call]
    assert u.grad is not None
    assert torch.isfinite(u.grad).all()


def test_any_dimension() -> None:
    u = torch.randn(3, 4, 5)
    assert torch.allclose(squash(u, dim=1), squash(u.transpose(1, 2)).transpose(1, 2))
