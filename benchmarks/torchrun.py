"""Training by several processes that torchrun starts, against one process with one thread.

    python benchmarks/torchrun.py python-algorithms/train.jsonl.gz --json

First both learn for one epoch, and what came out is compared. Then they learn in turns, for the
speed of their last epochs. At last a process is killed in the midst of a training, and one process
goes on with it, to the end of one that nobody killed.
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
from origin import origin
from safetensors.numpy import load_file

TIMES = {"seconds", "programs_per_second"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", default="classification")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2, help="how often speeds are measured")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result: dict[str, Any] = {"data": options.data.name, "task": options.task}
    with tempfile.TemporaryDirectory() as home:
        words = [str(options.data), "--task", options.task]
        several, folder = options.processes, Path(home)
        train(1, folder / "one", 1, *words)
        train(several, folder / "several", 1, *words)
        result["first_epoch"] = compare(folder / "one", folder / "several")
        speeds: dict[int, list[dict[str, float]]] = {1: [], several: []}
        for number in range(options.rounds):
            for processes, found in speeds.items():
                place = folder / f"{processes}-{number}"
                train(processes, place, options.epochs, *words)
                found.append(speed(place))
        result["speeds"] = [
            {
                "processes": processes,
                **{name: median(one[name] for one in found) for name in found[0]},
            }
            for processes, found in speeds.items()
        ]
        result["kill_and_resume"] = kill(several, folder / "killed", options.epochs, words)
        result["kill_and_resume"] |= compare(folder / f"{several}-0", folder / "killed")
    result |= {
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[1], 1),
        **origin(),
    }
    print(json.dumps(result, indent=1) if options.json else result)


def start(processes: int, folder: Path, epochs: int, *words: str) -> "subprocess.Popen[str]":
    """Start a training; all that its processes say is the standard output."""
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *(launch if processes > 1 else []), "-m", "treecaps", "train"]
    return subprocess.Popen(
        [*command, *words, "--out", str(folder), "--epochs", str(epochs)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def train(processes: int, folder: Path, epochs: int, *words: str) -> None:
    said, _ = (running := start(processes, folder, epochs, *words)).communicate()
    if not (folder / "config.json").exists():
        sys.exit(f"{running.args} failed:\n{said}")


def kill(processes: int, folder: Path, epochs: int, words: list[str]) -> dict[str, float]:
    """Kill the last process in the second epoch, and go on with one."""
    running = start(processes, folder, epochs, *words)
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
    train(1, folder, epochs, *words, "--resume")
    return {"seconds_until_all_ended": seconds}


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


def compare(one: Path, other: Path) -> dict[str, float]:
    """Return how far metrics and weights are apart at most."""
    metrics = [
        abs(first[name] - second[name])
        for first, second in zip(history(one), history(other), strict=True)
        for name in first.keys() - TIMES
        if first[name] is not None
    ]
    arrays, others = (load_file(folder / "model.safetensors") for folder in (one, other))
    weights = [float(np.abs(arrays[name] - others[name]).max(initial=0)) for name in arrays]
    return {"largest_difference_of_metrics": max(metrics), "of_weights": max(weights)}


if __name__ == "__main__":
    main()
