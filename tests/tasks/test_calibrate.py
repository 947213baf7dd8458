import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

from treecaps.models.calibration import Calibration
from treecaps.tasks.calibrate import calibrate, calibrate_pairs, find_threshold, least_nodes


def draw(
    temperature: float, programs: int = 20_000
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw lengths, and classes with the probabilities that a temperature gives them."""
    rng = np.random.default_rng(0)
    lengths = rng.random((programs, 5), np.float32)
    shares = softmax(lengths / temperature, axis=1).cumsum(1)
    return lengths, (rng.random((programs, 1)) * shares[:, -1:] > shares).sum(1)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0])
def test_finds_the_temperature_of_the_data(temperature: float) -> None:
    lengths, label = draw(temperature)
    found = calibrate(lengths, label)
    assert found.temperature == pytest.approx(temperature, rel=0.1)
    # Of the answers given with a probability of about 0.7, about 0.7 are right.
    probabilities = found.probabilities(lengths)
    np.testing.assert_allclose(probabilities, softmax(lengths / found.temperature, 1), rtol=1e-5)
    probability, guess = probabilities.max(1), probabilities.argmax(1)
    some = (probability > 0.6) & (probability < 0.8)
    if some.sum() > 100:
        assert (guess == label)[some].mean() == pytest.approx(probability[some].mean(), abs=0.05)


@pytest.mark.parametrize("programs", [3, 20, 1000])
def test_few_programs_that_are_all_right_make_no_model_certain(programs: int) -> None:
    label = np.arange(programs) % 3
    lengths = np.eye(3, dtype=np.float32)[label]
    surest = calibrate(lengths, label).probabilities(lengths).max()
    # Laplace's rule of succession, and a part of the rest goes to the right class too.
    assert surest == pytest.approx(1 - 1 / (programs + 2) * 2 / 3, abs=1e-3)
    beside = calibrate(lengths, label, np.zeros((programs, 3), np.float32))
    assert beside.probabilities(lengths).max() <= 1 - 1 / (programs + 2) / 2


def test_few_right_answers_become_unknown_and_many_wrong_ones_may() -> None:
    lengths = np.full((1000, 3), 0.1, np.float32)
    lengths[:, 0] = np.linspace(0.2, 1, 1000)
    label = np.zeros(1000, np.int64)
    label[:100] = 1  # the shortest are wrong
    found = calibrate(lengths, label)
    lost = lengths[:, 0] < found.threshold
    assert 0.04 < lost[100:].mean() <= 0.05
    assert bool(lost[:100].all())


@pytest.mark.parametrize(
    ("nodes", "least"), [([100, 300], 24), ([10, 300], 5), ([1, *[100] * 200], 24), ([1], 0)]
)
def test_what_is_too_little_code_depends_on_the_training_programs(
    nodes: list[int], least: int
) -> None:
    assert least_nodes(np.array(nodes)) == least


def beside_background(
    apart: float,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Return lengths of programs, their classes, and lengths of background that is so far apart."""
    rng = np.random.default_rng(0)
    label = rng.integers(5, size=4000)
    lengths = 0.2 * rng.random((4000, 5))
    lengths[np.arange(4000), label] = rng.normal(0.5 + apart / 2, 0.05, 4000)
    background = 0.2 * rng.random((8000, 5))
    background[:, 0] = rng.normal(0.5 - apart / 2, 0.05, 8000)
    return lengths.astype(np.float32), label, background.astype(np.float32)


def test_background_that_is_apart_lies_below_the_threshold_and_right_answers_above() -> None:
    lengths, label, background = beside_background(0.5)
    found = calibrate(lengths, label, background)
    assert (background.max(1) >= found.threshold).mean() <= 0.001
    assert (lengths.max(1) >= found.threshold).mean() >= 0.99
    assert found.none == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("programs", [5, 30, 4000])
@pytest.mark.parametrize("apart", [-0.1, 0.1])
def test_where_background_is_near_a_class_for_it_counts_as_five_right_answers(
    apart: float, programs: int
) -> None:
    lengths, label, background = beside_background(apart)
    lengths, label, background = lengths[:programs], label[:programs], background[:programs]
    threshold = find_threshold(lengths, label, background)
    right = [
        float(length.max())
        for length, one in zip(lengths, label, strict=True)
        if length.argmax() == one
    ]
    longest = background.max(1)

    def cost(value: float) -> float:
        lost = sum(one < value for one in right) / len(right)
        return lost + 5 * float((longest >= value).mean())

    assert threshold in right
    assert sum(one < threshold for one in right) <= 0.1 * len(right)
    allowed = sorted(right)[: int(0.1 * len(right)) + 1]
    assert cost(threshold) == pytest.approx(min(map(cost, allowed)), abs=1e-9)


def test_probabilities_beside_background_are_of_being_right_at_all() -> None:
    lengths, label, background = beside_background(0.1)
    found = calibrate(lengths, label, background)
    assert found.none is not None
    both = np.concatenate([lengths, background[:4000]])
    truth = np.concatenate([label, np.full(4000, -2)])
    probabilities = found.probabilities(both)
    # The slow way: one more class, as long for every program.
    every = np.c_[both, np.full(len(both), found.none)] / found.temperature
    np.testing.assert_allclose(probabilities, softmax(every, axis=1)[:, :-1], rtol=1e-4, atol=1e-7)
    some = (probabilities.max(1) > 0.6) & (probabilities.max(1) < 0.8)
    assert some.sum() > 100
    right = (probabilities.argmax(1) == truth)[some].mean()
    assert right == pytest.approx(probabilities.max(1)[some].mean(), abs=0.05)


def test_nothing_to_calibrate_with_changes_nothing() -> None:
    assert calibrate(np.zeros((0, 3), np.float32), np.zeros(0, np.int64)) == Calibration()


def test_no_right_answer_makes_nothing_unknown() -> None:
    lengths = np.array([[0.9, 0.1], [0.8, 0.2]], np.float32)
    found = calibrate(lengths, np.array([1, 1]))
    assert found.threshold == 0
    assert math.isfinite(found.temperature)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"temperature": 1.0},
        {"temperature": 0.0, "threshold": 0.0},
        {"temperature": math.inf, "threshold": 0.0},
        {"temperature": math.nan, "threshold": 0.0},
        {"temperature": 1.0, "threshold": 2.0},
        {"temperature": "1", "threshold": 0.0},
        {"temperature": 1.0, "threshold": 0.0, "more": 1.0},
    ],
)
def test_wrong_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="calibration"):
        Calibration.from_json(value)


