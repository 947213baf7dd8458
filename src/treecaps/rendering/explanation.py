"""An explanation as one HTML page that needs nothing beside itself."""

from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from treecaps.explanation.explanation import Explanation
from treecaps.explanation.perturbation import STEP
from treecaps.rendering.charts import drawing
from treecaps.rendering.page import render
from treecaps.syntax.tree import Tree

_TOKENS = 5000
"""How many tokens are coloured at most, the strongest."""
_NODES = 1500
"""How many nodes the tree shows at most: strong ones and those above them."""
_DEPTH = 100
"""How deep the tree is shown at most."""
_FEW_LINES = 300
"""A longer program is folded but for its strongest lines and those around, and listed."""
_STRONGEST, _LISTED = 40, 20
_AROUND = 3
_LONGEST = 60


class TextRun(NamedTuple):
    """A part of a line: a token that has a colour, or text between such.

    Args:
        text: What it says.
        node: The token's node.
        title: What is said when it is pointed at.
        style: Its colour.
    """

    text: str
    node: int | None = None
    title: str = ""
    style: str = ""


class Line(NamedTuple):
    """A line of a program.

    Args:
        number: Which, from 1.
        share: What it adds in per cent of all, if that is worth telling.
        runs: What it is made of.
    """

    number: int
    share: str
    runs: list[TextRun]


class _Part(NamedTuple):
    """Lines that are shown or folded together."""

    begin: int
    end: int
    folded: bool
    lines: list[Line]


class _Strong(NamedTuple):
    """A line that adds much."""

    number: int
    share: str
    text: str


@dataclass
class _Node:
    """A node of the tree, and those below it that are shown."""

    number: int
    end: int
    name: str
    text: str
    title: str
    style: str
    unfolded: bool
    hidden: int
    below: "list[_Node]" = field(default_factory=list)


def to_html(explanation: Explanation) -> str:
    """Return the page: the answer, the source as a heat map beside the tree, the routes."""
    said = explanation.classification
    return render(
        "explanation",
        title=f"{said.id}: {said.verdict}",
        answer=said,
        label=explanation.label,
        method=explanation.method,
        strongest=_list_strongest(explanation),
        parts=_fold(explanation),
        tree=_tree(explanation),
        routes=_draw_routes(explanation) if explanation.routes else "",
        dimensions=explanation.dimensions,
        step=STEP,
    )


def _strong_lines(explanation: Explanation) -> list[int]:
    """Return the lines that add most, either way, the strongest first."""
    order = np.argsort(-np.abs(explanation.lines), kind="stable")[:_STRONGEST]
    return [line for line in order.tolist() if explanation.lines[line]]


def _list_strongest(explanation: Explanation) -> list[_Strong]:
    """Return the strongest lines of a long program."""
    if len(explanation.lines) <= _FEW_LINES:
        return []
    total = float(np.abs(explanation.lines).sum()) or 1.0
    text = explanation.tree.text.split(b"\n")
    return [
        _Strong(
            line + 1,
            f"{100 * explanation.lines[line] / total:+.2f} %",
            text[line].decode("utf-8", "replace").strip()[:_LONGEST],
        )
        for line in _strong_lines(explanation)[:_LISTED]
    ]


def _fold(explanation: Explanation) -> list[_Part]:
    """Return the source, of a long program with its weak lines folded."""
    lines = to_lines(explanation)
    if len(lines) <= _FEW_LINES:
        return [_Part(1, len(lines), False, lines)]
    strong = np.zeros(len(lines), bool)
    for line in _strong_lines(explanation):
        strong[max(line - _AROUND, 0) : line + _AROUND + 1] = True
    cuts = [0, *(np.flatnonzero(np.diff(strong)) + 1).tolist(), len(lines)]
    return [
        _Part(begin + 1, end, not strong[begin], lines[begin:end]) for begin, end in pairwise(cuts)
    ]


def _ground(value: float, most: float) -> str:
    """Return the colour of the ground of what adds so much."""
    strength = min(abs(value) / most, 1) ** 0.5
    if strength < 0.1:
        return ""
    return f"background: rgb(var(--{'for' if value > 0 else 'against'}) / {0.75 * strength:.2f})"


def to_lines(explanation: Explanation, most_bytes: int | None = None) -> list[Line]:
    """Return the lines of the program, or of its beginning, with numbers and what they add."""
    total = float(np.abs(explanation.lines).sum()) or 1.0
    added = explanation.lines
    strong = set(_strong_lines(explanation))
    lines = []
    for number, runs in enumerate(_text_runs(explanation, most_bytes)):
        share = 100 * added[number] / total
        shown = f"{share:.1f} %" if abs(share) >= 0.1 else ""
        if not shown and number in strong and len(added) > _FEW_LINES:
            shown = f"{share:.2f} %"
        lines.append(Line(number + 1, shown, runs))
    return lines


