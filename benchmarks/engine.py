"""How fast the network is, and what sharing windows is worth.

Measures on the programs of a data set:

- for every preset, one program at a time and in batches, training and classification of the same
  programs by the engine, by the naive network of the tests (a capsule for every node, one tree at a
  time) and by the engine without sharing (every node a window of its own), alternating;
- time and memory of the preset ``paper`` for one program of 100 to 200,000 nodes, each in a process
  of its own;
- with ``--epoch``, one epoch of it over the whole data set, in a process of its own.

What the naive side prepares (who is in whose window) is not counted; what the engine prepares
(``from_trees`` for classification, ``select`` for training) is.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from origin import origin

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the naive network

from tests.naive import naive_forward, nodes_of

from treecaps.data.corpus import Corpus
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.windows import Windows
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.treecaps import Capsules, TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn.memory import tune_malloc
from treecaps.nn.tensors import to_tensors
from treecaps.reproduction.memory import forget_peak, peak
from treecaps.syntax.tree import Tree
from treecaps.training.presets import get_preset

SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 200_000)
BATCHES = (1, 16)
SETTINGS = (
    *("nodes", "vector_size", "hidden", "window_depth", "channels", "slices", "capsule_size"),
    *(
        "statics",
        "routed",
        "static_iterations",
        "per_channel",
        "joint",
        "by_coordinate",
        "code_size",
        "code_iterations",
    ),
)
"""What the time depends on."""


def compare(corpus: Corpus, preset: str, batch: int, rounds: int) -> dict[str, Any]:
    """Run the same batches through all networks of a preset, alternating."""
    config = get_preset(preset).network
    assert isinstance(config, TreeCapsConfig)
    labels = sorted({label or "" for label in corpus.labels})
    vocabulary = Vocabulary.of(corpus, config.known_tokens)
    torch.manual_seed(0)
    network = TreeCaps(config, len(vocabulary), len(labels), len(vocabulary.tokens))
    programs = network.read_trees(config, corpus, vocabulary)
    network.fit_features(programs)
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {}
    nodes = []
    for turn in range(rounds + 1):
        rows = rng.choice(len(corpus), batch, replace=len(corpus) < batch)
        trees = [corpus[int(row)] for row in rows]
        nodes.append(np.mean([len(tree) for tree in trees]))
        label = torch.tensor([labels.index(corpus.labels[int(row)] or "") for row in rows])
        for name, run in sides_of(network, vocabulary, programs, rows, trees, label).items():
            network.zero_grad()
            begun = time.perf_counter()
            run()
            if turn:  # the first round only warms up
                seconds.setdefault(name, []).append(time.perf_counter() - begun)
    result: dict[str, Any] = {"nodes_per_program": round(float(np.mean(nodes[1:])))}
    for name, times in seconds.items():
        result[f"{name}_ms_per_program"] = round(1000 * float(np.median(times)) / batch, 3)
    for what in ("train", "infer"):
        for other, key in (("naive", "ratio"), ("unshared", "ratio_unshared")):
            ratios = np.array(seconds[f"{what}_{other}"]) / np.array(seconds[what])
            low, middle, high = np.percentile(ratios, (25, 50, 75))
            result[f"{what}_{key}"] = round(float(middle), 2)
            result[f"{what}_{key}_quartiles"] = [round(float(low), 2), round(float(high), 2)]
    return result


def sides_of(
    network: TreeCaps,
    vocabulary: Vocabulary,
    programs: WindowsAndBags,
    rows: NDArray[np.int64],
    trees: list[Tree],
    label: torch.Tensor,
) -> dict[str, Callable[[], None]]:
    """Return the works to compare. Training stops at the gradient, so that all have one network."""
    config = network.config
    prepared = [nodes_of(tree, vocabulary, config.window_depth) for tree in trees]
    some = programs.select(rows)
    apart = WindowsAndBags(unshared(some.windows, config.counts == "log"), some.bags)

    def naive() -> Capsules:
        every = [naive_forward(network, nodes) for nodes in prepared]
        code, coupling, static = (torch.stack(parts) for parts in zip(*every, strict=True))
        return Capsules(code.norm(dim=2), code, coupling, static)

    def run(inputs: WindowsAndBags) -> Capsules:
        found: Capsules = network(to_tensors(inputs, network.vectors))
        return found

    def train(forward: Callable[[], Capsules]) -> None:
        network.loss(forward(), label).backward()  # type: ignore[no-untyped-call]

    def infer(forward: Callable[[], Capsules]) -> None:
        with torch.no_grad():
            forward()

    return {
        "train": partial(train, lambda: run(programs.select(rows))),
        "train_unshared": partial(train, lambda: run(apart)),
        "train_naive": partial(train, naive),
        "infer": partial(infer, lambda: run(network.read_trees(config, trees, vocabulary))),
        "infer_unshared": partial(infer, lambda: run(apart)),
        "infer_naive": partial(infer, naive),
    }


def unshared(programs: Windows, log_counts: bool) -> Windows:
    """Give every node a window of its own, in all layers."""
    layers: list[Any] = []
    chosen = np.repeat(programs.window, programs.count)
    for place in range(len(programs.layers) - 1, -1, -1):
        windows = programs.layers[place].select(chosen)
        chosen = windows.member
        layers.insert(0, windows.over(np.arange(len(chosen))) if place else windows)
    ends = np.concatenate([[0], np.cumsum(programs.node_counts)])
    nodes = int(ends[-1])
    count, nowhere = np.ones(nodes, np.int64), np.zeros(nodes, np.int64)
    share = None
    if log_counts:  # of the logarithm of how often a window occurs, each node has its part
        count = np.repeat(programs.count, programs.count)
        share = (1 / count).astype(np.float32)
    return Windows(programs.symbols, tuple(layers), ends, np.arange(nodes), count, nowhere, share)


def join(corpus: Corpus, size: int) -> Tree:
    """Make a program of a size from real ones: their trees, or a part of the last, as one."""
    kinds: list[str] = ["program"]
    parents: list[int] = [-1]
    place = 0
    while len(kinds) < size:
        tree = corpus[place % len(corpus)]
        most = size - len(kinds)
        first = len(kinds)
        kinds += tree.kind_names()[:most]
        parents += [0, *(int(parent) + first for parent in tree.parent[1:most])]
        place += 1
    return Tree.build(kinds, parents)


def measure_size(corpus: Corpus, preset: str, size: int) -> dict[str, Any]:
    config = get_preset(preset).network
    assert isinstance(config, TreeCapsConfig)
    vocabulary = Vocabulary.of(corpus[number] for number in range(min(len(corpus), 500)))
    network = TreeCaps(config, len(vocabulary), 10)
    tree = join(corpus, size)

    def read(tree: Tree) -> Any:
        found = WindowsAndBags.from_trees([tree], vocabulary, config.depths)
        return to_tensors(found, network.vectors)

    small = read(join(corpus, 50))
    network.loss(network(small), torch.zeros(1, dtype=torch.long)).backward()  # type: ignore[no-untyped-call]

    def classify() -> None:
        with torch.no_grad():
            network(read(tree))

    def train() -> None:
        network.loss(network(read(tree)), torch.zeros(1, dtype=torch.long)).backward()  # type: ignore[no-untyped-call]

    result: dict[str, Any] = {"nodes": len(tree)}
    windows = len(Windows.from_trees([tree], vocabulary, config.depths).window)
    result["distinct_windows"] = windows
    for name, work in (("infer", classify), ("train", train)):
        times = []
        before = forget_peak()
        for _ in range(5):
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
        result[f"{name}_ms"] = round(1000 * float(np.median(times)), 2)
        result[f"{name}_memory_mb"] = round(peak() - before, 1)
    return result


def measure_epoch(corpus: Corpus, preset: str) -> dict[str, Any]:
    from dataclasses import replace

    from treecaps.training.train import train

    chosen = get_preset(preset)
    chosen = replace(
        chosen,
        training=replace(chosen.training, epochs=1, vectors="random", ordinary_background=False),
    )
    begun = time.perf_counter()
    train(corpus, preset=chosen)
    return {
        "programs": len(corpus),
        "seconds": round(time.perf_counter() - begun, 1),
        # Not what `resource` says: that is at least what the process had that started this one.
        "peak_memory_mb": round(peak()),
    }


def main() -> None:
    if "GOMP_SPINCOUNT" not in os.environ:
        # As the command line has it; it must be set before PyTorch is loaded.
        os.environ["GOMP_SPINCOUNT"] = "10000"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--frontend", default="tree-sitter")
    parser.add_argument("--preset", default="paper", help="for single programs and the epoch")
    parser.add_argument("--presets", nargs="+", default=["default", "paper", "published"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--epoch", action="store_true", help="also train one whole epoch")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    tune_malloc()
    if options.threads:
        torch.set_num_threads(options.threads)
    corpus = Corpus.build(options.data, frontend=options.frontend)
    if options.only == "epoch":
        print(json.dumps(measure_epoch(corpus, options.preset)))
        return
    if options.only:
        print(json.dumps(measure_size(corpus, options.preset, int(options.only))))
        return

    def apart(what: str) -> dict[str, Any]:
        command = [sys.executable, __file__, *sys.argv[1:], "--only", what]
        found: dict[str, Any] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        return found

    result = {
        "data": f"{options.data.parent.name}/{options.data.name}",
        "frontend": options.frontend,
        "threads": torch.get_num_threads(),
        "presets": {
            name: {
                "settings": {key: getattr(get_preset(name).network, key) for key in SETTINGS},
                **{str(size): compare(corpus, name, size, options.rounds) for size in BATCHES},
            }
            for name in options.presets
        },
        "preset_of_sizes": options.preset,
        "sizes": [apart(str(size)) for size in SIZES],
    }
    if options.epoch:
        result["epoch"] = apart("epoch")
    result |= origin()
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for key, value in result.items():
        for line in value if isinstance(value, list) else [value]:
            print(f"{key:32} {line}")


if __name__ == "__main__":
    main()
