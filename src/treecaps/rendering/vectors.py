"""A picture of vectors: kinds that are used alike lie together."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from treecaps.rendering.pictures import check_picture, write_picture
from treecaps.training.vectors.kind_vectors import KindVectors

Pixels = NDArray[np.float64]

_COLOURS = ("#3b6fb6", "#c8553d", "#4a8f4d", "#8a5aa8", "#b8860b")
_OTHER = "#666666"
_LABEL = FontProperties(size=7)
_LONGEST = 40
_DPI = 100
_RINGS = (6, 11, 18, 28, 42, 60, 85, 120)
"""How far from its point a label may lie, in pixels."""


def draw_vectors(vectors: KindVectors, path: str | Path) -> None:
    """Draw the known kinds on a plane, with their names, into a PNG or SVG file.

    t-SNE on cosine distances brings the vectors onto the plane: what lies together is alike, but
    long ways and directions mean nothing. A dot grows with each power of ten in its kind's count,
    and has the colour of the last word of its name where several kinds share it.
    """
    check_picture(path)
    kinds = vectors.vocabulary.kinds[1:]
    colours, legend = _colours(kinds)
    # Names need room: the more kinds, the larger the picture.
    width = max(6.0, 0.85 * math.sqrt(len(kinds)))
    figure = Figure(figsize=(width, 0.8 * width), dpi=_DPI)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.95))
    axes.set_axis_off()
    title = f"{len(kinds):,} kinds of nodes"
    title += f" in {vectors.data}" if vectors.data else ""
    axes.set_title(f"{title}, vectors by {vectors.method}", fontsize=9, parse_math=False)
    points = _project(vectors.values[1:])
    decades = np.log10(np.maximum(vectors.counts[1:], 1)).astype(int)
    for decade in np.unique(decades):
        rows = np.flatnonzero(decades == decade)
        axes.scatter(
            points[rows, 0],
            points[rows, 1],
            s=5 + 6 * int(decade),
            c=[colours[row] for row in rows],
            linewidths=0,
        )
    axes.margins(0.06, 0.03)
    if legend:
        handles = [
            Line2D([], [], color=colour, marker="o", linestyle="", markersize=4, label=name)
            for name, colour in legend.items()
        ]
        axes.legend(handles=handles, fontsize=7, loc="lower left", framealpha=1)
    # The most frequent kinds choose first.
    order = np.argsort(-vectors.counts[1:], kind="stable")
    _write_names(figure, axes, kinds, colours, points, order)
    write_picture(figure, path)


def _write_names(
    figure: Figure,
    axes: Axes,
    kinds: tuple[str, ...],
    colours: list[str],
    points: Pixels,
    order: NDArray[np.int64],
) -> None:
    """Write the name of each kind beside its point, with a line to it if it is far."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    names = [kind if len(kind) <= _LONGEST else kind[: _LONGEST - 1] + "…" for kind in kinds]
    # A line is as high as its tallest and lowest letters would make it.
    height = renderer.get_text_width_height_descent("lp", _LABEL, False)[1]
    extents = np.array(
        [(renderer.get_text_width_height_descent(name, _LABEL, False)[0], height) for name in names]
    )
    legend = axes.get_legend()
    taken = [legend.get_window_extent(renderer).extents] if legend else []
    pixels = axes.transData.transform(points)
    places = _place(
        pixels, extents, order, np.array(taken).reshape(-1, 4), np.array(axes.bbox.extents)
    )
    for name, colour, point, place, extent in zip(
        names, colours, pixels, places, extents, strict=True
    ):
        near = np.clip(point, place, place + extent)
        if np.hypot(*(near - point)) > 9:
            ends = axes.transData.inverted().transform([point, near])
            axes.plot(*ends.T, color="#bbbbbb", linewidth=0.5, zorder=0)
        left, bottom = axes.transData.inverted().transform(place)
        axes.text(
            left,
            bottom,
            name,
            fontproperties=_LABEL,
            color=colour,
            verticalalignment="bottom",
            parse_math=False,
        )


def _project(values: NDArray[np.float32]) -> Pixels:
    """Return points ``[K, 2]`` for vectors ``[K, V]``, the same whenever it is asked."""
    values = values.astype(np.float64)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    centred = values - values.mean(0)
    left, scales, _ = np.linalg.svd(centred, full_matrices=False)
    main = np.zeros((len(values), 2))
    axes = min(2, len(scales))
    main[:, :axes] = left[:, :axes] * scales[:axes]
    if len(values) < 5 or not scales[0]:
        return main  # too few for t-SNE
    begin = (main * (1e-4 / max(main[:, 0].std(), 1e-12))).astype(np.float32)
    perplexity = min(15.0, (len(values) - 1) / 3)
    tsne = TSNE(init=begin, perplexity=perplexity, metric="cosine", random_state=0, n_jobs=1)
    with threadpool_limits(1):  # on a busy computer, threads make so little work slower
        points: Pixels = tsne.fit_transform(values)
    return points


def _colours(kinds: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Return a colour for each kind, and what each colour means."""
    groups = [
        '"token"' if kind.startswith('"') else kind.rpartition("_")[2] if "_" in kind else ""
        for kind in kinds
    ]
    common = Counter(group for group in groups if group).most_common(len(_COLOURS))
    legend = {
        group: colour for (group, count), colour in zip(common, _COLOURS, strict=False) if count > 2
    }
    return [legend.get(group, _OTHER) for group in groups], legend


def _place(
    points: Pixels,
    extents: Pixels,
    order: NDArray[np.int64],
    taken: Pixels,
    bounds: Pixels,
) -> Pixels:
    """Find a place for each label beside its point where it covers no other label or point.

    Args:
        points: ``[K, 2]``.
        extents: ``[K, 2]``, widths and heights of the labels.
        order: ``[K]``, which choose first.
        taken: ``[T, 4]``, boxes (left, bottom, right, top) that must stay free.
        bounds: ``[4]``, the box that labels should lie in.

    Returns:
        ``[K, 2]``, the lower left corners.
    """
    boxes = np.concatenate([taken, np.hstack([points - 3, points + 3]), np.zeros((len(points), 4))])
    used = len(taken) + len(points)
    places = np.zeros_like(points)
    angles = np.arange(16) * (math.pi / 8)
    ways = np.stack([np.cos(angles), np.sin(angles)], 1)
    ways = ways[np.argsort(np.abs(ways[:, 1]), kind="stable")]  # sideways before up and down
    for number in order:
        point, extent = points[number], extents[number]
        # The label touches a ring around the point on the side that looks at it.
        corners = np.concatenate(
            [point + ring * ways + (np.sign(ways.round(6)) - 1) / 2 * extent for ring in _RINGS]
        )
        reach = extent + _RINGS[-1]
        within = (boxes[:used, 2:] > point - reach) & (boxes[:used, :2] < point + reach)
        others = boxes[:used][within.all(1)]
        low = np.maximum(corners[:, None], others[:, :2])
        shared = np.minimum((corners + extent)[:, None], others[:, 2:]) - low
        covered = np.clip(shared, 0, None).prod(2).sum(1)
        outside = np.maximum(bounds[:2] - corners, corners + extent - bounds[2:])
        covered += np.clip(outside, 0, None).sum(1) * 1000
        best = int(covered.argmin())  # the first, hence nearest, of the best
        places[number] = corners[best]
        boxes[used] = [*corners[best], *(corners[best] + extent)]
        used += 1
    return places
