"""Whether routing helps the default network: a static capsules a channel, r and t iterations.

    python benchmarks/routing.py --data ../shared/data --out benchmarks/results/routing.json

The picture of the learning curves goes to ``docs/curves-routing.svg``. What the file has of other
data sets than those that ``--only`` names stays as it is.

Everything but a, r and t is as in the preset ``default``. Each setting is trained with the same
seeds on the same programs of four data sets, a part of each where it is large, and scored on
programs that no setting has seen, as they are and blind; the last epoch counts. Settings differ in
one thing at a time: a with r = 3 and t = 1, r with a = 4 and t = 1, t with a = 4 and r = 3. With t
above 1 code capsules also have a bias and no gradient through the coupling, as in ``paper``.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from accuracy import Programs, mean_curves, prepare_part, score_networks, summarise
from curves import style
from matplotlib.figure import Figure
from origin import origin
from sklearn.model_selection import StratifiedShuffleSplit
from values import HERE

from treecaps.nn.memory import tune_malloc
from treecaps.rendering.pictures import write_picture

PICTURE = HERE.parent / "docs" / "curves-routing.svg"


class Part(NamedTuple):
    """How much of a data set is taken: programs to learn from, programs to score, epochs."""

    learn: int
    score: int
    epochs: int


PARTS = {
    "java-sort": Part(540, 138, 16),
    "python-algorithms": Part(1000, 300, 8),
    "atlas": Part(1200, 750, 8),
    "poj104": Part(1040, 1040, 10),
}
SETTINGS = (
    *((1, 1, 1), (2, 3, 1), (4, 3, 1), (8, 3, 1)),
    *((4, 1, 1), (4, 2, 1)),
    *((4, 3, 2), (4, 3, 3)),
)
"""a, r and t."""


def options_of(data: Path, epochs: int, setting: tuple[int, int, int]) -> Any:
    """Return what ``accuracy.py`` would be told."""
    a, r, t = setting
    sets = [f"epochs={epochs}", f"statics={a}", f"static_iterations={r}", f"code_iterations={t}"]
    if t > 1:  # as in the paper's preset; without it, many classes learn nothing
        sets += ["stop_gradients=true", "code_bias=true"]
    return SimpleNamespace(
        data=data,
        frontend="tree-sitter",
        model="treecaps",
        preset="default",
        set=sets,
        init_from=None,
        svm_tokens=None,
        ensemble=1,
        verbose=False,
    )


def score(programs: Programs, part: Part, setting: tuple[int, int, int], data: Path) -> Any:
    """Train one setting with every seed, and return its figures."""
    options = options_of(data, part.epochs, setting)
    scores, histories, begun = [], [], time.perf_counter()
    for seed in (0, 1, 2):
        division = StratifiedShuffleSplit(
            1, train_size=part.learn, test_size=part.score, random_state=seed
        )
        learn, rest = next(division.split(programs.labels, programs.labels))
        found = score_networks(prepare_part(programs, learn, rest, options), options, seed)
        scores.append(found.together)
        histories += found.histories
    a, r, t = setting
    return {
        "a": a,
        "r": r,
        "t": t,
        "settings": options.set,
        **summarise("", scores),
        "curves": mean_curves(histories),
        "seconds": round(time.perf_counter() - begun),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path, help="the folder of the data sets")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", required=True, type=Path, help="write JSON there")
    options = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    result: dict[str, Any] = {"seeds": [0, 1, 2], "data": {}}
    if options.out.exists():
        result = json.loads(options.out.read_text(encoding="utf-8"))
    for name in options.only:
        part, home = PARTS[name], options.data / name
        programs = Programs.load(options_of(home, part.epochs, SETTINGS[0]))
        rows = []
        for setting in SETTINGS:
            rows.append(score(programs, part, setting, home))
            accuracy = np.round(100 * np.array([rows[-1]["mean"], rows[-1]["mean_blind"]]), 1)
            print(name, setting, accuracy, f"{rows[-1]['seconds']} s", file=sys.stderr, flush=True)
        result["data"][name] = {**part._asdict(), "settings": rows, **origin()}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(result["data"], PICTURE)


def draw(data: dict[str, Any], path: Path) -> None:
    """Draw the accuracy on held-out programs by epoch, as is, with one line for each setting."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplots(2, 2).flatten()
    for (name, found), axes in zip(data.items(), panels, strict=False):
        for row in found["settings"]:
            values = row["curves"]["val_accuracy"]
            label = f"a = {row['a']}, r = {row['r']}, t = {row['t']}"
            axes.plot(range(1, len(values) + 1), values, label=label, linewidth=1.1)
        style(axes, f"{name}: accuracy on held-out programs")
    for axes in panels[len(data) :]:
        axes.set_visible(False)
    panels[0].legend(fontsize=7)
    write_picture(figure, path)


if __name__ == "__main__":
    main()
