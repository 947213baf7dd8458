import numpy as np
import pytest

from treecaps.tasks.ensemble import Doubles, weigh


def error(weights: Doubles, outputs: Doubles, target: Doubles) -> float:
    return float(np.square(np.tensordot(weights, outputs, 1) - target).sum())


@pytest.mark.parametrize("members", [2, 3, 5])
def test_no_other_weights_do_better(members: int) -> None:
    chance = np.random.default_rng(members)
    target = np.eye(4)[chance.integers(4, size=50)]
    noise = chance.normal(size=(members, 50, 4)) * np.arange(1, members + 1)[:, None, None]
    outputs = target + 0.3 * noise
    weights = np.array(weigh(outputs, target))
    assert (weights >= 0).all()
    assert np.isclose(weights.sum(), 1)
    assert list(weights) == sorted(weights, reverse=True)  # the noisier, the less
    best = error(weights, outputs, target)
    for other in chance.dirichlet(np.ones(members), size=2000):
        assert best <= error(other, outputs, target) * (1 + 1e-5)
    for member in np.eye(members):
        assert best <= error(member, outputs, target) * (1 + 1e-5)


def test_a_useless_member_counts_nothing() -> None:
    target = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    weights = weigh(np.stack([0.9 * target, 1 - target]), target)
    assert weights == pytest.approx([1, 0], abs=1e-3)


def test_equal_members_share() -> None:
    target = np.eye(2)[[0, 1, 1]]
    one = np.full((3, 2), 0.4)
    assert weigh(np.stack([one, one, one]), target) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("members", [1, 4])
def test_without_anything_to_tell_them_apart_all_count_the_same(members: int) -> None:
    even = [1 / members] * members
    nothing = np.zeros((0, 3))
    assert weigh(np.zeros((members, 0, 3)), nothing) == even
    target = np.eye(3)
    assert weigh(np.stack([target] * members), target) == even
    assert weigh(np.full((members, 3, 3), np.nan), target) == even
