"""Charts as SVG: bars, curves, points."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from markupsafe import Markup

FEW = 30
"""How many classes still have room for their names."""


def hue(number: int, of: int) -> str:
    """Return one of several colours, as far apart as they can be."""
    return f"hsl({360 * number / max(of, 1):.0f} 70% var(--tone))"


def drawing(width: float, height: float, parts: Iterable[str]) -> Markup:
    """Frame a picture of parts that are SVG.

    On a narrow page it is moved about rather than too small to read.
    """
    return Markup(
        f'<div class="wide"><svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" style="width:'
        f' {width:.0f}px; min-width: {0.8 * width:.0f}px">{"".join(parts)}</svg></div>'
    )


def bars(values: Mapping[str, float], marks: Mapping[str, float]) -> Markup:
    """Draw shares from 0 to 1 as bars with their names, and marks on some of them."""
    width, left, step = 760, 300, 26
    parts = []
    for number, (name, value) in enumerate(values.items()):
        top = number * step
        length = value * (width - left - 60)
        parts.append(
            f'<text x="{left - 8}" y="{top + 16}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{top + 4}" width="{length:.1f}" height="16" fill="var(--bar)"/>'
            f'<text x="{left + length + 6:.1f}" y="{top + 16}">{100 * value:.1f}</text>'
        )
        if name in marks:
            place = left + marks[name] * (width - left - 60)
            parts.append(
                f'<path d="M{place:.1f} {top + 1}v22" stroke="currentColor" stroke-width="2"/>'
            )
    return drawing(width, len(values) * step, parts)


def curves(lines: Mapping[str, Sequence[float | None]], *, percent: bool = True) -> Markup:
    """Draw what happens from epoch to epoch: shares in per cent, or numbers from 0 up."""
    width, left, right, height = 760, 50, 250, 260
    shown = {
        name: [value for value in values if value is not None] for name, values in lines.items()
    }
    shown = {name: values for name, values in shown.items() if values}
    top = 1.0 if percent else max((max(values) for values in shown.values()), default=0) or 1.0
    most = max(map(len, shown.values()), default=1)
    down = height - 40
    parts = []
    for quarter in range(5):
        level = (1 - quarter / 4) * down + 10
        label = f"{25 * quarter}" if percent else f"{top * quarter / 4:.3g}"
        parts.append(
            f'<path d="M{left} {level:.1f}H{width - right}" stroke="var(--line)"/>'
            f'<text x="{left - 8}" y="{level + 4:.1f}" text-anchor="end">{label}</text>'
        )
    for number, (name, values) in enumerate(shown.items()):
        across = (width - right - left) / max(most - 1, 1)
        points = [
            (left + place * across, (1 - value / top) * down + 10)
            for place, value in enumerate(values)
        ]
        colour = hue(number, len(shown))
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            if len(points) > 1
            else f'<circle cx="{points[0][0]}" cy="{points[0][1]:.1f}" r="3" fill="{colour}"/>'
        )
        parts.append(
            f'<text x="{width - right + 10}" y="{18 + 18 * number}" style="fill: {colour}">'
            f"{escape(name)}</text>"
        )
    parts.append(
        f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">'
        f"from the first epoch to the last, at most {most}</text>"
    )
    return drawing(width, max(height, 18 * len(shown) + 20), parts)


def points(
    places: Sequence[tuple[float, float]],
    groups: Sequence[int | None],
    names: Sequence[str],
    titles: Sequence[str],
) -> Markup:
    """Draw points of several groups, or of none, each with a title to point at."""
    width = height = 640
    across, down = zip(*places, strict=True)
    low, high = (min(across), min(down)), (max(across), max(down))
    parts = []
    for (x, y), group, title in zip(places, groups, titles, strict=True):
        left = 10 + (x - low[0]) / ((high[0] - low[0]) or 1) * (width - 20)
        top = 10 + (y - low[1]) / ((high[1] - low[1]) or 1) * (height - 20)
        colour = "var(--quiet)" if group is None else hue(group, len(names))
        parts.append(
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{colour}"'
            f' fill-opacity=".7"><title>{escape(title)}</title></circle>'
        )
    return drawing(width, height, parts) + legend(names)


def legend(names: Sequence[str]) -> Markup:
    """Name the colours of groups, if they are few enough to be told apart."""
    if len(names) > FEW:
        return Markup("")
    marks = (
        f'<span style="color: {hue(number, len(names))}">&#9679;</span> {escape(name)}'
        for number, name in enumerate(names)
    )
    return Markup(f"<p>{' &ensp;'.join(marks)}</p>")
