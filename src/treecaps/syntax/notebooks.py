"""Jupyter notebooks: each code cell is a program."""

import re
from pathlib import Path

from treecaps.errors import Failure, ProgramError, UsageError
from treecaps.files import load_json
from treecaps.syntax.languages import language_named
from treecaps.syntax.program import MAX_BYTES, Program, read_bytes

_MAGIC = re.compile(r"^[ \t]*(?:%{1,2}\w|[!?]).*|^.*\w\?{1,2}[ \t]*$", re.MULTILINE)
"""Lines that only a notebook of Python understands: %time, !ls, help?"""
_OTHER_CELL = re.compile(r"\s*%%(?!time|capture|prun)\w")
"""How a cell begins that is in another language, or a file: %%bash, %%writefile."""


def read_cells(
    path: str | Path,
    language: str | None = None,
    *,
    id: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> list[Program] | Failure:
    """Return the code cells of a notebook, called ``NAME:cell 2``, or what is wrong with it.

    All cells are counted, from 1, also those of text. Blank ones, and those in another language
    than the notebook, are left out. Commands of the notebook become blank lines.

    Args:
        path: The file.
        language: The language of its cells; by default that of the notebook, or Python.
        id: What the notebook is called; by default its path.
        max_bytes: A larger file is refused.
    """
    name = id or str(path)
    chosen = language_named(language).name if language else None
    try:
        cells, kernel = _parse(read_bytes(path, max_bytes))
        language = chosen or language_named(kernel).name
        found = [
            Program(
                _MAGIC.sub("", code) if language == "python" else code,
                language,
                id=f"{name}:cell {number}",
            )
            for number, code in cells
            if code.strip() and not _OTHER_CELL.match(code)
        ]
    except ProgramError as error:
        return Failure(name, error.code, str(error))
    except UsageError as error:
        return Failure(name, "unknown-language", str(error))
    return found or Failure(name, "unreadable", "has no code cells")


def _parse(data: bytes) -> tuple[list[tuple[int, str]], str]:
    """Return the numbers and texts of code cells, and what the notebook calls their language."""
    try:
        notebook = load_json(data)
        about = notebook.get("metadata", {})
        named = (about.get("kernelspec") or {}).get("language")
        named = named or (about.get("language_info") or {}).get("name") or "python"
        cells = [
            (number, "".join(cell["source"]))  # a text, or its lines
            for number, cell in enumerate(notebook["cells"], 1)
            if cell["cell_type"] == "code"
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ProgramError("record", "is no Jupyter notebook of format 4 or newer") from None
    return cells, str(named)