def _text_runs(explanation: Explanation, most_bytes: int | None) -> list[list[TextRun]]:
    """Return the runs of each line: the strongest tokens, and what is between them."""
    tree, tokens = explanation.tree, explanation.tokens
    text, names = tree.text[:most_bytes], tree.kind_names()
    most = float(np.abs(tokens).max()) or 1.0
    chosen = np.argsort(-np.abs(tokens), kind="stable")[:_TOKENS]
    chosen = np.sort(chosen[np.abs(tokens[chosen]) >= 0.003 * most])
    lines: list[list[TextRun]] = [[]]

    def add(begin: int, end: int, *token: Any) -> None:
        # A token of several lines stays one token in the eyes of the reader.
        for number, run in enumerate(text[begin:end].decode("utf-8", "replace").split("\n")):
            if number:
                lines.append([])
            lines[-1].append(TextRun(run, *token))

    done = 0
    for node in chosen.tolist():
        start, end = int(tree.start[node]), int(tree.end[node])
        if start < done or end == start or end > len(text):
            continue
        add(done, start)
        title = f"{names[node]}: {tokens[node]:+.4f}"
        add(start, end, node, title, _ground(tokens[node], most))
        done = end
    add(done, len(text))
    return lines


def _tree(explanation: Explanation) -> _Node:
    """Return the root of the tree: the strongest nodes and those above them.

    Of a large tree, only what leads to the strongest of all is unfolded.
    """
    tree, values = explanation.tree, explanation.nodes
    most = float(np.abs(values).max()) or 1.0
    shown, unfolded = _choose(tree, np.argsort(-np.abs(values), kind="stable").tolist())
    ends, parents = _ends(tree), tree.parent.tolist()
    names, tokens = tree.kind_names(), tree.tokens()
    nodes: dict[int, _Node] = {}
    for number in np.flatnonzero(shown).tolist():
        nodes[number] = _Node(
            number,
            ends[number],
            names[number],
            "" if names[number].startswith('"') else tokens[number][:_LONGEST],
            f"{values[number]:+.4f}",
            _ground(values[number], most),
            unfolded[number],
            hidden=ends[number] - number - 1,
        )
        if number:
            above = nodes[parents[number]]
            above.below.append(nodes[number])
            above.hidden -= ends[number] - number
    return nodes[0]


def _choose(tree: Tree, strongest: list[int]) -> tuple[list[bool], list[bool]]:
    """Return which nodes are shown, and which unfolded: not too many, and not too deep."""
    parents = tree.parent.tolist()
    depth = [0] * len(tree)
    for node in range(1, len(tree)):
        depth[node] = depth[parents[node]] + 1
    shown = [False] * len(tree)
    unfolded = [len(tree) <= _NODES] * len(tree)
    shown[0] = unfolded[0] = True
    count = 1
    for place, strong in enumerate(node for node in strongest if depth[node] <= _DEPTH):
        way = [strong]
        while parents[way[-1]] > 0:
            way.append(parents[way[-1]])
        fresh = [node for node in way if not shown[node]]
        count += len(fresh)
        if count > _NODES:
            break
        for node in fresh:
            shown[node] = True
        if place < _STRONGEST:
            for node in way:
                unfolded[node] = True
    return shown, unfolded


def _ends(tree: Tree) -> list[int]:
    """Return for each node the one after the last below it."""
    ends = list(range(1, len(tree) + 1))
    parents = tree.parent.tolist()
    for node in range(len(tree) - 1, 0, -1):
        ends[parents[node]] = max(ends[parents[node]], ends[node])
    return ends


def _draw_routes(explanation: Explanation) -> Markup:
    """Draw the ways from nodes by static capsules to the class, as wide as what they lead."""
    tree, routes = explanation.tree, explanation.routes
    sources = list(dict.fromkeys(node for route in routes for node, _ in route.nodes))
    step, width = 34, 900
    height = step * max(len(sources), len(routes)) + 20
    names, lines = tree.kind_names(), explanation.line_of
    left = {node: 20 + step * place for place, node in enumerate(sources)}
    strongest = max(route.share for route in routes) or 1.0
    middle_gap = step * max(len(sources), len(routes)) / len(routes)
    goal = height / 2
    parts = []
    for place, route in enumerate(routes):
        middle = 20 + middle_gap * place
        wide = max(1.0, 14 * max(route.share, 0) / strongest)
        parts.append(_way(width * 0.55, middle, width - 190, goal, wide, "for"))
        for node, share in route.nodes:
            side = "for" if share > 0 else "against"
            parts.append(_way(300, left[node], width * 0.55, middle, max(1, 10 * abs(share)), side))
        parts.append(
            f'<circle cx="{width * 0.55}" cy="{middle}" r="5" fill="currentColor"/>'
            f'<text x="{width * 0.55 + 9}" y="{middle - 8}">capsule {route.capsule}, of {route.of},'
            f" {route.share:.1%}</text>"
        )
    for node, y in left.items():
        text = tree.text[tree.start[node] : tree.end[node]].decode("utf-8", "replace")
        words = " ".join(text.split())[:28]
        parts.append(
            f'<text x="292" y="{y + 4}" text-anchor="end" data-n="{node}">'
            f"{escape(words or names[node])}"
            f" (line {lines[node] + 1})<title>{escape(names[node])}</title></text>"
        )
    parts.append(f'<text x="{width - 182}" y="{goal + 4}">{escape(explanation.label)}</text>')
    return drawing(width, height, parts)


def _way(x: float, y: float, to_x: float, to_y: float, wide: float, side: str) -> str:
    middle = (x + to_x) / 2
    return (
        f'<path d="M{x:.0f} {y:.1f}C{middle:.0f} {y:.1f} {middle:.0f} {to_y:.1f} {to_x:.0f}'
        f' {to_y:.1f}" fill="none" stroke="rgb(var(--{side}))" stroke-opacity=".45"'
        f' stroke-width="{wide:.1f}"/>'
    )
