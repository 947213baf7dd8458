"""Look figures up in benchmarks/results, and write them into pages.

A figure in a sentence stands between two comments, which no reader of the page sees::

    <!-- = FILE/KEY/KEY: FORMAT -->94.7<!-- / -->

FILE is a file of ``benchmarks/results`` without its ending, or the name of a bundled model, whose
card ``benchmarks/bundle.py`` writes. Each KEY leads one step deeper: a key of an object, a number
in a list, or ``data=atlas`` for the object in a list whose ``data`` is ``atlas``. FORMAT is one of
``FORMATS``; of a list of numbers it takes the mean. White space may be wrapped. A comment must not
be the first in its line: it would end the paragraph.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BUNDLED = HERE.parent / "src" / "treecaps" / "bundled"

_MARKER = re.compile(r"(<!--\s+=\s+([^>]*?)\s*-->)(.*?)(<!--\s+/\s+-->)", re.DOTALL)
_BEGIN = re.compile(r"<!--\s+=")
_FIRST = re.compile(r"^[ \t]*(?:[-*]\s+)?<!--\s+=", re.MULTILINE)


def load(name: str) -> dict[str, Any]:
    """Return a file of results; what has not been measured is empty."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def load_card(name: str) -> dict[str, Any]:
    """Return the card of a bundled model."""
    path = BUNDLED / name / "config.json"
    found: dict[str, Any] = json.loads(path.read_text())["card"] if path.exists() else {}
    return found


def spread(values: list[float], digits: int, scale: float = 1) -> str:
    """Write the mean of some numbers and, if there are several, their sample deviation."""
    text = f"{scale * mean(values):.{digits}f}"
    return text + (f" ± {scale * stdev(values):.{digits}f}" if len(values) > 1 else "")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(name: str, key: str = "", *, blind: bool = False) -> str:
    """Return an accuracy over seeds; an ensemble's with ``key="ensemble_"``."""
    values = load(name).get(f"{key}accuracy{'_blind' if blind else ''}")
    return spread(values, 1, 100) if values else "-"


FORMATS: dict[str, Callable[[float], str]] = {
    "whole": lambda value: f"{value:,.0f}",
    "tenths": lambda value: f"{value:,.1f}",
    "hundredths": lambda value: f"{value:,.2f}",
    "percent": lambda value: f"{100 * value:.1f}",
}
"""How numbers are written; the unit stands in the sentence."""


def step(value: Any, key: str) -> Any:
    """Return what a key leads to."""
    if not isinstance(value, list):
        return value[key]
    name, _, wanted = key.partition("=")
    if not wanted:
        return value[int(key)]
    (found,) = (row for row in value if str(row[name]) == wanted)
    return found


def look_up(marker: str) -> str:
    """Return what stands in a marker such as ``serve/clients/128/ratio/median: tenths``."""
    path, _, form = " ".join(marker.split()).rpartition(": ")
    file, *keys = path.split("/")
    value: Any = load(file) or load_card(file)
    try:
        for key in keys:
            value = step(value, key)
        number = mean(value) if isinstance(value, list) else value
        return FORMATS[form](number)
    except (LookupError, TypeError, ValueError) as error:
        raise SystemExit(f"there is no figure {marker!r}: {error!r}") from error


def fill_in_figures(text: str) -> str:
    """Return a page with all figures in sentences looked up anew."""
    if found := _FIRST.search(text):
        raise SystemExit(f"a figure must not begin a line: {found[0]!r}")
    if len(_BEGIN.findall(text)) != len(_MARKER.findall(text)):
        raise SystemExit("a figure does not end with <!-- / -->")
    return _MARKER.sub(lambda found: found[1] + look_up(found[2]) + found[4], text)


def without_figures(text: str) -> str:
    """Return a page without figures that are looked up."""
    return _MARKER.sub("", text)
