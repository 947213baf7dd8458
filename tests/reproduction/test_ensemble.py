from pathlib import Path

import numpy as np
import pytest

from tests.reproduction.loops import write_data
from treecaps.data.corpus import Corpus
from treecaps.reproduction.data import split
from treecaps.reproduction.ensemble import join
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train


def test_it_is_what_is_trained_as_an_ensemble(tmp_path: Path) -> None:
    home = write_data(tmp_path / "data") / "java-sort"
    learn, val = split(Corpus.build(home / "train.jsonl"), 0.2)
    preset = apply_settings(get_preset("paper"), ["epochs=2", "channels=4"])
    models = [train(*learn, val=val, preset=preset, seed=seed) for seed in range(3)]
    whole = train(*learn, val=val, preset=preset, seed=0, ensemble=3)
    joined = join(models, val)
    assert joined.engine.weights == pytest.approx(whole.engine.weights)
    assert len(set(joined.engine.weights)) > 1  # they are not equally good
    inputs = whole.read_trees(Corpus.build(home / "test.jsonl"))
    np.testing.assert_allclose(joined.scores(inputs), whole.scores(inputs), rtol=1e-6)
    np.testing.assert_allclose(joined.probabilities(inputs), whole.probabilities(inputs), rtol=1e-6)
