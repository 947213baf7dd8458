"""Trainings that multiply in bfloat16 go nearly as those in float32."""

from typing import Any

import pytest
import torch

from tests.training.examples import example_labels, example_trees
from treecaps import train
from treecaps.models.architectures import ARCHITECTURES
from treecaps.training.presets import apply_settings, get_preset

_SMALL = ("epochs=1", "vectors=random", "ordinary_background=false", "vector_size=16")
_CASES = [
    *(("default", model, "classification") for model in ARCHITECTURES if "svm" not in model),
    ("paper", "treecaps", "classification"),
    ("default", "treecaps", "similarity"),
    ("default", "ggnn", "bugs"),
]


def first_epoch(preset: str, model: str, task: str, precision: str) -> dict[str, Any]:
    chosen = apply_settings(
        get_preset(preset, model, task), [*_SMALL, "batch_size=13", f"precision={precision}"]
    )
    seen: list[dict[str, Any]] = []
    trained = train(
        example_trees()[::2],
        example_labels()[::2],
        preset=chosen,
        on_epoch=lambda _, metrics: seen.append(metrics),
    )
    kinds = {weight.dtype for weight in trained.members[0].parameters()}
    assert kinds == {torch.float32}
    return seen[0]


@pytest.mark.parametrize(("preset", "model", "task"), _CASES)
def test_bfloat16(preset: str, model: str, task: str) -> None:
    expected, found = (first_epoch(preset, model, task, one) for one in ("fp32", "bf16"))
    assert found["loss"] == pytest.approx(expected["loss"], rel=0.02)
    assert found["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=0.1)
    assert found["loss"] != expected["loss"]
