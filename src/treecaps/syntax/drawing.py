"""A tree as a picture: the root on the left, one row a leaf, links between parents and children."""

from collections.abc import Iterator
from html import escape

from treecaps.syntax.tree import Tree

_ROW, _LETTER, _GAP, _MARGIN = 18, 6.7, 34, 14
_BASELINE = 3.8  # from the middle of a line of text to where it stands
_LONGEST = 40

_STYLE = """
svg { background: #fff; font: 11px ui-monospace, Menlo, Consolas, monospace; }
path { fill: none; stroke: #b9c2cc; stroke-width: 1.2; }
text { fill: #1f2933; }
.token { fill: #0b6bcb; }
.anonymous { fill: #7a8794; }
.error { fill: #c62828; font-weight: bold; }
@media (prefers-color-scheme: dark) {
  svg { background: #14181d; }
  path { stroke: #46525f; }
  text { fill: #e4e9ee; }
  .token { fill: #74b7ff; }
  .anonymous { fill: #8d99a6; }
  .error { fill: #ff7b72; }
}
""".strip()


def to_svg(tree: Tree) -> str:
    """Return the tree as an SVG picture."""
    return "\n".join(_lines(tree)) + "\n"


def _lines(tree: Tree) -> Iterator[str]:
    names = [_shorten(name) for name in tree.kind_names()]
    tokens = [_shorten(token) for token in tree.tokens()]
    tokens = [
        "" if f'"{token}"' == name else token for name, token in zip(names, tokens, strict=True)
    ]
    parent = tree.parent.tolist()
    x, y = _place(tree, names)
    ends = [
        x[node] + _LETTER * (len(names[node]) + len(tokens[node]) + 2) for node in range(len(tree))
    ]
    width = max(ends) + _MARGIN
    height = max(y) + _ROW + _MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    )
    yield f"<title>Syntax tree of {len(tree)} nodes ({escape(_shorten(tree.language))})</title>"
    yield f"<style>{_STYLE}</style>"
    for node in range(1, len(tree)):
        above = parent[node]
        left = x[above] + _LETTER * len(names[above]) + 4
        right = x[node] - 4
        middle = (left + right) / 2
        yield (
            f'<path d="M{left:.0f} {y[above]:.1f}C{middle:.0f} {y[above]:.1f} '
            f'{middle:.0f} {y[node]:.1f} {right:.0f} {y[node]:.1f}"/>'
        )
    faulty = set(tree.errors.tolist())
    for node, (name, token) in enumerate(zip(names, tokens, strict=True)):
        look = "error" if node in faulty else "anonymous" if name.startswith('"') else "kind"
        kind = f'<tspan class="{look}">{escape(name)}</tspan>'
        text = f' <tspan class="token">{escape(token)}</tspan>' if token else ""
        yield f'<text x="{x[node]:.0f}" y="{y[node] + _BASELINE:.1f}">{kind}{text}</text>'
    yield "</svg>"


def _place(tree: Tree, names: list[str]) -> tuple[list[float], list[float]]:
    """Put leaves on rows of their own, parents half-way between their first and last child."""
    depth, parent = tree.depth.tolist(), tree.parent.tolist()
    widest = [0.0] * (max(depth) + 1)
    for level, name in zip(depth, names, strict=True):
        widest[level] = max(widest[level], _LETTER * len(name))
    columns = [float(_MARGIN)]
    for width in widest:
        columns.append(columns[-1] + width + _GAP)
    y = [0.0] * len(tree)
    first, last = [0.0] * len(tree), [0.0] * len(tree)
    row = float(_MARGIN)
    leaf = (tree.child_count == 0).tolist()
    for node in range(len(tree)):
        if leaf[node]:
            first[node] = last[node] = row
            row += _ROW
    for node in range(len(tree) - 1, -1, -1):
        y[node] = (first[node] + last[node]) / 2
        above = parent[node]
        if above >= 0:
            first[above] = y[node]
            last[above] = last[above] or y[node]
    return [columns[level] for level in depth], y


def _shorten(text: str) -> str:
    shown = " ".join(text.split())
    shown = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in shown
    )
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
