import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treecaps.errors import Failure, UsageError
from treecaps.syntax.notebooks import read_cells
from treecaps.syntax.program import Program


def write(path: Path, *cells: tuple[str, str | list[str]], **metadata: Any) -> Path:
    found: list[dict[str, object]] = [
        {"cell_type": kind, "source": source, "metadata": {}} for kind, source in cells
    ]
    path.write_text(json.dumps({"cells": found, "metadata": metadata, "nbformat": 4}))
    return path


def programs(path: Path, language: str | None = None) -> list[Program]:
    found = read_cells(path, language)
    assert not isinstance(found, Failure), found
    return found


def test_each_code_cell_is_a_program(tmp_path: Path) -> None:
    notebook = write(
        tmp_path / "a.ipynb",
        ("markdown", "# Title"),
        ("code", ["%matplotlib inline\n", "x = 7\n", "print(x %2)"]),
        ("code", " \n"),
        ("code", "%%bash\nls"),
        ("code", "%%time\nlen?\n!ls\ny = 1"),
    )
    found = programs(notebook)
    assert [(one.id, one.text, one.language) for one in found] == [
        (f"{notebook}:cell 2", b"\nx = 7\nprint(x %2)", "python"),
        (f"{notebook}:cell 5", b"\n\n\ny = 1", "python"),
    ]


def test_the_notebook_tells_its_language(tmp_path: Path) -> None:
    cell = ("code", "fn main() {}")
    rust = write(tmp_path / "a.ipynb", cell, kernelspec={"language": "rust"})
    other = write(tmp_path / "b.ipynb", cell, language_info={"name": "C++"})
    assert [programs(path)[0].language for path in (rust, other)] == ["rust", "cpp"]
    assert programs(rust, "c#")[0].language == "c_sharp"
    with pytest.raises(UsageError, match="cobol"):
        read_cells(rust, "cobol")
    unknown = read_cells(write(tmp_path / "c.ipynb", cell, language_info={"name": "APL"}))
    assert isinstance(unknown, Failure)
    assert unknown.code == "unknown-language"


def test_what_is_no_notebook_is_a_failure(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", "{", '{"cells": 1}', '{"cells": [{"cell_type": "code"}]}'):
        (tmp_path / "a.ipynb").write_text(text)
        found = read_cells(tmp_path / "a.ipynb")
        assert isinstance(found, Failure)
        assert (found.code, "no Jupyter notebook" in found.message) == ("record", True)
    empty = read_cells(write(tmp_path / "b.ipynb", ("markdown", "x")))
    missing = read_cells(tmp_path / "none.ipynb")
    assert isinstance(empty, Failure)
    assert isinstance(missing, Failure)
    assert (empty.message, missing.message) == ("has no code cells", "no such file or directory")


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_odd_cells_are_no_crash(tmp_path_factory: pytest.TempPathFactory, source: object) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.ipynb"
    cells = [{"cell_type": "code", "source": source}, source]
    path.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": source}}))
    read_cells(path)
