"""How right a network is on programs it has not seen, beside a linear model on the same windows.

    python benchmarks/accuracy.py --data DIR --frontend srcml --preset paper --folds 5

``DIR`` holds ``train.jsonl.gz`` and ``val.jsonl.gz``. With ``--folds`` both together are divided
anew for every seed (stratified) and each part, or with ``--parts`` each of the first few, is
scored by networks trained on the others; without, networks learn from the one and are scored on
the other. What is scored is never used to choose anything: no epoch is picked, the network of the
last one counts. ``--svm`` scores a linear support vector machine on the TF-IDF of the windows
instead, on the same parts.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

import treecaps
from treecaps.data.corpus import Corpus
from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.models.treecaps import Capsules
from treecaps.nn.memory import keep_memory
from treecaps.syntax.tree import Tree
from treecaps.training.examples import Selection, prepare
from treecaps.training.fitting import Fitting
from treecaps.training.presets import apply_settings, get_preset

Rows = NDArray[np.int64]
CURVES = ("loss", "val_accuracy", "right_length", "coupling_entropy")


class Both(Sequence[Tree]):
    """The trees of two corpora, one after the other."""

    def __init__(self, first: Corpus, second: Corpus) -> None:
        self.first, self.second = first, second

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def __getitem__(self, index: Any) -> Any:
        place = index - len(self.first)
        return self.first[index] if place < 0 else self.second[place]


def parts(labels: list[str], train: int, options: Any, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield rows to learn from and rows to score."""
    if not options.folds:
        yield np.arange(train), np.arange(train, len(labels))
        return
    from sklearn.model_selection import StratifiedKFold

    division = StratifiedKFold(options.folds, shuffle=True, random_state=seed)
    yield from islice(division.split(labels, labels), options.parts)


def score_network(
    trees: Both, labels: list[str], learn: Rows, score: Rows, options: Any, seed: int
) -> tuple[list[float], list[list[dict[str, Any]]]]:
    """Return the accuracy of each network and then of all together, and their histories."""
    preset = apply_settings(get_preset(options.preset), options.set)
    data = prepare(
        Selection(trees, learn),
        [labels[row] for row in learn],
        (Selection(trees, score), [labels[row] for row in score]),
        depths=preset.network.depths,
        val_share=0,
        seed=seed,
    )
    accuracies, histories = [], []
    total = torch.zeros(len(score), len(data.labels))
    for member in range(options.ensemble):
        fitting = Fitting(preset, data, seed + 1000 * member)
        fitting.begin()
        while not fitting.finished:
            fitting.run_epoch(lambda *_: None)
            if options.verbose:
                print(fitting.history[-1], file=sys.stderr, flush=True)
        with torch.no_grad():
            found: list[Capsules] = [fitting.network(batch) for _, batch in fitting._val]
        total += torch.cat([capsules.lengths for capsules in found])
        accuracies.append(fitting.history[-1]["val_accuracy"])
        histories.append(fitting.history)
    together = (total.argmax(1) == data.val.label).double().mean().item()
    return [*accuracies, together], histories


def score_svm(matrix: Any, labels: list[str], learn: Rows, score: Rows) -> float:
    """Return the accuracy of a linear model on windows weighted by TF-IDF."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    names = np.array(labels)
    weigh = TfidfTransformer(sublinear_tf=True).fit(matrix[learn])
    machine = LinearSVC().fit(weigh.transform(matrix[learn]), names[learn])
    return float((machine.predict(weigh.transform(matrix[score])) == names[score]).mean())


def count_windows(trees: Both, depth: int) -> Any:
    forest = Forest.of(trees, Vocabulary.of(trees), (depth,))
    shape = (len(forest), len(forest.layers[0]))
    return scipy.sparse.csr_matrix(
        (forest.count.astype(np.float64), forest.window, forest.offsets), shape
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--frontend", default="tree-sitter")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--parts", type=int, metavar="N", help="score only the first N folds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ensemble", type=int, default=1)
    parser.add_argument("--svm", type=int, metavar="DEPTH", help="a linear model on such windows")
    parser.add_argument("--out", type=Path, help="write JSON there")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    keep_memory()
    torch.set_num_threads(1)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    first, second = (
        Corpus.build(options.data / f"{name}.jsonl.gz", frontend=options.frontend)
        for name in ("train", "val")
    )
    trees = Both(first, second)
    labels = [label or "" for label in (*first.labels, *second.labels)]
    matrix = count_windows(trees, options.svm) if options.svm else None
    begun = time.perf_counter()
    single: list[float] = []
    together: list[float] = []
    curves: dict[str, list[list[float]]] = {name: [] for name in CURVES}
    for seed in options.seeds:
        scores: list[list[float]] = []
        for fold, (learn, score) in enumerate(parts(labels, len(first), options, seed)):
            if matrix is not None:
                scores.append([score_svm(matrix, labels, learn, score)] * 2)
                continue
            found, histories = score_network(
                trees, labels, learn, score, options, 100 * seed + fold
            )
            scores.append([float(np.mean(found[:-1])), found[-1]])
            for name, values in curves.items():
                values += [[epoch[name] for epoch in history] for history in histories]
        alone, ensemble = np.mean(scores, 0)
        single.append(round(float(alone), 5))
        together.append(round(float(ensemble), 5))
        print(f"seed {seed}: {alone:.4f}, together {ensemble:.4f}", file=sys.stderr, flush=True)
        if matrix is not None and not options.folds:
            break  # there is no chance in it
    result: dict[str, Any] = {
        "data": options.data.name,
        "split": describe_split(options),
        "frontend": options.frontend,
        "nodes": "kinds",
        "model": f"linear SVM, TF-IDF of windows of depth {options.svm}"
        if options.svm
        else f"treecaps, preset {options.preset}",
        "settings": options.set,
        "seeds": options.seeds[: len(single)],
        "accuracy": single,
        "mean": round(float(np.mean(single)), 4),
        "deviation": round(float(np.std(single)), 4),
        "seconds": round(time.perf_counter() - begun),
        "command": "python benchmarks/accuracy.py " + " ".join(_public(sys.argv[1:])),
        "commit": commit.stdout.strip(),
        "treecaps": treecaps.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    if options.ensemble > 1:
        result |= {
            "ensemble": options.ensemble,
            "ensemble_accuracy": together,
            "ensemble_mean": round(float(np.mean(together)), 4),
            "ensemble_deviation": round(float(np.std(together)), 4),
        }
    if matrix is None:
        result["curves"] = {
            name: [round(float(value), 4) for value in np.mean(values, 0)]
            for name, values in curves.items()
        }
    text = json.dumps(result, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


def describe_split(options: Any) -> str:
    if not options.folds:
        return "trained on train, scored on val"
    some = f", {options.parts} of them scored" if options.parts else ""
    return f"{options.folds}-fold cross-validation on train+val{some}"


def _public(arguments: list[str]) -> list[str]:
    """Leave out where results go."""
    if "--out" in arguments:
        place = arguments.index("--out")
        return arguments[:place] + arguments[place + 2 :]
    return arguments


if __name__ == "__main__":
    main()
