"""Examples of the documentation that run by themselves."""

import re
import sys
from typing import Any

import pytest

from tests.conftest import ROOT


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


def test_tables_are_those_of_the_result_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python benchmarks/tables.py`` would change nothing."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tables

    try:
        for page, text in tables.fill_in().items():
            assert page.read_text(encoding="utf-8") == text, f"run benchmarks/tables.py: {page}"
    finally:
        sys.modules.pop("tables")
