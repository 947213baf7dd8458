"""What could run trained models: NumPy, ONNX Runtime, PyTorch. Size, start and speed of each.

    python benchmarks/engines.py --data atlas/val.jsonl.gz --json

Size is that of the installed package and of what it needs beside NumPy; start is the processor
time of a new process that imports it. A step is the dense part of the last convolution, where a
network spends most of its time: a product and tanh, for the distinct windows of a batch. For all
of a network, ONNX Runtime would need the sums over the members of windows and the routing too, so
a step is the least that it takes. One thread, all in turns.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from origin import origin
from threadpoolctl import threadpool_limits

from treecaps.data.corpus import Corpus
from treecaps.inputs.base import Input
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.trained import TrainedModel, load
from treecaps.nn.memory import tune_malloc

PACKAGES = {
    "numpy": ("numpy",),
    "onnxruntime": ("onnxruntime", "flatbuffers", "protobuf"),
    "torch": ("torch", "sympy", "networkx", "mpmath", "fsspec", "filelock", "jinja2"),
}
BATCH, BLOCK = 128, 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tune_malloc()
    known = [name for name in PACKAGES if find_spec(name)]
    with threadpool_limits(1):
        found: dict[str, Any] = {
            "megabytes": {name: round(sum(map(megabytes, PACKAGES[name])), 1) for name in known},
            "start_seconds": starts(known, options.rounds),
            "step_ms": time_in_turns(steps(known), options.rounds),
            "program_ms": time_networks(options.data, options.programs, options.rounds),
            **origin(),
        }
    print(json.dumps(found, indent=1) if options.json else found)


def megabytes(package: str) -> float:
    """Return the size of an installed package."""
    files = distribution(package).files or []
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def starts(names: list[str], rounds: int) -> dict[str, float]:
    """Return the processor seconds of new processes that import a package, all in turns."""
    script = "import time, {}; print(time.process_time())"
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            words = [sys.executable, "-c", script.format(name)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            found[name].append(float(done.stdout))
    return {name: round(median(taken), 3) for name, taken in found.items()}


def steps(names: list[str]) -> dict[str, Callable[[], object]]:
    """Return what computes the dense part of a convolution, by package."""
    chance = np.random.default_rng(0)
    sums, weight, bias = (
        chance.normal(size=shape).astype(np.float32) for shape in ((15_000, 192), (192, 512), 512)
    )
    tensors = [torch.from_numpy(one) for one in (sums, weight, bias)]
    outputs = np.empty((len(sums), len(bias)), np.float32)

    def step_by_numpy() -> None:
        for begin in range(0, len(sums), BLOCK):  # as the engine does it
            part = outputs[begin : begin + BLOCK]
            np.matmul(sums[begin : begin + BLOCK], weight, out=part)
            part += bias
            np.tanh(part, out=part)

    found: dict[str, Callable[[], object]] = {
        "numpy": step_by_numpy,
        "torch": lambda: torch.addmm(tensors[2], tensors[0], tensors[1]).tanh_(),
    }
    if "onnxruntime" in names:
        session = onnx_session(weight, bias)
        found["onnxruntime"] = lambda: session.run(None, {"sums": sums})
    return found


def onnx_session(weight: Any, bias: Any) -> Any:
    """Return a model of ONNX Runtime that computes the same."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["sums", "weight", "bias"], ["linear"]),
            helper.make_node("Tanh", ["linear"], ["outputs"]),
        ],
        "step",
        [helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["windows", len(weight)])],
        [helper.make_tensor_value_info("outputs", TensorProto.FLOAT, ["windows", len(bias)])],
        [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(bias, "bias")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), settings)


def time_networks(data: Path, programs: int, rounds: int) -> dict[str, float]:
    """Return the milliseconds a program from trees to scores, of a whole model."""
    corpus = Corpus.build(data)
    trees = [corpus[row] for row in range(min(programs, len(corpus)))]
    found: dict[str, Callable[[], object]] = {}
    for name, build in (("numpy", None), ("torch", TorchEngine.build)):
        model = load("algorithms", engine=build)
        parts = [model.read_trees(trees[k : k + BATCH]) for k in range(0, len(trees), BATCH)]
        found[name] = partial(score, model, parts)
    taken = time_in_turns(found, rounds)
    return {name: round(ms / len(trees), 3) for name, ms in taken.items()}


def score(model: TrainedModel, parts: list[Input]) -> None:
    for part in parts:
        model.scores(part)


def time_in_turns(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median processor milliseconds of calls, which take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(rounds + 1):  # the first does not count
        for name, call in calls.items():
            begun = time.process_time()
            call()
            if round_:
                found[name].append(1000 * (time.process_time() - begun))
    return {name: round(median(taken), 2) for name, taken in found.items()}


if __name__ == "__main__":
    main()
