"""How well programs are rebuilt from their code capsules, and whether learning that helps.

    python benchmarks/reconstruction.py --data DIR --json

``DIR`` holds ``train.jsonl.gz`` and ``val.jsonl.gz``, which are divided anew for each seed as
``accuracy.py --folds 5 --parts 1`` does. For each weight of the reconstruction a network of the
preset ``default`` is trained. Accuracy on the held-out programs, as is and blind, and how far the
rebuilt distribution of windows is from theirs as they are (Kullback-Leibler divergence in nats,
from the code capsule of the right class); beside it, how far the mean distribution of all training
programs is, and that of those of the right class.
"""

import argparse
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import accuracy
import numpy as np
import torch
from origin import origin
from torch import Tensor
from torch.nn.functional import kl_div

from treecaps.models.torch_engine import batches
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.memory import tune_malloc
from treecaps.training.prepare import Data
from treecaps.training.trainer import Trainer

FOLDS = 5


def divergences(network: TreeCaps, data: Data) -> dict[str, float]:
    """Return how far what is rebuilt, and two means, are from held-out programs."""
    assert network.decoder is not None
    learned, held_out = (
        part.inputs.select(range(len(part))) for part in (data.train, data.val)
    )  # as they are, not blind
    shares: list[Tensor] = []
    for inputs in (learned, held_out):
        ready = batches(inputs, network)
        parts = [network.decoder.shares(batch.windows) for _, batch in ready]
        shares.append(torch.cat(parts))
    label = torch.from_numpy(data.val.label)
    with torch.no_grad():
        rebuilt = [
            network.decoder(network(batch).code, label[begin : begin + len(batch)])
            for begin, batch in batches(held_out, network)
        ]
    # A window that no training program of a class has is still possible.
    smooth = 1e-4
    learned_label = torch.from_numpy(data.train.label)
    means = torch.stack(
        [shares[0][learned_label == one].mean(0) for one in range(len(data.labels))]
    )
    found = {
        "rebuilt": torch.cat(rebuilt),
        "mean of the class": ((means + smooth) / (1 + smooth * means.shape[1])).log()[label],
        "mean of all": (shares[0].mean(0) + 1e-9).log().expand_as(shares[1]),
    }
    return {
        name: kl_div(guess, shares[1], reduction="batchmean").item()
        for name, guess in found.items()
    }


def score(data: Data, options: Any, seed: int) -> dict[str, float]:
    """Train a network, and return its accuracies and divergences on held-out programs."""
    trainer = Trainer(accuracy.preset_of(options), data, 100 * seed)
    trainer.begin()
    while not trainer.finished:
        figures = trainer.run_epoch(lambda *_: None)
    assert isinstance(trainer.model, TreeCaps)
    trainer.model.eval()
    return {
        "accuracy": figures["val_accuracy"],
        "accuracy_blind": figures["val_accuracy_blind"],
        **divergences(trainer.model, data),
    }


def summarise(found: list[float]) -> dict[str, Any]:
    """Return the figures of each seed with their mean and deviation."""
    return {
        "seeds": [round(one, 5) for one in found],
        "mean": round(float(np.mean(found)), 4),
        "deviation": round(float(np.std(found)), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.1, 1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    options = SimpleNamespace(
        data=given.data,
        frontend="tree-sitter",
        model="treecaps",
        preset="default",
        set=given.set,
        folds=FOLDS,
        parts=1,
        from_language=None,
        init_from=None,
        svm_tokens=None,
    )
    programs = accuracy.Programs.load(options)
    rows: dict[float, list[dict[str, float]]] = {weight: [] for weight in given.weights}
    for seed in given.seeds:
        ((learn, held_out),) = accuracy.parts(programs, options, seed)
        data = accuracy.prepare_part(programs, learn, held_out, options)
        for weight in given.weights:
            options.set = [*given.set, f"reconstruction={weight}"]
            row = score(data, options, seed)
            print(seed, weight, row, file=sys.stderr, flush=True)
            rows[weight].append(row)
    result: dict[str, Any] = {
        "data": given.data.name,
        "split": f"{FOLDS}-fold cross-validation on train+val, 1 of them scored",
        "frontend": options.frontend,
        "nodes": accuracy.nodes_of(accuracy.preset_of(options)),
        "settings": given.set,
        "seeds": given.seeds,
        "weights": {
            str(weight): {name: summarise([row[name] for row in found]) for name in found[0]}
            for weight, found in rows.items()
        },
        **origin(),
    }
    if given.json:
        print(json.dumps(result, indent=1))
        return
    for weight, figures in result["weights"].items():
        print(weight, {name: one["mean"] for name, one in figures.items()})


if __name__ == "__main__":
    main()
