"""The scripts of examples/ run, each away from where it is, and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPTS = {
    "first_steps": ("gcd.py               gcd        100%", "stack.c:28 pop is stack", "factorial"),
    "explain": ("bubble_sort.py is bubble-sort", "def bubble_sort(values"),
    "search": ("gcd/gcd.py", "gcd/gcd.c "),
    "clones": ("binary-search   bubble-sort     copied 28%",),
    "train_your_own": (
        "classes: binary-search, bubble-sort, gcd, stack",
        "accuracy on the others: ",
    ),
}


def test_every_script_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == SCRIPTS.keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_run(name: str, tmp_path: Path) -> None:
    script = ROOT / "examples" / f"{name}.py"
    out = [str(tmp_path / "out")] if "sys.argv" in script.read_text() else []
    shown = subprocess.check_output([sys.executable, script, *out], cwd=tmp_path, text=True)
    for part in SCRIPTS[name]:
        assert part in shown
    assert [path.name for path in tmp_path.iterdir()] == ["out"] * len(out)
