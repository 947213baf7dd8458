"""How much memory a training takes, against the number of programs, and what it costs.

    python benchmarks/memory.py --data problems/train.jsonl.gz --programs 10000 100000 --json

For each number of programs, spread over the data set, one epoch is trained for similarity with the
default network, in a process of its own, twice: the first parses the programs, makes them blind and
keeps their features on disk; the second finds all that. Memory is the peak of the process and of
its workers together, each page counted once.

The speed of a step is that of programs from disk against the same programs in memory: both in one
process, in turns, step by step.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from origin import origin

from treecaps.data.corpus import Corpus
from treecaps.syntax.blind import blind
from treecaps.syntax.tree import Tree
from treecaps.training import prepare as preparing
from treecaps.training.prepare import Data, change_trees, prepare
from treecaps.training.presets import Preset, apply_settings, get_preset
from treecaps.training.train import train
from treecaps.training.trainer import Trainer

STEPS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--step-programs", type=int, default=4_000)
    parser.add_argument("--train", type=Path, help="train on this, and tell (for the other runs)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.train:
        print(json.dumps(train_once(options.train)))
        return
    rows = []
    for programs in options.programs:
        with tempfile.TemporaryDirectory() as home:
            data = take(options.data, programs, Path(home))
            first, again = (run(data, Path(home) / "cache") for _ in range(2))
            features = (Path(home) / "cache").glob("features-*/programs.bin")
            rows.append(
                {
                    **first,
                    "peak_mb_again": again["peak_mb"],
                    "prepare_seconds_again": again["prepare_seconds"],
                    "ms_a_program_again": again["ms_a_program"],
                    "features_mb": round(sum(path.stat().st_size for path in features) / 1e6),
                }
            )
            print(rows[-1], file=sys.stderr)
    with tempfile.TemporaryDirectory() as home:
        os.environ["TREECAPS_CACHE"] = home
        steps = compare_steps(take(options.data, options.step_programs, Path(home)))
    result = {"data": options.data.parent.name, "trainings": rows, "step": steps, **origin()}
    print(json.dumps(result, indent=1) if options.json else result)


def take(data: Path, programs: int, home: Path) -> Path:
    """Write some programs of a data set, spread over all of it."""
    with gzip.open(data, "rb") as file:
        lines = sum(1 for _ in file)
    chosen = set(np.linspace(0, lines - 1, min(programs, lines)).astype(int).tolist())
    path = home / "programs.jsonl"
    with gzip.open(data, "rb") as file, path.open("wb") as out:
        out.writelines(line for number, line in enumerate(file) if number in chosen)
    return path


def run(data: Path, cache: Path) -> dict[str, Any]:
    """Train in a process of its own, and watch how much memory it takes."""
    words = [sys.executable, __file__, "--data", str(data), "--train", str(data)]
    environment = {**os.environ, "TREECAPS_CACHE": str(cache)}
    most = 0.0
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        while process.poll() is None:
            most = max(most, memory(process.pid))
            time.sleep(0.5)
        assert process.stdout
        if process.returncode:
            raise SystemExit(process.returncode)
        found: dict[str, Any] = json.loads(process.stdout.read())
    return {**found, "peak_mb": round(most)}


def memory(session: int) -> float:
    """Return the MB of all processes of a session; what they share counts once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                rollup = (folder / "smaps_rollup").read_text()
                total += int(rollup.split("\nPss:")[1].split()[0])
        except (OSError, IndexError):
            continue  # it has ended meanwhile
    return total / 1024


def preset() -> Preset:
    return apply_settings(get_preset("default", task="similarity"), ["epochs=1"])


def train_once(data: Path) -> dict[str, Any]:
    """Train for an epoch, and return the seconds before it and the time of a program in it."""
    begun = time.perf_counter()
    first: list[float] = []
    epochs: list[dict[str, Any]] = []
    corpus = Corpus.build(data)
    train(
        corpus,
        preset=preset(),
        on_step=lambda progress: first.append(time.perf_counter()) if not first else None,
        on_epoch=lambda _, metrics: epochs.append(metrics),
    )
    return {
        "programs": len(corpus),
        "nodes": int(corpus.node_counts.sum()),
        "prepare_seconds": round(first[0] - begun, 1),
        "ms_a_program": round(1000 / epochs[0]["programs_per_second"], 2),
    }


def compare_steps(data: Path) -> dict[str, Any]:
    """Take steps with programs from disk and from memory in turns."""
    corpus, chosen = Corpus.build(data), preset()
    trainers = {}
    for name, most in (("disk", 0), ("memory", sys.maxsize)):
        preparing._IN_MEMORY = most
        trainers[name] = Trainer(chosen, prepared(corpus, chosen), 0)
        trainers[name].begin()
        trainers[name].model.train()
    size = trainers["disk"].schedule.batch_size
    order = np.random.default_rng(0).permutation(len(trainers["disk"].data.train))
    taken: dict[str, list[float]] = {name: [] for name in trainers}
    for number in range(STEPS + 1):  # the first does not count
        rows = np.resize(order[number * size :], size)
        for name, trainer in trainers.items():
            begun = time.process_time()
            trainer._training_step(rows, 1e-4, np.random.default_rng(number))
            if number:
                taken[name].append(1000 * (time.process_time() - begun))
    ratios = [disk / memory for disk, memory in zip(*taken.values(), strict=True)]
    low, _, high = quantiles(ratios, n=4)
    return {
        "batch": size,
        **{f"{name}_ms": round(median(times), 1) for name, times in taken.items()},
        "ratio": round(median(ratios), 3),
        "ratio_quartiles": [round(low, 3), round(high, 3)],
    }


def prepared(corpus: Corpus, chosen: Preset) -> Data:
    def blinded(trees: Any) -> Sequence[Tree]:
        return change_trees(trees, "blind", blind, "tree-sitter", False)

    return prepare(
        corpus,
        corpus.labels,
        None,
        task=chosen.task,
        read_trees=chosen.read_trees,
        packing=chosen.packing,
        val_share=0.1,
        seed=0,
        tokens=chosen.network.known_tokens,
        blind=blinded,
    )


if __name__ == "__main__":
    main()
