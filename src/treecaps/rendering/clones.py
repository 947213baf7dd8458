"""The page of ``treecaps clones``: groups, a graph, and pairs with their sources side by side."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from treecaps.rendering.page import render
from treecaps.search.comparison import Comparison, ShownPair, Source, alike
from treecaps.search.lines import LinePair
from treecaps.search.parts import Part
from treecaps.text import to_one_line


def to_html(
    comparison: Comparison,
    *,
    title: str,
    what: str = "works",
    facts: Sequence[tuple[str, str]] = (),
    failures: Sequence[str] = (),
    template: bool = False,
) -> str:
    """Return a page that needs nothing beside itself.

    Args:
        comparison: What it shows.
        title: What was compared.
        what: What the works are: functions, files or submissions.
        facts: What else to tell, as names and values.
        failures: What could not be read.
        template: Whether there is code that everybody was given.
    """
    percent = any(pair.pair.probability is not None for pair in comparison.pairs)
    values = {
        "what": what,
        "percent": percent,
        "thresholds": [round(value, 4) for value in comparison.thresholds],
        "floor": comparison.floor,
        "above": comparison.above,
        "works": [_work(comparison, number) for number in range(len(comparison.units))],
        "pairs": [_pair(comparison, pair) for pair in comparison.pairs],
    }
    return render(
        "clones",
        title=to_one_line(title),
        what=what,
        percent=percent,
        works=len(comparison.units),
        all_pairs=comparison.above[0][0],
        shown_pairs=len(comparison.pairs),
        floor=comparison.floor,
        facts=facts,
        failures=[to_one_line(failure) for failure in failures],
        template=template,
        data=_embed(values),
    )


def _embed(values: Any) -> Markup:
    """Return JSON for a data block in a page: nothing in it can end the block."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _work(comparison: Comparison, number: int) -> dict[str, Any]:
    unit = comparison.units[number]
    return {
        "name": to_one_line(f"{unit.name} {unit.function or ''}".rstrip()),
        "language": unit.language,
        "old": comparison.new is not None and number >= comparison.new,
        "highest": [round(value, 4) for value in comparison.highest[number]],
        "sources": [
            {
                "name": to_one_line(source.name),
                "line": source.line,
                "text": (source.indent + source.tree.text).decode("utf-8", "replace").rstrip(),
            }
            for source in comparison.sources[number]
        ],
    }


def _pair(comparison: Comparison, shown: ShownPair) -> dict[str, Any]:
    sides = [
        [_Places(source) for source in comparison.sources[number]]
        for number in (shown.left, shown.right)
    ]
    return {
        "left": shown.left,
        "right": shown.right,
        "figures": [round(shown.pair.copied, 4), round(alike(shown.pair), 4)],
        "parts": [_part(sides, part) for part in shown.parts],
        "lines": [_lines(pair) for pair in shown.lines],
    }


def _part(sides: "Sequence[Sequence[_Places]]", part: Part) -> list[list[int]]:
    """Return of both sides the program, and the first character and the one after the last."""
    return [
        [program, places[program].of(start), places[program].of(end)]
        for places, program, start, end in zip(
            sides, part.program, part.start, part.end, strict=True
        )
    ]


def _lines(pair: LinePair) -> list[list[int]]:
    return [[line.program, line.number - 1] for line in (pair.left, pair.right)]


class _Places:
    """From bytes of a source to characters of its text, as a script counts them in UTF-16."""

    def __init__(self, source: Source) -> None:
        text = np.frombuffer(source.indent + source.tree.text, np.uint8)
        self._indent = len(source.indent)
        self._before: list[int] | None = None
        if len(text) and text.max() >= 0x80:
            units = np.where(text >= 0xF0, 2, (text & 0xC0) != 0x80)
            self._before = [0, *np.cumsum(units).tolist()]

    def of(self, byte: int) -> int:
        """Return how many characters stand before a byte."""
        byte += self._indent
        return byte if self._before is None else self._before[byte]
