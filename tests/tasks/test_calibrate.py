import math

import pytest
import torch

from treecaps.models.calibration import Calibration
from treecaps.tasks.calibrate import calibrate


def draw(temperature: float, programs: int = 20_000) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw lengths, and classes with the probabilities that a temperature gives them."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.rand(programs, 5, generator=generator)
    shares = (lengths / temperature).softmax(1)
    return lengths, torch.multinomial(shares, 1, generator=generator).squeeze(1)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0])
def test_finds_the_temperature_of_the_data(temperature: float) -> None:
    lengths, label = draw(temperature)
    found = calibrate(lengths, label)
    assert found.temperature == pytest.approx(temperature, rel=0.1)
    # Of the answers given with a probability of about 0.7, about 0.7 are right.
    probability, guess = found.probabilities(lengths).max(1)
    some = (probability > 0.6) & (probability < 0.8)
    if some.sum() > 100:
        assert (guess == label)[some].double().mean().item() == pytest.approx(
            probability[some].mean().item(), abs=0.05
        )


def test_few_right_answers_become_unknown_and_many_wrong_ones_may() -> None:
    lengths = torch.full((1000, 3), 0.1)
    lengths[:, 0] = torch.linspace(0.2, 1, 1000)
    label = torch.zeros(1000, dtype=torch.long)
    label[:100] = 1  # the shortest are wrong
    found = calibrate(lengths, label)
    lost = lengths[:, 0] < found.threshold
    assert 0.04 < lost[100:].double().mean().item() <= 0.05
    assert bool(lost[:100].all())


def test_nothing_to_calibrate_with_changes_nothing() -> None:
    assert calibrate(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)) == Calibration()


def test_no_right_answer_makes_nothing_unknown() -> None:
    lengths = torch.tensor([[0.9, 0.1], [0.8, 0.2]])
    found = calibrate(lengths, torch.tensor([1, 1]))
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
