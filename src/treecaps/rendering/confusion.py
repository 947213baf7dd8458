"""Which classes are taken for which: as a picture on disk, and as SVG for pages."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from treecaps.inference.confusion import Confusion
from treecaps.inference.evaluate import Evaluation
from treecaps.rendering.charts import FEW, drawing
from treecaps.rendering.pictures import check_picture, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELLS = 5000
"""How many cells a page shows at most, those with the most in them."""
_DPI = 120


class Matrix(NamedTuple):
    """A confusion matrix as it is shown.

    Args:
        labels: The classes.
        counts: ``[classes, classes]``, a row is a class, a column an answer.
        shares: The same, as shares of the row.
    """

    labels: list[str]
    counts: NDArray[np.int64]
    shares: NDArray[np.float64]

    @property
    def few(self) -> bool:
        """Whether there is room for the names of the classes, and for counts."""
        return len(self.labels) <= FEW


def arrange(confusion: Confusion) -> Matrix:
    """Choose the classes to show: those that occur, those that are numbers in their order."""
    labels = confusion.labels
    counts = np.array(confusion.counts, np.int64).reshape(len(labels), len(labels))
    used = np.flatnonzero(counts.any(0) | counts.any(1)).tolist()
    order = sorted(used, key=lambda number: _by_number(labels[number]))
    counts = counts[np.ix_(order, order)]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    return Matrix([labels[number] for number in order], counts, shares)


def to_svg(confusion: Confusion) -> Markup:
    """Draw a confusion matrix for a page; the root of a cell's share is its colour."""
    labels, counts, shares = matrix = arrange(confusion)
    # Of few classes each has more room, its counts are written down, and so are the names.
    size = min(max(420 // max(len(labels), 1), 14), 34) if matrix.few else 6
    left, top = (120, 100) if matrix.few else (0, 0)
    parts = []
    for number, label in enumerate(labels if matrix.few else ()):
        middle = number * size + size / 2
        parts.append(
            f'<text x="{left - 6}" y="{top + middle + 4:.0f}" text-anchor="end"'
            f' style="font-size: 10px">{escape(label)}</text>'
            f'<text transform="translate({left + middle + 3:.0f} {top - 6}) rotate(-60)"'
            f' style="font-size: 10px">{escape(label)}</text>'
        )
    cells = [(counts[row, column], row, column) for row, column in np.argwhere(counts).tolist()]
    for count, row, column in sorted(cells, reverse=True)[:_CELLS]:
        title = escape(f"{labels[row]} as {labels[column]}: {count}")
        parts.append(
            f'<rect x="{left + column * size}" y="{top + row * size}" width="{size - 1}"'
            f' height="{size - 1}" fill="var(--bar)"'
            f' fill-opacity="{shares[row, column] ** 0.5:.2f}"><title>{title}</title></rect>'
        )
        if size >= 24:
            parts.append(
                f'<text x="{left + (column + 0.5) * size:.0f}" text-anchor="middle"'
                f' y="{top + row * size + size / 2 + 4:.0f}"'
                f' style="font-size: 10px; pointer-events: none">{count}</text>'
            )
    side = len(labels) * size
    # The last of the names above lean out to the right.
    return drawing(left + side + (60 if matrix.few else 0), top + side, parts)


def draw_confusion(evaluation: Evaluation, path: str | Path, *, title: str = "") -> None:
    """Draw which classes are taken for which, into a PNG or SVG file.

    A cell's colour stands for its share of the row, so small classes show as well as large ones,
    and for the root of that share, so rare mistakes show too. With few classes a cell also says
    how many programs it stands for. Classes that are numbers stand in the order of numbers.

    Args:
        evaluation: What was scored.
        path: The file to write.
        title: What to say above the figures, such as the name of the data.
    """
    from matplotlib.figure import Figure

    check_picture(path)
    matrix = arrange(Confusion(evaluation.labels, evaluation.confusion))
    side = max(2.6, len(matrix.labels) * (0.42 if matrix.few else 0.125))
    figure = Figure(figsize=(side, side), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    _draw_cells(figure, axes, matrix, side)
    axes.set_xlabel("what the model answered", fontsize=9, labelpad=8)
    axes.set_ylabel("the class of the program", fontsize=9, labelpad=8)
    said = f"{evaluation.accuracy:.1%} of {evaluation.programs:,} programs right"
    head = f"{_shorten(title, 80)}\n{said}" if title else said
    axes.set_title(head, fontsize=9, pad=10, loc="left", parse_math=False)
    write_picture(figure, path, bbox_inches="tight", pad_inches=0.15)


def _draw_cells(figure: "Figure", axes: "Axes", matrix: Matrix, side: float) -> None:
    """Draw the cells with their names and counts, and beside them what colours mean."""
    from matplotlib.colors import PowerNorm

    labels, counts, shares = matrix
    size = 8.0 if matrix.few else 6.0  # of letters, in points
    image = axes.imshow(
        np.ma.masked_equal(shares, 0),  # white
        cmap="Blues",
        norm=PowerNorm(0.5, 0, 1),
        interpolation="nearest",
    )
    names = [_shorten(label) for label in labels]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(range(len(names)), names, fontsize=size, parse_math=False)
    axes.tick_params(length=0, pad=3)
    # Thin lines between cells lead the eye from a cell to its names.
    axes.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#e3e3e3", linewidth=0.5 if matrix.few else 0.3)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_color("#aaaaaa")
    for row, column in np.argwhere(counts).tolist() if matrix.few else ():
        axes.text(
            column,
            row,
            f"{counts[row, column]:,}",
            horizontalalignment="center",
            verticalalignment="center",
            fontsize=size if counts.max() < 10_000 else 0.75 * size,
            color="white" if shares[row, column] > 0.35 else "#222222",
        )
    # The bar is as wide on a small picture as on a large one.
    bar = figure.add_axes((1 + 0.15 / side, 0, 0.12 / side, min(1.0, 3.0 / side)))
    scale = figure.colorbar(image, cax=bar, ticks=[0, 0.01, 0.1, 0.25, 0.5, 1])
    scale.ax.set_yticklabels(["0 %", "1 %", "10 %", "25 %", "50 %", "100 %"], fontsize=7)
    scale.ax.minorticks_off()
    scale.set_label("share of the class", fontsize=8)
    scale.outline.set_visible(False)


def _by_number(label: str) -> tuple[int, str]:
    return (int(label) if label.isascii() and label.isdigit() else -1), label


def _shorten(name: str, longest: int = 28) -> str:
    letters = (letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    name = "".join(letters)
    return name if len(name) <= longest else name[: longest - 1] + "…"
