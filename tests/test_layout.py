"""Files and functions stay short, unless a function says why it is long.

The reason is a comment in the function: ``# long because ...``.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = ("src", "tests", "benchmarks")
MOST_LINES_OF_A_FILE = 450
MOST_LINES_OF_A_FUNCTION = 60

_REASON = re.compile(r"# .*\blong because \w")


def find_too_long(root: Path) -> Iterator[str]:
    """Yield the files that are too long, and the functions that are so without a reason."""
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        if len(lines) > MOST_LINES_OF_A_FILE:
            yield name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = lines[node.lineno - 1 : node.end_lineno]
                if len(body) > MOST_LINES_OF_A_FUNCTION and not any(map(_REASON.search, body)):
                    yield f"{name}::{node.name}"


def test_files_and_functions_are_short() -> None:
    found = list(find_too_long(ROOT))
    assert not found, "divide these, or say '# long because ...' in a function"


def test_what_is_too_long_is_found(tmp_path: Path) -> None:
    def function(name: str, lines: int, first: str = "pass") -> str:
        return "\n    ".join([f"def {name}():", first, *["pass"] * (lines - 2)]) + "\n"

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "functions.py").write_text(
        function("short", 60)
        + function("long", 61)
        + function("explained", 61, "# It is long because it is one table.\n    pass")
        + f"async {function('waiting', 61)}"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "full.py").write_text("x = 1\n" * 450)
    (tmp_path / "tests" / "overfull.py").write_text("x = 1\n" * 451)
    assert list(find_too_long(tmp_path)) == [
        "src/functions.py::long",
        "src/functions.py::waiting",
        "tests/overfull.py",
    ]
