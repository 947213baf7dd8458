"""The same folder with and without Ray, on a local cluster of two nodes, one of which is killed.

    python benchmarks/cluster.py --data problems/train.jsonl.gz --programs 20000 --out FILE

Writes programs of a data set to files of their own. ``treecaps classify`` runs over their folder
with processes of this machine, then on a cluster of one core, of two nodes with a core each, and of
three nodes of which one is killed when a third is done. All answers must be equal, in content and
order. What Ray itself costs is the difference of one core with Ray and one without, and the time of
tasks that do nothing. Files are read by the driver, so its seconds are told by themselves.
"""

import argparse
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import ray
from folder import write_files
from origin import origin
from ray.cluster_utils import Cluster

from treecaps import Failure, RayCluster, TrainedModel, load
from treecaps.inference.classify import Classification, classify
from treecaps.models.bundled import DEFAULT
from treecaps.models.engine import set_num_threads
from treecaps.syntax.program import ProgramFile

RUNS = {
    "one process": 1,
    "two processes": 2,
    "ray, one core": 1,
    "ray, two nodes": 2,
    "ray, one of three nodes killed": 3,
}
"""The ways, and how many processes or nodes each has."""
_TASKS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Write the figures to this file.")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run, load(options.model), options.data)))
        return
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = sorted(write_files(options.data, options.programs, folder))
        runs = [
            measure(name, folder, options.model) for _ in range(options.rounds) for name in RUNS
        ]
        reading = time.perf_counter()
        for path in files:
            ProgramFile(path, str(path)).read()
        reading = time.perf_counter() - reading
    speeds = {
        name: round(len(files) / median(one["seconds"] for one in runs if one["run"] == name), 1)
        for name in dict.fromkeys(one["run"] for one in runs)
    }
    result = {
        "data": options.data.parent.name,
        "model": options.model,
        "files": len(files),
        "equal": len({one["digest"] for one in runs}) == 1,
        "files_per_second": speeds,
        "two_nodes_over_one": round(speeds["ray, two nodes"] / speeds["ray, one core"], 2),
        "ray_over_none_on_one_core": round(speeds["ray, one core"] / speeds["one process"], 2),
        "milliseconds_a_task_that_does_nothing": median(
            one["task_ms"] for one in runs if one["run"] == "ray, one core"
        ),
        "seconds_to_read_the_files": round(reading, 2),
        "load_of_the_machine": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "cores_of_the_machine": os.cpu_count(),
        "runs": runs,
        "ray": ray.__version__,
        **origin(),
    }
    text = json.dumps(result, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def measure(name: str, folder: Path, model: str) -> dict[str, Any]:
    """Classify the files of a folder in one of the ways, in a process of its own."""
    words = [sys.executable, __file__, "--run", name, "--data", str(folder), "--model", model]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"run": name, **found}


def run(name: str, model: TrainedModel, folder: Path) -> dict[str, Any]:
    """Classify the files of a folder; return how long it took, and a digest of the answers."""
    set_num_threads(1)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if name in ("one process", "two processes"):
        return take(classify(model, files, workers=RUNS[name]))
    with cluster(RUNS[name]) as nodes:
        found = classify(model, files, workers=RayCluster())
        if RUNS[name] == 3:
            return take(killing(nodes, found, len(files)))
        return {**take(found), "task_ms": round(1000 * time_of_a_task(), 2)}


def take(found: Iterable[Classification | Failure]) -> dict[str, Any]:
    """Take all answers; return the seconds, and a digest of the answers in their order."""
    digest, begun, first = hashlib.sha256(), time.perf_counter(), 0.0
    for one in found:
        first = first or time.perf_counter() - begun
        values = vars(one) if isinstance(one, Failure) else one.to_dict()
        digest.update(json.dumps(values).encode() + b"\n")
    seconds = time.perf_counter() - begun
    return {
        "seconds": round(seconds, 2),
        "first_answer_seconds": round(first, 2),
        "digest": digest.hexdigest()[:16],
    }


def killing(
    nodes: Cluster, found: Iterable[Classification | Failure], files: int
) -> Iterator[Classification | Failure]:
    """Yield answers, and kill a node that the driver is not on after a third of them."""
    for number, one in enumerate(found):
        if number == files // 3:
            nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        yield one


def time_of_a_task() -> float:
    """Return the seconds that a task takes which does nothing, when many are under way."""
    nothing = ray.remote(_do_nothing)
    ray.get([nothing.remote() for _ in range(_TASKS)])  # processes start
    begun = time.perf_counter()
    ray.get([nothing.remote() for _ in range(_TASKS)])
    return (time.perf_counter() - begun) / _TASKS


def _do_nothing() -> None:
    pass


@contextmanager
def cluster(nodes: int) -> Iterator[Cluster]:
    """Start nodes with a core each on this machine; this process is a driver on the first."""
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(nodes - 1):
        found.add_node(num_cpus=1)
    ray.init(found.address, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        yield found
    finally:
        ray.shutdown()
        found.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
