"""The page of a reproduction, as Markdown and as HTML that needs nothing beside itself."""

import html
from collections.abc import Sequence
from statistics import mean, pstdev
from typing import Any

from treecaps.reproduction.plan import Column, Row, Table

Figures = dict[tuple[str, str], list[dict[str, Any]]]
"""By row and data set, the figures of each seed."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --line: #d5d5d5; --bar: #3b78c2;
  --other: #b8b8b8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --line: #3a3d42;
  --bar: #6ea8ef; --other: #6b6b6b } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem; text-align: left;
  white-space: nowrap }
svg { max-width: 100%; height: auto } svg text { fill: currentColor; font: 12px system-ui }
.note { border-left: 4px solid var(--bar); padding: .2rem 1rem }
"""


def cells(row: Row, column: Column, figures: Figures) -> list[str]:
    """Return what stands in a cell: as is and blind, in the paper, seconds, memory, parameters."""
    found = figures.get((row.name, column.name))
    printed = row.printed.get(column.name, "-")
    if not found:
        return ["-", "-", printed, "-", "-", "-"]
    seconds = mean(one["seconds"] for one in found)
    memory = max(one["memory_mb"] for one in found)
    return [
        spell([one["accuracy"] for one in found]),
        spell([one["accuracy_blind"] for one in found]),
        printed,
        f"{seconds:,.0f} s",
        f"{memory:,} MB",
        f"{found[0]['parameters']:,}",
    ]


def spell(values: Sequence[float]) -> str:
    """Return a mean in per cent, with the deviation of several."""
    text = f"{100 * mean(values):.2f}"
    return text + (f" ± {100 * pstdev(values):.2f}" if len(values) > 1 else "")


_HEAD = ("model", "here", "blind", "in the paper", "training", "memory", "parameters")


def notes(table: Table, missing: dict[str, str], quick: bool, facts: dict[str, Any]) -> list[str]:
    """Return what a reader has to know first."""
    found = [
        f"Front ends: {facts['frontends']}; seeds: {facts['seeds']}; treecaps {facts['treecaps']}.",
        "Accuracy in per cent on programs that were not trained on: those of the part test, or val"
        " where there is none. A tenth of the training programs chose the epoch. Blind: every name"
        " replaced, comments removed.",
    ]
    if quick:
        found.insert(
            0,
            "A quick run with a few programs and epochs, to see that it works: its figures say"
            " nothing of the models.",
        )
    names = {column.name for column in table.columns}
    found += [f"Not run: {reason}" for name, reason in missing.items() if name in names]
    return found


def to_markdown(table: Table, rows: Sequence[Row], figures: Figures, remarks: list[str]) -> str:
    """Return the page as Markdown."""
    parts = [f"# {table.title}", *remarks]
    for column in table.columns:
        lines = [_HEAD, ["---"] * len(_HEAD)]
        lines += [[row.title, *cells(row, column, figures)] for row in rows]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts += [f"## {column.title}: {column.name}", text]
    return "\n\n".join(parts) + "\n"


