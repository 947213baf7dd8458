"""The report of a training: what it shows, and that it shows code without running it."""

import re
from pathlib import Path

import pytest

import treecaps
from tests.training.examples import example_labels, example_trees, small
from treecaps.rendering.training import train
from treecaps.syntax.tree import Tree
from treecaps.training.presets import Preset, apply_settings, get_preset


def report(folder: Path, preset: Preset, val: tuple[list[Tree], list[str]] | None = None) -> str:
    train(example_trees(), example_labels(), val=val, preset=preset, folder=folder)
    return (folder / "report.html").read_text()


def test_it_shows_curves_mistakes_and_a_map(tmp_path: Path) -> None:
    # With two classes exchanged, there are mistakes to show.
    swap = {"gcd": "stack", "stack": "gcd"}
    labels = [swap.get(label or "", label or "") for label in example_labels()]
    page = report(tmp_path / "model", small("epochs=30", "hidden=8"), (example_trees(), labels))
    for title in ("Epoch by epoch", "Loss", "Inside", "Which classes", "Most confused"):
        assert title in page
    assert "Surest mistakes" in page
    assert "but called" in page
    assert page.count("<circle") == len(labels)  # each program is on the map
    assert "rgb(var(--for)" in page
    assert page.count("<script") == 1
    assert "script-src 'sha256-" in page
    assert "http://" not in page
    shown = re.findall(r'but called.*?<div class="box">(.*?)</div>', page, re.DOTALL)
    assert len(shown) == len(set(shown)) > 5  # none is shown twice
    assert "gives all classes the same" in page
    assert "length of the longest other" in page
    assert all(f"&#9679;</span> {label}" in page for label in swap)  # the colours are named
    assert len(page) < 5_000_000


def test_long_lines_are_cut(tmp_path: Path) -> None:
    code = "int main() { " + "int x = 1; " * 15_000 + "}"
    long = [treecaps.parse_code(code, "c")] * 8
    page = report(tmp_path / "model", small(), (long, ["gcd", "stack"] * 4))
    assert "but called" in page
    assert len(page) < 2_000_000


def test_code_is_shown_not_run(tmp_path: Path) -> None:
    code = 'x = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"\n'
    evil = [treecaps.parse_code(code, "python")] * 6
    page = report(tmp_path / "model", small(), (evil, ["gcd", "stack"] * 3))
    assert "alert(1)" in page
    assert page.count("<script") == 1
    assert "<script>alert" not in page
    assert "<img" not in page


@pytest.mark.parametrize("name", ["tbcnn", "svm-tokens"])
def test_other_models_have_one_too(name: str, tmp_path: Path) -> None:
    preset = apply_settings(get_preset("default", name), ["epochs=1", "rename_probability=0"])
    page = report(tmp_path / "model", preset)
    assert "Which classes are taken for which" in page
    assert "Inside" not in page


def test_maxima_and_nothing_to_validate_with(tmp_path: Path) -> None:
    page = report(tmp_path / "model", small("val_share=0", "pooling=max"))
    assert "Epoch by epoch" in page
    assert "Most confused" not in page
