from pathlib import Path

import treecaps

ABOVE = ("rendering", "cli", "server")


def test_only_what_stands_above_imports_rendering() -> None:
    home = Path(treecaps.__file__).parent
    users = {
        path.relative_to(home).parts[0]
        for path in home.rglob("*.py")
        if "treecaps.rendering" in path.read_text("utf-8")
    }
    assert users == {*ABOVE, "__init__.py"}