def test_pairs_are_as_often_of_one_class_as_it_is_said() -> None:
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(150), 8)
    views = rng.standard_normal((150, 16))[label] + 0.5 * rng.standard_normal((2, 1200, 16))
    views /= np.linalg.norm(views, axis=2, keepdims=True)
    found = calibrate_pairs(views.astype(np.float32), label)
    # Of all pairs of one view, one by one.
    similarity, same = [], []
    for vectors in views:
        for one in range(len(label)):
            similarity.append(vectors[one + 1 :] @ vectors[one])
            same.append(label[one + 1 :] == label[one])
    said, right = found.same(np.concatenate(similarity)), np.concatenate(same)
    for least in (0.1, 0.3, 0.5, 0.7):
        some = (said > least) & (said < least + 0.2)
        assert some.sum() > 100
        assert right[some].mean() == pytest.approx(said[some].mean(), abs=0.07)
    for probability in (0.1, 0.5, 0.9):
        assert found.same(found.similarity(probability)) == pytest.approx(probability)


@pytest.mark.parametrize("label", [[], [0], [0, 0, 0], [0, 1, 2]])
def test_pairs_that_are_all_alike_or_none_change_nothing(label: list[int]) -> None:
    vectors = np.eye(4, dtype=np.float32)[None, : len(label)]
    assert calibrate_pairs(vectors, np.array(label, np.int64)) == Calibration()
