"""What each choice in training for similarity brings, on problems that nobody has seen.

    python benchmarks/choices.py --data DIR --json

``DIR`` holds the data sets. Each choice is trained from nothing on the same part of the training
problems of ``problems`` with the same seeds, for a few epochs, and differs from the first in one
thing; the last epoch counts. Then the validation programs look for each other as in
``retrieval.py``: as they are and blind, among all and among those of other languages; and as the
sites of the problems divide them, of which each is a group of its own.

What needs no training is tried on the vectors of the first choice: their discriminant in other
sizes and whitened otherwise, the languages' means removed, and two networks side by side.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from bundle import problems_of
from numpy.typing import NDArray
from origin import origin
from retrieval import Programs, embed

from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Joined, Selection
from treecaps.models.trained import TrainedModel
from treecaps.nn.memory import tune_malloc
from treecaps.tasks.discriminant import fit_discriminant
from treecaps.tasks.retrieval import map_at_r, maps_at_r
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train

Vectors = NDArray[np.float32]
Scores = dict[str, float]

BASE = (
    *("statics=1", "windows=0", "batch_size=512", "window_dropout=0.15", "learning_rate=0.005"),
    *("discriminant_size=0", "val_share=0"),
)
FIRST = "the first choice"
CHOICES: dict[str, tuple[str, ...]] = {
    FIRST: (),
    "batches of 128": ("batch_size=128",),
    "4 programs of a problem in a batch": ("samples_per_class=4",),
    "temperature 0.05": ("temperature=0.05",),
    "temperature 0.2": ("temperature=0.2",),
    "window dropout 0.5": ("window_dropout=0.5",),
    "2 static capsules a channel, which compete": ("statics=2",),
    "no blind programs": ("rename_probability=0",),
    "no token capsules": ("token_channels=0",),
    "kinds alone": ("nodes=kinds",),
}
MORE = "and 64 problems of poj104"
SIZES = 128, 256, 384
WHITENINGS = 0.0, 0.5, 1.0
PART = 5
"""One in so many problems is learned from."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*CHOICES, MORE])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    home = options.data / "problems"
    learn = Corpus.build(home / "train.jsonl.gz")
    poj = Corpus.build(options.data / "poj104" / "train.jsonl.gz")
    labels = part_of(learn)
    asked = Programs([home / "val.jsonl.gz"], bool)
    sites = sites_of(home / "val.jsonl.gz")
    rows: dict[str, list[Scores]] = {}
    after: dict[str, list[Scores]] = {}
    for name in options.only or [*CHOICES, MORE]:
        for seed in options.seeds:
            settings = [*BASE, f"epochs={options.epochs}", *CHOICES.get(name, ())]
            more = problems_of(poj) if name == MORE else [None] * len(poj)
            model = train(
                Joined([learn, poj]),
                [*labels, *more],
                preset=apply_settings(get_preset(task="similarity"), settings),
                seed=seed,
            )
            vectors = views(model, asked)
            tell(rows, name, score(vectors, asked, sites))
            if name == FIRST:
                for other, changed in changes(model, vectors, learn, labels, asked):
                    tell(after, other, score(changed, asked, sites))
    result = {
        "data": "problems",
        "programs": {"learned": sum(map(bool, labels)), "scored": len(asked)},
        "problems": {"learned": len(set(labels) - {None}), "scored": int(asked.label.max()) + 1},
        "settings": [*BASE, f"epochs={options.epochs}"],
        "seeds": options.seeds,
        "trained": rows,
        "not trained": after,
        **origin(),
    }
    print(json.dumps(result, indent=1) if options.json else result)


def part_of(corpus: Corpus) -> list[str | None]:
    """Return the labels of the problems that are learned from."""
    chosen = set(sorted(set(corpus.labels), key=str)[::PART])
    return [label if label in chosen else None for label in corpus.labels]


def sites_of(path: Path) -> NDArray[np.str_]:
    """Return the site of each program's problem."""
    return np.array([str(label).partition("-")[0] for label in Corpus.build(path).labels])


def views(model: TrainedModel, asked: Programs) -> dict[str, Vectors]:
    """Return the vectors of programs as they are and blind."""
    find = embed(model)
    return {view: find(trees) for view, trees in asked.views.items()}


def score(vectors: dict[str, Vectors], asked: Programs, sites: NDArray[np.str_]) -> Scores:
    """Return MAP@R in per cent: of all, across languages, and of the problems of each site."""
    found: Scores = {}
    for view, one in vectors.items():
        every = maps_at_r(one, asked.label, asked.language)
        found[f"all, {view}"] = every["map_at_r"] or 0.0
        found[f"across, {view}"] = every["map_at_r_across"] or 0.0
        for site in np.unique(sites).tolist():
            rows = np.flatnonzero(sites == site)
            found[f"{site}, {view}"] = map_at_r(one[rows], asked.label[rows]) or 0.0
    return {name: round(100 * value, 2) for name, value in found.items()}


def changes(
    model: TrainedModel,
    vectors: dict[str, Vectors],
    learn: Corpus,
    labels: Sequence[str | None],
    asked: Programs,
) -> list[tuple[str, dict[str, Vectors]]]:
    """Return vectors that are changed without training."""
    rows = np.flatnonzero([label is not None for label in labels])
    known = embed(model)(Selection(learn, rows))
    label = np.unique([str(labels[row]) for row in rows.tolist()], return_inverse=True)[1]
    found = []
    for size in SIZES:
        for whitening in WHITENINGS:
            if size == SIZES[1] or whitening == WHITENINGS[1]:
                project = fit_discriminant(known, label, size, whitening)
                found.append(
                    (f"discriminant {size}, whitening {whitening}", partial(apply, project))
                )
    found.append(("means of languages removed", partial(centre, language=asked.language)))
    return [(name, {view: change(one) for view, one in vectors.items()}) for name, change in found]


def apply(projection: Vectors, vectors: Vectors) -> Vectors:
    return unit(vectors @ projection)


def centre(vectors: Vectors, language: NDArray[np.int64]) -> Vectors:
    """Remove the mean vector of each language."""
    changed = vectors.copy()
    for one in np.unique(language):
        changed[language == one] -= vectors[language == one].mean(0)
    return unit(changed)


def unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    return found


def tell(rows: dict[str, list[Scores]], name: str, found: Scores) -> None:
    rows.setdefault(name, []).append(found)
    print(name, found, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
