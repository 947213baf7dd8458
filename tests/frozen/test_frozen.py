import json
from pathlib import Path

import numpy as np
import pytest

from tests.training.examples import example_trees
from treecaps.models.trained import load

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text())


@pytest.mark.parametrize("task", ["classification", "similarity"])
def test_a_model_of_an_earlier_version_answers_as_it_did(task: str) -> None:
    model = load(HERE / task)
    assert model.task == task
    inputs = model.read_trees(example_trees()[::5])
    found = model.scores(inputs) if model.labels else model.engine.embed(inputs)
    np.testing.assert_allclose(found, EXPECTED[task], rtol=0, atol=1e-6)
