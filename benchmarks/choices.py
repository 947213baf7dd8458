"""What can be done to embeddings after training, on problems that nobody has seen.

    python benchmarks/choices.py --data DIR --models FOLDER FOLDER FOLDER --json

``DIR`` holds the data sets; the models are trained for similarity, with different seeds. Programs
of the validation part of ``problems``, and of problems 65-80 of ``poj104``, look for each other as
in ``retrieval.py``, as they are and blind, by the static capsules as they are; by linear
discriminants of other sizes and whitened otherwise, fitted to training programs; with the mean of
each language removed; and by the capsules of two models side by side. On ``problems`` also as the
sites of the problems divide them, of which each is a group of its own.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from origin import origin
from retrieval import Programs, embed, load

from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Selection
from treecaps.models.trained import TrainedModel
from treecaps.models.trained import load as load_model
from treecaps.tasks.discriminant import fit_discriminant
from treecaps.tasks.retrieval import map_at_r, maps_at_r

Vectors = NDArray[np.float32]
Scores = dict[str, float]

SIZES = 64, 128, 256, 512
WHITENINGS = 0.0, 0.25, 0.5, 0.75, 1.0
SIZE, WHITENING = 128, 0.5
OF_EACH = 5
"""How many training programs of each problem a discriminant is fitted to."""
PLAIN = "capsules"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--models", required=True, nargs="+", help="trained models")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    learn, problems = load(options.data, "problems", False)
    _, poj104 = load(options.data, "poj104", True)
    sites = sites_of(options.data / "problems" / "val.jsonl.gz")
    rows: dict[str, list[Scores]] = {}
    before: list[dict[str, Vectors]] | None = None
    for name in options.models:
        model = replace(load_model(name), projection=None)
        asked = [
            {view: embed(model)(trees) for view, trees in one.views.items()}
            for one in (problems, poj104)
        ]
        changed = [*changes(model, learn, asked, problems.language)]
        if before:
            changed.append(
                (
                    "capsules of two models",
                    [beside(*pair) for pair in zip(before, asked, strict=True)],
                )
            )
        before = asked
        for title, vectors in changed:
            found = score(vectors, problems, poj104, sites)
            rows.setdefault(title, []).append(found)
            print(name, title, found, file=sys.stderr, flush=True)
    result = {
        "data": "problems",
        "programs": {"problems": len(problems), "poj104": len(poj104)},
        "models": len(options.models),
        "rows": rows,
        **origin(),
    }
    print(json.dumps(result, indent=1) if options.json else result)


def sites_of(path: Path) -> NDArray[np.str_]:
    """Return the site of each program's problem."""
    return np.array([str(label).partition("-")[0] for label in Corpus.build(path).labels])


def changes(
    model: TrainedModel,
    learn: Programs,
    asked: Sequence[dict[str, Vectors]],
    language: NDArray[np.int64],
) -> Iterator[tuple[str, Sequence[dict[str, Vectors]]]]:
    """Yield embeddings as they are and changed, with what was done to them."""
    yield PLAIN, asked
    yield (
        "means of languages removed",
        [{view: centre(one, language) for view, one in asked[0].items()}, asked[1]],
    )
    chosen = some_of_each(learn.label)
    known = np.concatenate([embed(model)(Selection(view, chosen)) for view in learn.views.values()])
    label = np.tile(learn.label[chosen], len(learn.views))
    for size in SIZES:
        for whitening in WHITENINGS:
            if size == SIZE or whitening == WHITENING:
                project = fit_discriminant(known, label, size, whitening)
                yield (
                    f"discriminant, {size} numbers, whitening {whitening:g}",
                    [{view: unit(one @ project) for view, one in every.items()} for every in asked],
                )


def some_of_each(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return some programs of each problem."""
    rng = np.random.default_rng(0)
    every = (rng.permutation(np.flatnonzero(label == one)) for one in range(label.max() + 1))
    return np.sort(np.concatenate([rows[:OF_EACH] for rows in every]))


def score(
    vectors: Sequence[dict[str, Vectors]],
    problems: Programs,
    poj104: Programs,
    sites: NDArray[np.str_],
) -> Scores:
    """Return MAP@R in per cent: of all problems, across languages, of each site, of poj104."""
    found: Scores = {}
    for view in problems.views:
        one, other = vectors[0][view], vectors[1][view]
        every = maps_at_r(one, problems.label, problems.language)
        found[f"all, {view}"] = every["map_at_r"] or 0.0
        found[f"across, {view}"] = every["map_at_r_across"] or 0.0
        for site in np.unique(sites).tolist():
            rows = np.flatnonzero(sites == site)
            found[f"{site}, {view}"] = map_at_r(one[rows], problems.label[rows]) or 0.0
        found[f"poj104, {view}"] = map_at_r(other, poj104.label) or 0.0
    return {name: round(100 * value, 2) for name, value in found.items()}


def centre(vectors: Vectors, language: NDArray[np.int64]) -> Vectors:
    """Remove the mean vector of each language."""
    changed = vectors.copy()
    for one in np.unique(language):
        changed[language == one] -= vectors[language == one].mean(0)
    return unit(changed)


def beside(one: dict[str, Vectors], other: dict[str, Vectors]) -> dict[str, Vectors]:
    """Put the embeddings of two models side by side."""
    return {view: unit(np.concatenate([one[view], other[view]], 1)) for view in one}


def unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    return found


if __name__ == "__main__":
    main()
