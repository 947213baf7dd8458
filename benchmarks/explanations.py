"""How well explanations name what an answer depends on: deletion and insertion curves.

    python benchmarks/explanations.py --data DIR --json

``DIR`` holds ``train.jsonl.gz`` and ``val.jsonl.gz``. For each seed a network is trained on the
one; then, for programs of the other that it gets right, nodes lose their vectors in the order of
what they add to the class, the strongest first, and the length of its code capsule is watched
(deletion: the sooner it falls, the better); and nodes get them in that order, beginning with none
(insertion: the sooner it rises, the better). Areas under the curves, from 0 to 1, in parts of the
length with all vectors; for both methods and for nodes in random order, on the same programs. A
token, or a pair of neighbouring ones, counts as often as all of its leaves have their vectors. The
seconds are the most that one program of up to 300 nodes takes to explain, on one thread; those of
the bundled model, the median and the most for validation programs of 200 to 300 nodes.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from origin import origin

from treecaps.data.corpus import Corpus
from treecaps.explanation.attribution import METHODS, Method, attribute
from treecaps.inputs.bags import Bags, BagTensors, hash_leaves
from treecaps.inputs.windows_and_bags import WindowsAndBags, WindowsAndBagsTensors
from treecaps.models.bundled import DEFAULT
from treecaps.models.trained import TrainedModel, load
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.memory import tune_malloc
from treecaps.nn.tensors import ToTensor, to_tensors
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.tree import Tree
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train

STEPS = 20
SMALL = 300
"""Nodes of a program whose explanation is timed."""


def areas(
    model: TrainedModel, tree: Tree, label: str, order: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the areas of deletion and insertion of nodes in an order."""
    (network,) = model.members
    assert isinstance(network, TreeCaps)
    program = WindowsAndBags.node_by_node(tree, model.vocabulary, network.config.depths)
    batch: WindowsAndBagsTensors[torch.Tensor] = to_tensors(program, network.vectors)
    leaves, runs = hash_leaves(JoinedTrees([tree]))
    number = model.labels.index(label)
    with torch.no_grad():
        vectors = network.symbol_vectors(batch.windows.symbols)
        curves: dict[bool, list[float]] = {True: [], False: []}
        for count in np.linspace(0, len(tree), STEPS + 1).round().astype(int):
            for insert in (True, False):
                kept = torch.full((len(tree), 1), float(not insert))
                kept[order[:count]] = float(insert)
                there = kept[leaves, 0].bool().numpy()
                whole_runs = []
                complete = np.ones(len(there), bool)
                for length, run in enumerate(runs):
                    complete = complete[: len(run)] & there[length : length + len(run)]
                    whole_runs.append(run[complete])
                bags = bag_of(np.concatenate(whole_runs))
                answer = network(replace(batch, bags=bags), kept * vectors)
                curves[insert].append(answer.scores[0, number].item())
    whole = curves[True][-1]
    trapezoid = {
        insert: (sum(curve) - (curve[0] + curve[-1]) / 2) / STEPS / whole
        for insert, curve in curves.items()
    }
    return trapezoid[False], trapezoid[True]


def bag_of(features: NDArray[np.int64]) -> BagTensors[torch.Tensor]:
    """Count the features of one program."""
    distinct, counts = np.unique(features, return_counts=True)
    return Bags(np.array([0, len(distinct)]), distinct, counts).to_tensors(ToTensor())


def rank(
    model: TrainedModel, tree: Tree, label: str, method: Method, seconds: dict[Method, float]
) -> NDArray[np.int64]:
    """Return the nodes by what they add to a class, most first; keep the longest that it took."""
    begun = time.perf_counter()
    order = np.argsort(-attribute(model, tree, label, method), kind="stable")
    if len(tree) <= SMALL:
        seconds[method] = max(seconds[method], time.perf_counter() - begun)
    return order


def time_bundled(trees: Sequence[Tree]) -> dict[str, Any]:
    """Return the seconds that explanations by the default method take with the bundled model."""
    model = load(DEFAULT)
    some = [tree for tree in trees if SMALL * 2 // 3 <= len(tree) <= SMALL]
    seconds = []
    for tree in some:
        begun = time.perf_counter()
        attribute(model, tree, model.labels[0], METHODS[0])
        seconds.append(time.perf_counter() - begun)
    return {
        "model": DEFAULT,
        "programs": len(some),
        "seconds": round(median(seconds), 3),
        "seconds_at_most": round(max(seconds), 3),
    }


def summarise(every: list[list[tuple[float, float]]]) -> dict[str, Any]:
    """Return the mean areas of each seed, with their mean and deviation."""
    means = np.array([np.mean(rows, 0) for rows in every])
    return {
        what: {
            "seeds": [round(float(one), 4) for one in means[:, place]],
            "mean": round(float(np.mean(means[:, place])), 4),
            "deviation": round(float(np.std(means[:, place])), 4),
        }
        for place, what in enumerate(("deletion", "insertion"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    corpus, val = (Corpus.build(options.data / f"{part}.jsonl.gz") for part in ("train", "val"))
    preset = apply_settings(get_preset("default"), ["ordinary_background=false", *options.set])
    kinds: tuple[Literal["random"] | Method, ...] = ("random", *METHODS)
    found: dict[str, list[list[tuple[float, float]]]] = {kind: [] for kind in kinds}
    seconds = dict.fromkeys(METHODS, 0.0)
    for seed in options.seeds:
        model = train(corpus, preset=preset, seed=seed)
        guesses = model.scores(model.read_trees(val)).argmax(1).tolist()
        right = [row for row, one in enumerate(guesses) if model.labels[one] == val.labels[row]]
        chance = np.random.default_rng(seed)
        chosen = chance.permutation(right)[: options.programs]
        for kind in kinds:
            rows = []
            for row in chosen.tolist():
                tree, label = val[row], val.labels[row] or ""
                order = chance.permutation(len(tree))
                if kind != "random":
                    order = rank(model, tree, label, kind, seconds)
                rows.append(areas(model, tree, label, order))
            found[kind].append(rows)
            print(seed, kind, np.mean(rows, 0), file=sys.stderr, flush=True)
    result: dict[str, Any] = {
        "data": options.data.name,
        "split": "trained on train, programs of val that it gets right",
        "frontend": "tree-sitter",
        "nodes": getattr(preset.network, "nodes", None),
        "settings": options.set,
        "seeds": options.seeds,
        "programs": [len(rows) for rows in found["random"]],
        "areas": {kind: summarise(every) for kind, every in found.items()},
        "bundled": time_bundled(val),
        "seconds_at_most": {kind: round(most, 3) for kind, most in seconds.items()},
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for kind, parts in result["areas"].items():
        deletion, insertion = (parts[what]["mean"] for what in ("deletion", "insertion"))
        print(f"{kind}: deletion {deletion}, insertion {insertion}")


if __name__ == "__main__":
    main()
