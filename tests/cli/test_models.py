import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.inference.examples import LABELS, small_model
from treecaps.models import bundled


def test_models_are_listed(tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "HOME", tmp_path)
    assert "train one with" in run_here("models").stdout
    small_model().save(tmp_path / "sorts")
    assert "sorts" in run_here("models").stdout
    (found,) = json.loads(run_here("models", "--json").stdout)
    assert (found["name"], found["classes"]) == ("sorts", sorted(LABELS))
    assert found["validation_accuracy"] is None
