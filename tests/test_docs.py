"""Examples of the documentation run, and its figures are those of the result files."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT
from treecaps.rendering.reproduction import to_markdown
from treecaps.reproduction.plan import TABLES


def test_the_first_example_of_a_network_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs/models.md").read_text(), re.DOTALL)
    assert found is not None
    code = found[1]
    statements = [line for line in code.splitlines() if line and "import" not in line]
    assert len(statements) <= 15
    names: dict[str, Any] = {}
    exec(compile(code, "docs/models.md", "exec"), names)
    assert names["output"].scores.shape == (2, 2)
    assert names["output"].static.shape == (2, 64, 8)
    assert names["network"].vectors.grad is not None


# A number that looks measured: one with a decimal point, with a unit, or as many "times" or
# "points". Counts of programs, epochs or seeds are not.
MEASURED = re.compile(
    r"\d\.\d"
    r"|\d ?(?:%|per cent|points?\b|times\b|m?s\b|seconds?\b|minutes?\b|[kMG]B\b|(?:\w+ ?)?/s\b)"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten) (?:times|points)\b"
)
# What looks so but is not measured.
ALLOWED = ("Python 3.11 to 3.13",)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("tables")
    for name in ("tables", "speeds", "values"):
        sys.modules.pop(name)


def test_figures_are_those_of_the_result_files(tables: ModuleType) -> None:
    """``python benchmarks/tables.py`` would change nothing."""
    for page, text in tables.fill_in().items():
        assert page.read_text(encoding="utf-8") == text, f"run benchmarks/tables.py: {page}"


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_no_measured_number_is_typed_by_hand(tables: ModuleType, page: str) -> None:
    """Measured numbers stand only in what is filled in, and in code."""
    text = tables.prose((ROOT / page).read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)
    text = " ".join(text.split())
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    found = [text[max(0, one.start() - 40) : one.end() + 20] for one in MEASURED.finditer(text)]
    assert not found, "look these up with markers, see benchmarks/values.py, or delete them"


@pytest.mark.parametrize(
    "text", ["94.7", "1,541.0", "78 %", "1 s", "12 ms", "561 files/s", "7 MB", "three times faster"]
)
def test_measured_numbers_are_recognised(text: str) -> None:
    assert MEASURED.search(f"It has {text} here.")


@pytest.mark.parametrize("text", ["5-fold", "38,999 programs", "three seeds", "problems 1-64"])
def test_other_numbers_are_not_taken_for_measured(text: str) -> None:
    assert not MEASURED.search(f"It has {text} here.")


def test_a_figure_is_looked_up(tables: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    values = sys.modules["values"]
    result = {"a b": {"seeds": [0.25, 0.5]}, "rows": [{"data": "x", "n": 1234.56}]}
    monkeypatch.setattr(values, "load", {"file": result}.get)
    monkeypatch.setattr(values, "load_card", lambda name: {})
    for path, text in (
        ("file/a\nb/seeds: percent", "37.5"),
        ("file/rows/0/n: whole", "1,235"),
        ("file/rows/data=x/n: tenths", "1,234.6"),
    ):
        page = f"A <!-- = {path} -->9<!-- / --> s."
        assert values.fill_in_figures(page) == page.replace(">9<", f">{text}<")
    for wrong in (
        "A <!-- = other/a: whole -->9<!-- / -->",
        "A <!-- = file/a: whole -->9<!-- / -->",
        "A <!-- = file/rows/1/n: whole -->9<!-- / -->",
        "A <!-- = file/rows/data=y/n: whole -->9<!-- / -->",
        "A <!-- = file/rows/0/n: other -->9<!-- / -->",
        "A <!-- = file/rows/0/data: whole -->9<!-- / -->",
        "A <!-- = file/rows/0/n: whole -->9",
        "<!-- = file/rows/0/n: whole -->9<!-- / -->",
    ):
        with pytest.raises(SystemExit):
            values.fill_in_figures(wrong)


@pytest.mark.parametrize("path", sorted((ROOT / "docs/reproduction").glob("*.json")), ids=str)
def test_reproduction_pages_are_those_of_their_files(path: Path) -> None:
    behind = json.loads(path.read_text(encoding="utf-8"))
    results = {
        (row["name"], column): found["seeds"]
        for row in behind["rows"]
        for column, found in row["data"].items()
    }
    table = TABLES[path.stem]
    names = {row["name"] for row in behind["rows"]}
    table = replace(table, rows=tuple(row for row in table.rows if row.name in names))
    page = to_markdown(table, results, behind["notes"], path.stem)
    assert path.with_suffix(".md").read_text(encoding="utf-8") == page
    html = path.with_suffix(".html").read_text(encoding="utf-8")
    for seeds in results.values():
        assert f"{100 * mean(one['accuracy'] for one in seeds):.2f}" in html
