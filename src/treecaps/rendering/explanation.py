"""An explanation as one HTML page that needs nothing beside itself."""

from collections.abc import Iterator
from html import escape
from itertools import islice, pairwise

import numpy as np

from treecaps.explanation.explanation import Explanation
from treecaps.explanation.perturbation import STEP
from treecaps.rendering.charts import drawing
from treecaps.rendering.document import document
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

_STYLE = """
.two { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr) }
@media (max-width: 60rem) { .two { grid-template-columns: minmax(0, 1fr) } }
.tree { font: 13px/1.6 ui-monospace, Menlo, Consolas, monospace }
.l { color: var(--quiet); user-select: none; display: inline-block; width: 8.2rem;
  white-space: pre }
.tree ul { list-style: none; margin: 0; padding-left: 1.1rem; border-left: 1px solid var(--line) }
.leaf { padding-left: .9rem }
.on { outline: 2px solid var(--mark); background: var(--mark) !important }
.bar { display: grid; grid-template-columns: 12rem 1fr; gap: .6rem; align-items: center }
.wrap td:nth-child(n+3) { white-space: normal; min-width: 18rem }
.bar i { display: block; height: .8rem; background: rgb(var(--for)) }
"""
_SCRIPT = """
const at = [...document.querySelectorAll('[data-n]')];
const of = t => t.closest('[data-n]') || t.querySelector(':scope > [data-n]');
const span = e => [+e.dataset.n, +(e.dataset.e || +e.dataset.n + 1)];
const show = (e, on) => { const [a, b] = span(e);
  for (const o of at) { const n = +o.dataset.n;
    if (o === e || (n >= a && n < b && (o.closest('pre') || n === a)))
      o.classList.toggle('on', on); } };
for (const kind of ['mouseover', 'focusin', 'mouseout', 'focusout'])
  document.addEventListener(kind, event => { const e = of(event.target);
    if (e) show(e, kind === 'mouseover' || kind === 'focusin'); });
document.addEventListener('click', event => { const e = event.target.closest('[data-n]');
  const other = e && at.find(o => o.dataset.n === e.dataset.n && !o.closest('.box, svg')
    ?.contains(e));
  if (other) other.scrollIntoView({ block: 'nearest' }); });
"""


def to_html(explanation: Explanation) -> str:
    """Return the page: the answer, the source as a heat map beside the tree, the routes."""
    said = explanation.answer
    verdict = said.label if said.known else f"{said.label}, perhaps {said.guess}"
    parts = [
        *(
            f'<div class="bar"><span>{escape(one.label)} {one.probability:.0%}</span>'
            f'<i style="width: {100 * one.probability:.1f}%"></i></div>'
            for one in said.top
        ),
        f"<p>What adds to <b>{escape(explanation.label)}</b> (by {explanation.method}) is on orange"
        " ground, what speaks against it on blue. Point at a token or a node to see both.</p>",
        *_strongest(explanation),
        f'<div class="two"><div><h2>Source</h2><div class="box">{"".join(_folded(explanation))}',
        '</div></div><div><h2>Tree</h2><div class="box tree">',
        *_tree(explanation),
        "</div></div></div>",
    ]
    if explanation.routes:
        parts += ["<h2>Strongest routes</h2>", _flow(explanation)]
    if explanation.dimensions:
        parts += ["<h2>Numbers of the capsule</h2>", *_dimensions(explanation)]
    return document(f"{said.id}: {verdict}", parts, style=_STYLE, script=_SCRIPT)


def to_source(explanation: Explanation, most_lines: int, most_bytes: int) -> str:
    """Return the beginning of the source as a heat map."""
    return "<pre>" + "\n".join(islice(_source(explanation, most_bytes), most_lines)) + "</pre>"


def _strong_lines(explanation: Explanation) -> list[int]:
    """Return the lines that add most, either way, the strongest first."""
    order = np.argsort(-np.abs(explanation.lines), kind="stable")[:_STRONGEST]
    return [line for line in order.tolist() if explanation.lines[line]]


def _strongest(explanation: Explanation) -> Iterator[str]:
    """Yield the strongest lines of a long program, each with a link to its place."""
    if len(explanation.lines) <= _FEW_LINES:
        return
    total = float(np.abs(explanation.lines).sum()) or 1.0
    text = explanation.tree.text.split(b"\n")
    yield '<h2>Strongest lines</h2><div class="box"><pre>'
    for line in _strong_lines(explanation)[:_LISTED]:
        words = text[line].decode("utf-8", "replace").strip()[:_LONGEST]
        share = 100 * explanation.lines[line] / total
        yield f'<a href="#L{line + 1}">line {line + 1}</a> {share:+.2f} %  {escape(words)}'
    yield "</pre></div>"


def _folded(explanation: Explanation) -> Iterator[str]:
    """Yield the source, of a long program with its weak lines folded."""
    lines = list(_source(explanation))
    if len(lines) <= _FEW_LINES:
        yield "<pre>" + "\n".join(lines) + "</pre>"
        return
    strong = np.zeros(len(lines), bool)
    for line in _strong_lines(explanation):
        strong[max(line - _AROUND, 0) : line + _AROUND + 1] = True
    cuts = [0, *(np.flatnonzero(np.diff(strong)) + 1).tolist(), len(lines)]
    for begin, end in pairwise(cuts):
        shown = "<pre>" + "\n".join(lines[begin:end]) + "</pre>"
        if strong[begin]:
            yield shown
        else:
            yield f"<details><summary>lines {begin + 1:,} to {end:,}</summary>{shown}</details>"


