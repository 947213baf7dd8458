"""Training by several processes that torchrun starts, against one process with one thread.

    python benchmarks/torchrun.py python-algorithms/train.jsonl.gz --json

First both learn for one epoch, in float64 and in float32, and what came out is compared. In float32
routing may begin with another capsule of nearly the same length, which changes what follows; so one
process is also compared with one whose weights begin a rounding error away. The processor time of
the first process tells on a busy machine too how much of the work it has left. Then they learn in
turns, for the speed of their last epochs. At last a process is killed in the midst of a training,
and one process goes on with it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from origin import origin
from safetensors.numpy import load_file

import treecaps
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import train as without_report
from treecaps.training.trainer import Trainer

TIMES = {"seconds", "programs_per_second"}
LEARN = ("float32", "float64", "nudged")
STEPS = "steps.json"
CLOSE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", default="classification")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2, help="how often speeds are measured")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--learn", choices=LEARN, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.learn:
        learn(options.data, options.task, options.out, options.learn)
        return
    result: dict[str, Any] = {
        "data": f"{options.data.parent.name}/{options.data.name}",
        "task": options.task,
    }
    with tempfile.TemporaryDirectory() as home:
        data, several, folder = [str(options.data)], options.processes, Path(home)
        data += ["--task", options.task]
        result["first_epoch"] = first_epochs(data, several, folder)
        speeds: dict[int, list[dict[str, float]]] = {1: [], several: []}
        for number in range(options.rounds):
            for processes, found in speeds.items():
                place = folder / f"{processes}-{number}"
                train(processes, data, place, options.epochs)
                found.append(speed(place))
        result["speeds"] = {
            processes: {name: median(one[name] for one in found) for name in found[0]}
            for processes, found in speeds.items()
        }
        result["kill_and_resume"] = kill(several, data, folder / "killed", options.epochs)
    result |= {
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[1], 1),
        **origin(),
    }
    print(json.dumps(result, indent=1) if options.json else result)


def first_epochs(data: list[str], processes: int, folder: Path) -> dict[str, Any]:
    """Return how far several processes, and one that begins a little beside, are from one."""
    found = {}
    for name, (count, how, against) in {
        "several_float64": (processes, "float64", "float64"),
        "several_float32": (processes, "float32", "float32"),
        "one_nudged_float32": (1, "nudged", "float32"),
    }.items():
        places = folder / f"alone-{against}", folder / name
        if not places[0].exists():
            run(1, places[0], __file__, *data, "--learn", against, "--out", str(places[0]))
        run(count, places[1], __file__, *data, "--learn", how, "--out", str(places[1]))
        found[name] = compare(*places)
    return found


def learn(data: Path, task: str, folder: Path, how: str) -> None:
    """Learn for one epoch; one of several processes does its part."""
    if how == "float64":
        torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    steps: list[tuple[float, float]] = []
    preset = apply_settings(get_preset("default", task=task), ["epochs=1"])
    corpus = treecaps.Corpus.build(data)
    begin = Trainer.begin

    def begin_beside(trainer: Trainer) -> None:
        begin(trainer)
        with torch.no_grad():
            for weight in trainer.model.parameters():
                weight.mul_(1 + torch.finfo(weight.dtype).eps)

    if how == "nudged":
        Trainer.begin = begin_beside  # type: ignore[assignment,method-assign]
    model = without_report(
        corpus,
        preset=preset,
        folder=folder,
        on_step=lambda step: steps.append((step.loss, time.process_time())),
    )
    if model.folder:
        (folder / STEPS).write_text(json.dumps(steps))


def start(processes: int, *words: str) -> "subprocess.Popen[str]":
    """Start processes; all that they say is the standard output."""
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.Popen(
        [sys.executable, *(launch if processes > 1 else []), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(processes: int, folder: Path, *words: str) -> None:
    """Train until there is a model."""
    said, _ = (running := start(processes, *words)).communicate()
    if running.returncode or not (folder / "config.json").exists():
        sys.exit(f"{words} failed with {running.returncode}:\n{said}")


def command(data: list[str], folder: Path, epochs: int, *others: str) -> list[str]:
    """Return the words of a training on the command line."""
    words = ["-m", "treecaps", "train", *data, "--out", str(folder)]
    return [*words, "--epochs", str(epochs), *others]


def train(processes: int, data: list[str], folder: Path, epochs: int, *others: str) -> None:
    run(processes, folder, *command(data, folder, epochs, *others))


def kill(processes: int, data: list[str], folder: Path, epochs: int) -> dict[str, float]:
    """Kill the last process in the second epoch, and go on with one."""
    running = start(processes, *command(data, folder, epochs))
    assert running.stdout
    for line in running.stdout:
        if line.startswith("epoch 1/"):
            break
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    rank = f"\0RANK={processes - 1}\0".encode()
    for child in children:
        if rank in Path(f"/proc/{child}/environ").read_bytes():
            os.kill(int(child), signal.SIGKILL)
    begun = time.monotonic()
    running.communicate()
    seconds = time.monotonic() - begun
    train(1, data, folder, epochs, "--resume")
    return {"seconds_until_all_ended": seconds, "epochs_in_all": len(history(folder))}


def history(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "history.json").read_text())["members"][0]
    return found


def speed(folder: Path) -> dict[str, float]:
    """Return the speed of the epochs but the first, in which loops are compiled."""
    epochs = history(folder)[1:]
    return {
        "programs_per_second": median(epoch["programs_per_second"] for epoch in epochs),
        "seconds_of_an_epoch": median(epoch["seconds"] for epoch in epochs),
    }


def compare(one: Path, other: Path) -> dict[str, float | int]:
    """Return how far losses, metrics and weights are apart at most, and from which step on."""
    losses, others = (json.loads((folder / STEPS).read_text()) for folder in (one, other))
    apart = [abs(first[0] - second[0]) for first, second in zip(losses, others, strict=True)]
    (epoch,), (same,) = history(one), history(other)
    metrics = [abs(epoch[name] - same[name]) for name in epoch.keys() - TIMES if epoch[name]]
    arrays, found = (load_file(folder / "model.safetensors") for folder in (one, other))
    weights = [float(np.abs(arrays[name] - found[name]).max(initial=0)) for name in arrays]
    return {
        "steps": len(apart),
        "processor_seconds_of_the_second_half": others[-1][1] - others[len(others) // 2][1],
        "of_one": losses[-1][1] - losses[len(losses) // 2][1],
        "steps_within_1e-4": next(
            (step for step, value in enumerate(apart) if value > CLOSE), len(apart)
        ),
        "largest_difference_of_losses": max(apart),
        "of_metrics": max(metrics),
        "of_weights": max(weights),
    }


if __name__ == "__main__":
    main()
