"""How many programs a second each model trains on and classifies, in one run.

    python benchmarks/models.py --data java-sort/train.jsonl.gz --json

All models take turns, round after round, on the same programs: an epoch of training in batches of
16, then classifying all of them. Trees are made before; sharing windows, subtrees or edges is timed
by itself. One thread. Medians and quartiles over the rounds.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from origin import origin

from treecaps.data.corpus import Corpus
from treecaps.models.architectures import ARCHITECTURES
from treecaps.models.torch_engine import batches
from treecaps.nn.memory import tune_malloc
from treecaps.training.prepare import Data, prepare
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.trainer import Trainer


def begin(name: str, corpus: Corpus, programs: int) -> tuple[Trainer, Data, float]:
    """Return a trainer that is ready, its data, and the seconds it took to share them."""
    preset = apply_settings(
        get_preset("default", name), ["batch_size=16", "rename_probability=0", "window_dropout=0"]
    )
    trees = [corpus[row] for row in range(programs)]
    begun = time.perf_counter()
    data = prepare(
        trees,
        corpus.labels[:programs],
        None,
        read_trees=preset.read_trees,
        val_share=0,
        seed=0,
        tokens=preset.network.known_tokens,
    )
    shared = time.perf_counter() - begun
    trainer = Trainer(preset, data, 0)
    trainer.begin()
    return trainer, data, shared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=tuple(ARCHITECTURES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    corpus = Corpus.build(options.data)
    programs = min(options.programs, len(corpus))
    names = options.models or list(ARCHITECTURES)
    ready = {name: begin(name, corpus, programs) for name in names}
    rates: dict[str, dict[str, list[float]]] = {name: {"train": [], "infer": []} for name in names}
    for _ in range(options.rounds):
        for name, (trainer, data, _) in ready.items():
            begun = time.perf_counter()
            trainer.run_epoch(lambda *_: None)
            middle = time.perf_counter()
            trainer.model.eval()
            with torch.no_grad():
                for _, batch in batches(data.train.inputs, trainer.model):
                    trainer.model(batch)
            rates[name]["train"].append(programs / (middle - begun))
            rates[name]["infer"].append(programs / (time.perf_counter() - middle))
    result: dict[str, Any] = {
        "data": options.data.parent.name,
        "programs": programs,
        "rounds": options.rounds,
        "models": {
            name: {
                "share": round(programs / ready[name][2], 1),
                **{
                    what: {
                        "programs_per_second": round(median(values), 1),
                        "quartiles": [round(one, 1) for one in quantiles(values, n=4)[::2]],
                    }
                    for what, values in found.items()
                },
                "parameters": sum(weight.numel() for weight in ready[name][0].model.parameters()),
            }
            for name, found in rates.items()
        },
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, found in result["models"].items():
        rates_of = [found[what]["programs_per_second"] for what in ("train", "infer")]
        print(f"{name}: trains on {rates_of[0]:,}, classifies {rates_of[1]:,} programs/s")


if __name__ == "__main__":
    main()
