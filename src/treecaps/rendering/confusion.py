"""Pictures of what a model scores."""

from pathlib import Path

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from treecaps.inference.evaluate import Evaluation
from treecaps.rendering.pictures import check_picture, write_picture

_WITH_COUNTS = 30
"""The most classes whose cells still have room for a number."""
_DPI = 120


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
    check_picture(path)
    path = Path(path)
    labels = evaluation.labels
    order = sorted(range(len(labels)), key=lambda number: _by_number(labels[number]))
    counts = np.array(evaluation.confusion, np.int64)[np.ix_(order, order)]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    names = [_shorten(labels[number]) for number in order]
    classes = len(names)
    few = classes <= _WITH_COUNTS
    size = 8.0 if few else 6.0  # of letters, in points
    side = max(2.6, classes * (0.42 if few else 0.125))
    figure = Figure(figsize=(side, side), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    image = axes.imshow(
        np.ma.masked_equal(shares, 0),  # white
        cmap="Blues",
        norm=PowerNorm(0.5, 0, 1),
        interpolation="nearest",
    )
    ticks = range(classes)
    axes.set_xticks(ticks, names, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(ticks, names, fontsize=size, parse_math=False)
    axes.tick_params(length=0, pad=3)
    # Thin lines between cells lead the eye from a cell to its names.
    axes.set_xticks(np.arange(classes + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(classes + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#e3e3e3", linewidth=0.5 if few else 0.3)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_color("#aaaaaa")
    if few:
        for row, column in np.argwhere(counts).tolist():
            axes.text(
                column,
                row,
                f"{counts[row, column]:,}",
                horizontalalignment="center",
                verticalalignment="center",
                fontsize=size if counts.max() < 10_000 else 0.75 * size,
                color="white" if shares[row, column] > 0.35 else "#222222",
            )
    axes.set_xlabel("what the model answered", fontsize=9, labelpad=8)
    axes.set_ylabel("the class of the program", fontsize=9, labelpad=8)
    said = f"{evaluation.accuracy:.1%} of {evaluation.programs:,} programs right"
    head = f"{_shorten(title, 80)}\n{said}" if title else said
    axes.set_title(head, fontsize=9, pad=10, loc="left", parse_math=False)
    # The bar is as wide on a small picture as on a large one.
    bar = figure.add_axes((1 + 0.15 / side, 0, 0.12 / side, min(1.0, 3.0 / side)))
    scale = figure.colorbar(image, cax=bar, ticks=[0, 0.01, 0.1, 0.25, 0.5, 1])
    scale.ax.set_yticklabels(["0 %", "1 %", "10 %", "25 %", "50 %", "100 %"], fontsize=7)
    scale.ax.minorticks_off()
    scale.set_label("share of the class", fontsize=8)
    scale.outline.set_visible(False)
    write_picture(figure, path, bbox_inches="tight", pad_inches=0.15)


def _by_number(label: str) -> tuple[int, str]:
    return (int(label) if label.isascii() and label.isdigit() else -1), label


def _shorten(name: str, longest: int = 28) -> str:
    letters = (letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    name = "".join(letters)
    return name if len(name) <= longest else name[: longest - 1] + "…"