def to_html(table: Table, rows: Sequence[Row], figures: Figures, remarks: list[str]) -> str:
    """Return the page as HTML: tables, bars, learning curves and confusion."""
    parts = [f"<h1>{html.escape(table.title)}</h1>"]
    parts += [f'<p class="note">{html.escape(remark)}</p>' for remark in remarks]
    for column in table.columns:
        parts.append(f"<h2>{html.escape(f'{column.title}: {column.name}')}</h2>")
        head = "".join(f"<th>{html.escape(word)}</th>" for word in _HEAD)
        body = "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(cell)}</td>"
                for cell in (row.title, *cells(row, column, figures))
            )
            + "</tr>"
            for row in rows
        )
        parts.append(f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>')
        trained = [row for row in rows if (row.name, column.name) in figures]
        if trained:
            parts += [_bars(trained, column, figures), _curves(trained, column, figures)]
            parts += [_confusion(row, figures[row.name, column.name][0]) for row in trained]
    body = "\n".join(parts)
    return (
        "<!doctype html>\n<html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(table.title)}</title><style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _bars(rows: Sequence[Row], column: Column, figures: Figures) -> str:
    """Draw a bar for each model, and where the paper's figure lies."""
    width, left, step = 760, 300, 26
    parts = []
    for number, row in enumerate(rows):
        top = number * step
        value = mean(one["accuracy"] for one in figures[row.name, column.name])
        length = value * (width - left - 60)
        parts.append(
            f'<text x="{left - 8}" y="{top + 16}" text-anchor="end">{html.escape(row.title)}</text>'
            f'<rect x="{left}" y="{top + 4}" width="{length:.1f}" height="16" fill="var(--bar)"/>'
            f'<text x="{left + length + 6:.1f}" y="{top + 16}">{100 * value:.1f}</text>'
        )
        if printed := row.printed.get(column.name):
            place = left + float(printed.split()[0]) / 100 * (width - left - 60)
            parts.append(
                f'<path d="M{place:.1f} {top + 1}v22" stroke="currentColor" stroke-width="2"/>'
            )
    return (
        f"<h3>Accuracy; a line is the figure of the paper</h3>"
        f'<svg viewBox="0 0 {width} {len(rows) * step}" role="img">{"".join(parts)}</svg>'
    )


def _curves(rows: Sequence[Row], column: Column, figures: Figures) -> str:
    """Draw the accuracy on validation data, epoch by epoch."""
    width, left, height, parts = 760, 40, 260, []
    most, down = 1, height - 40
    for percent in (0, 25, 50, 75, 100):
        level = (1 - percent / 100) * down + 10
        parts.append(
            f'<path d="M{left} {level:.1f}H{width - 250}" stroke="var(--line)"/>'
            f'<text x="{left - 8}" y="{level + 4:.1f}" text-anchor="end">{percent}</text>'
        )
    for number, row in enumerate(rows):
        values = figures[row.name, column.name][0]["validation"]
        if len(values) < 2 or values[0] is None:
            continue
        hue = 360 * number / len(rows)
        most = max(most, len(values))
        across = (width - 250 - left) / (len(values) - 1)
        points = " ".join(
            f"{left + place * across:.1f},{(1 - value) * down + 10:.1f}"
            for place, value in enumerate(values)
        )
        label = 18 + 18 * number
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="hsl({hue:.0f} 70% 50%)"'
            f' stroke-width="2"/><text x="{width - 240}" y="{label}"'
            f' style="fill: hsl({hue:.0f} 70% 50%)">{html.escape(row.title)}</text>'
        )
    middle = (left + width - 250) / 2
    parts.append(
        f'<text x="{middle}" y="{height - 8}" text-anchor="middle">'
        f"from the first epoch to the last, at most {most}</text>"
    )
    tall = max(height, 18 * len(rows) + 20)
    return (
        "<h3>Accuracy on validation data in per cent, epoch by epoch</h3>"
        f'<svg viewBox="0 0 {width} {tall}" role="img">{"".join(parts)}</svg>'
    )


def _confusion(row: Row, found: dict[str, Any]) -> str:
    """Draw which classes are taken for which, folded."""
    labels, counts = found["labels"], found["confusion"]
    size = 14 if len(labels) <= 30 else 6
    left = 120
    parts = []
    for down, (label, line) in enumerate(zip(labels, counts, strict=True)):
        total = max(sum(line), 1)
        if len(labels) <= 30:
            parts.append(
                f'<text x="{left - 6}" y="{down * size + 11}" text-anchor="end"'
                f' style="font-size: 10px">{html.escape(str(label))}</text>'
            )
        for across, count in enumerate(line):
            if count:
                parts.append(
                    f'<rect x="{left + across * size}" y="{down * size}" width="{size - 1}"'
                    f' height="{size - 1}" fill="var(--bar)"'
                    f' fill-opacity="{(count / total) ** 0.5:.2f}">'
                    f"<title>{html.escape(str(label))} as {html.escape(str(labels[across]))}:"
                    f" {count}</title></rect>"
                )
    side = len(labels) * size
    return (
        f"<details><summary>{html.escape(row.title)}: which classes are taken for which"
        " (a row is a class, a column an answer)</summary>"
        f'<svg viewBox="0 0 {left + side} {side}" width="{left + side}" role="img">'
        f"{''.join(parts)}</svg></details>"
    )
