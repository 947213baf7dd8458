"""Draw the learning curves that ``benchmarks/accuracy.py`` wrote, side by side.

python benchmarks/curves.py benchmarks/results/accuracy-*-paper.json --out curves-paper.svg
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from treecaps.rendering.pictures import check_picture, write_picture

PANELS = {
    "loss": "loss on training programs",
    "val_accuracy": "accuracy on held-out programs",
    "right_length": "length of the right code capsule",
    "coupling_entropy": "entropy of the coupling (1: even)",
}


def draw(results: list[dict[str, Any]], path: Path) -> None:
    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 2).flatten()
    for (key, title), axes in zip(PANELS.items(), panels, strict=True):
        for result in results:
            values = result["curves"][key]
            axes.plot(range(1, len(values) + 1), values, label=name_of(result), linewidth=1.3)
        style(axes, title)
    panels[1].legend(fontsize=7)
    write_picture(figure, path)


def style(axes: Axes, title: str) -> None:
    """Make a panel of curves over epochs look like all others."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("epoch", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(color="#e3e3e3", linewidth=0.5)


def name_of(result: dict[str, Any]) -> str:
    settings = ", ".join(one for one in result["settings"] if not one.startswith("epochs"))
    preset = result["model"].removeprefix("treecaps, preset ")
    return f"{result['data']}, {result['frontend']}, {preset}" + (f" ({settings})" * bool(settings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    check_picture(options.out)
    draw([json.loads(path.read_text(encoding="utf-8")) for path in options.results], options.out)


if __name__ == "__main__":
    main()
