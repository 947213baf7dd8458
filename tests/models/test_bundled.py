from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import EXAMPLES
from tests.inference.examples import small_model
from treecaps.errors import ModelError
from treecaps.models import bundled
from treecaps.models.trained import TrainedModel, load
from treecaps.syntax.parse import parse_file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundled, "HOME", tmp_path / "bundled")
    small_model().save(tmp_path / "bundled" / "sorts")
    return tmp_path


def test_a_bundled_model_goes_by_its_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert load("sorts").labels == small_model().labels
    with pytest.raises(ModelError, match=r"no model sort: .* did you mean sorts"):
        load("sort")
    # A folder of that name comes first.
    small_model().save(home / "sorts")
    assert bundled.find_model("sorts") == Path("sorts")


def test_weights_of_half_size_answer_nearly_the_same(tmp_path: Path) -> None:
    model = small_model()
    model.save(tmp_path / "whole")
    model.save(tmp_path / "half", half=True)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    half = TrainedModel.load(tmp_path / "half")
    assert all(weight.dtype == torch.float32 for weight in half.members[0].parameters())
    trees = [parse_file(path) for path in EXAMPLES]
    inputs = model.read_trees(trees)
    # Where two capsules are nearly as long, routing may now start from the other.
    difference = np.abs(model.scores(inputs) - half.scores(inputs))
    assert np.median(difference) < 1e-3
    assert difference.max() > 0