def _ground(value: float, most: float) -> str:
    """Return the colour of the ground of what adds so much."""
    strength = min(abs(value) / most, 1) ** 0.5
    if strength < 0.1:
        return ""
    return f"background: rgb(var(--{'for' if value > 0 else 'against'}) / {0.75 * strength:.2f})"


def _source(explanation: Explanation, most_bytes: int | None = None) -> Iterator[str]:
    """Yield the lines of the program, or of its beginning, with numbers and what they add."""
    tree, tokens = explanation.tree, explanation.tokens
    text, names = tree.text[:most_bytes], tree.kind_names()
    most = float(np.abs(tokens).max()) or 1.0
    chosen = np.argsort(-np.abs(tokens), kind="stable")[:_TOKENS]
    chosen = np.sort(chosen[np.abs(tokens[chosen]) >= 0.003 * most])
    total = float(np.abs(explanation.lines).sum()) or 1.0
    added = explanation.lines
    strong = set(_strong_lines(explanation))
    parts = []
    done = 0
    for node in chosen.tolist():
        start, end = int(tree.start[node]), int(tree.end[node])
        if start < done or end == start or end > len(text):
            continue
        parts.append(escape(text[done:start].decode("utf-8", "replace")))
        # A token of several lines stays one token in the eyes of the reader.
        for number, piece in enumerate(text[start:end].decode("utf-8", "replace").split("\n")):
            parts.append("\n" * (number > 0) + f'<span data-n="{node}" tabindex="0"')
            parts.append(
                f' title="{escape(names[node])}: {tokens[node]:+.4f}"'
                f' style="{_ground(tokens[node], most)}">{escape(piece)}</span>'
            )
        done = end
    parts.append(escape(text[done:].decode("utf-8", "replace")))
    for number, line in enumerate("".join(parts).split("\n")):
        share = 100 * added[number] / total
        shown = f"{share:5.1f} %" if abs(share) >= 0.1 else ""
        if not shown and number in strong and len(added) > _FEW_LINES:
            shown = f"{share:5.2f} %"
        yield f'<span class="l" id="L{number + 1}">{number + 1:4} {shown:>7}</span>{line}'


def _tree(explanation: Explanation) -> Iterator[str]:
    """Yield the tree as lists that fold: the strongest nodes and those above them.

    Of a large tree, only what leads to the strongest of all is unfolded.
    """
    tree, nodes = explanation.tree, explanation.nodes
    most = float(np.abs(nodes).max()) or 1.0
    parents = tree.parent.tolist()
    shown, unfolded = _choose(tree, np.argsort(-np.abs(nodes), kind="stable").tolist())
    ends = _ends(tree)
    names, tokens = tree.kind_names(), tree.tokens()
    children: dict[int, list[int]] = {}
    for node in np.flatnonzero(shown).tolist():
        children.setdefault(parents[node], []).append(node)
    waiting: list[int | str] = [0]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        below = children.get(item, [])
        text = "" if names[item].startswith('"') else tokens[item][:_LONGEST]
        head = (
            f'<span data-n="{item}" data-e="{ends[item]}" title="{nodes[item]:+.4f}"'
            f' style="{_ground(nodes[item], most)}">{escape(names[item])}</span>'
            + (f" {escape(text)}" if text else "")
        )
        hidden = ends[item] - item - 1 - sum(ends[child] - child for child in below)
        more = f'<li class="quiet">and {hidden:,} more nodes</li>' if hidden and below else ""
        if not below:
            rest = f' <span class="quiet">({hidden:,} below)</span>' if hidden else ""
            head = head.replace("<span", '<span tabindex="0"', 1)
            yield f'<li class="leaf">{head}{rest}</li>' if item else f"{head}{rest}"
            continue
        state = " open" if unfolded[item] else ""
        yield ("<li>" if item else "") + f"<details{state}><summary>{head}</summary><ul>"
        waiting.append(more + "</ul></details>" + ("</li>" if item else ""))
        waiting.extend(below[::-1])


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


def _flow(explanation: Explanation) -> str:
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


def _dimensions(explanation: Explanation) -> Iterator[str]:
    """Yield a table of what comes and goes with each number of the code capsule."""
    yield (
        f"<p>What a decoder rebuilds when one number of the capsule of <b>"
        f"{escape(explanation.label)}</b> is moved from {STEP} below to {STEP} above what it"
        " is: windows that come and go, in per cent of the nodes that have children.</p>"
        '<div class="box"><table class="wrap">'
        "<tr><th>number</th><th>moves</th><th>comes</th><th>goes</th></tr>"
    )
    for one in explanation.dimensions:
        comes, goes = (
            "<br>".join(
                f"{100 * change.share:+.2f} % {escape(change.window)}" for change in changes
            )
            for changes in (one.comes, one.goes)
        )
        yield f"<tr><td>{one.number}</td><td>{one.moved:.1%}</td>"
        yield f"<td>{comes}</td><td>{goes}</td></tr>"
    yield "</table></div>"


def _way(x: float, y: float, to_x: float, to_y: float, wide: float, side: str) -> str:
    middle = (x + to_x) / 2
    return (
        f'<path d="M{x:.0f} {y:.1f}C{middle:.0f} {y:.1f} {middle:.0f} {to_y:.1f} {to_x:.0f}'
        f' {to_y:.1f}" fill="none" stroke="rgb(var(--{side}))" stroke-opacity=".45"'
        f' stroke-width="{wide:.1f}"/>'
    )
