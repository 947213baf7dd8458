"""Draw which folder of the package imports which, for docs/architecture.md.

    python benchmarks/imports.py --out docs/imports.svg
    python benchmarks/imports.py --src ../before/src --out docs/imports-before.svg

Folders stand in the order of the layers that import-linter checks (``pyproject.toml``); those that
are not among them stand below. An arrow that points up is drawn in red: it breaks the order. Widths
grow with the number of imports. Imports for type checkers alone do not count.
"""

import argparse
import sys
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
BOX, GAP, ROW = 120, 30, 74


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--src", type=Path, default=ROOT / "src")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.src))
    edges = count_imports()
    options.out.write_text(draw(edges, arrange(edges)), encoding="utf-8")


def count_imports() -> Counter[tuple[str, str]]:
    """Return how many imports lead from folder to folder."""
    graph = grimp.build_graph("treecaps", exclude_type_checking_imports=True, cache_dir=None)
    edges: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            one, two = _folder(module), _folder(other)
            if one and two and one != two:
                edges[one, two] += 1
    return edges


def _folder(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def arrange(edges: Counter[tuple[str, str]]) -> list[list[str]]:
    """Return the folders in rows, the highest first."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    used = {folder for edge in edges for folder in edge}
    rows = [[name.strip() for name in layer.split("|")] for layer in layers]
    rows = [[name for name in row if name in used] for row in rows]
    others = sorted(used - {name for row in rows for name in row})
    return [row for row in [*rows, others] if row]


def draw(edges: Counter[tuple[str, str]], rows: list[list[str]]) -> str:
    """Return the picture."""
    width = max(900, max(map(len, rows)) * (BOX + GAP))
    place: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        # Rows are shifted to and fro, so that arrows do not hide each other.
        left = (width - len(row) * (BOX + GAP) + GAP) / 2 + (-1) ** number * 90
        for column, name in enumerate(row):
            place[name] = left + column * (BOX + GAP), 10 + number * ROW
    parts = []
    for (one, two), count in sorted(edges.items()):
        (x, y), (to_x, to_y) = place[one], place[two]
        down = to_y > y
        begin, end = (y + 34, to_y) if down else (y, to_y + 34)
        colour = "#8a93a5" if down else "#c8553d"
        x, to_x = x + BOX / 2, to_x + BOX / 2
        bend = (end - begin) / 2
        parts.append(
            f'<path d="M{x:.0f} {begin}C{x:.0f} {begin + bend:.0f} {to_x:.0f} {end - bend:.0f}'
            f' {to_x:.0f} {end}" fill="none" stroke="{colour}" stroke-opacity=".55"'
            f' stroke-width="{1 + min(count, 30) / 8:.1f}"><title>{escape(one)} imports'
            f" {escape(two)}: {count}</title></path>"
        )
    for name, (x, y) in place.items():
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="{BOX}" height="34" rx="5" fill="#fff"'
            f' stroke="#3b6fb6"/><text x="{x + BOX / 2:.0f}" y="{y + 22}" text-anchor="middle">'
            f"{escape(name)}</text>"
        )
    height = 20 + len(rows) * ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="14"><rect width="100%" height="100%" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    main()
