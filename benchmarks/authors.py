"""How fast the authors' own code is beside the preset ``published``, which does the same.

    python benchmarks/authors.py --data train.jsonl.gz --code FOLDER --python INTERPRETER

Their code is no part of this project. The folder has their ``network.py`` with variable-to-static
routing (github.com/bdqnghi/treecaps, commit f70f3cea), unchanged; the interpreter has
``tensorflow-cpu`` and, for their optimiser, ``keras-radam``, installed without what it depends on.
Their code is of TensorFlow 1: a second process runs it in the compatibility mode of TensorFlow 2.

In one run and in turns, both sides work on the same programs, with the same number of threads and
the allocator set to keep freed memory (``tune_malloc``), which the authors do not do:

- classify: from a program to the lengths of the code capsules;
- gradient: to the gradient of the loss;
- train: to new weights, with the step of the optimiser.

Theirs takes one program at a time; ours does that too, and takes all programs of a round as one
batch. Making and padding the arrays of theirs is not counted. Of ours, making windows of trees is
counted for classification, not for the rest, which takes them from the training data. Programs with
fewer nodes than a channel routes are left out: theirs cannot read them.

Before all that, theirs is given the weights of ours: how far their outputs then differ is reported.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

# As the command line has it; it must be set before PyTorch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
# The other interpreter runs this file too, and has neither torch nor this project.
if TYPE_CHECKING:
    from treecaps.data.corpus import Corpus
    from treecaps.models.treecaps import TreeCaps

Program = dict[str, Any]  # kind and parent of each node, the root first, and label, as numbers

WORKS = ("classify", "gradient", "train")
SIDES = ("theirs", "ours", "ours_batch")
PASSES = 4  # over the programs that both sides learn and are compared on
REST = 0.05  # seconds before a side begins, in which the threads of the other go to sleep
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 26),
}
"""What ``tune_malloc`` sets for ours."""


def pad(program: Program) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the kinds ``[1, n]`` and children ``[1, n, most children]`` of a program.

    The root is no child, so its number 0 stands for none.
    """
    children: list[list[int]] = [[] for _ in program["kind"]]
    for node, parent in enumerate(program["parent"]):
        if parent >= 0:
            children[parent].append(node)
    padded = np.zeros((1, len(children), max(map(len, children))), np.int32)
    for node, some in enumerate(children):
        padded[0, node, : len(some)] = some
    return np.array([program["kind"]], np.int32), padded


class Theirs:
    """The authors' network, in the process that has TensorFlow."""

    def __init__(
        self, code: str, kinds: int, size: int, classes: int, threads: int, optimizer: str
    ) -> None:
        tf = _tensorflow_1()
        sys.path.insert(0, code)
        network: Any = import_module("network")
        tf.set_random_seed(0)
        self.nodes, self.children, self.lengths = network.init_net_treecaps(
            size, dict.fromkeys(range(kinds)), classes
        )
        self.labels, self.loss = network.loss_layer(self.lengths, classes)
        variables = tf.trainable_variables()
        rule = _radam()(0.001) if optimizer == "radam" else tf.train.AdamOptimizer(0.001)
        self.fetches = {
            "lengths": self.lengths,
            "classify": network.out_layer(self.lengths),
            # To be fetched as they are: of a group, TensorFlow leaves out what has no effect.
            "gradient": [tf.gradients(self.loss, variables), self.loss],
            "train": [rule.minimize(self.loss), self.loss],
        }
        self.variables, self.classes = variables, classes
        config = tf.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        )
        self.session = tf.Session(config=config)
        self.session.run(tf.global_variables_initializer())
        self.versions = {"tensorflow": tf.__version__, "their_numpy": np.__version__}

    def load(self, path: str) -> None:
        """Take the weights of a file."""
        with np.load(path) as weights:
            for number, variable in enumerate(self.variables):
                variable.load(weights[f"arr_{number}"], self.session)

    def run(self, work: str, programs: list[Program]) -> dict[str, Any]:
        """Work on one program after the other, and return the seconds of all and the results."""
        feeds: list[dict[Any, NDArray[Any]]] = []
        for program in programs:
            kinds, children = pad(program)
            feeds.append({self.nodes: kinds, self.children: children})
            if work in ("gradient", "train"):
                label = np.zeros((1, self.classes), np.float32)
                label[0, program["label"]] = 1
                feeds[-1][self.labels] = label
        time.sleep(REST)
        results = []
        begun = time.perf_counter()
        for feed in feeds:
            results.append(self.session.run(self.fetches[work], feed_dict=feed)[-1])
        seconds = time.perf_counter() - begun
        if work in ("gradient", "train"):
            return {"seconds": seconds, "loss": float(np.mean(results))}
        return {"seconds": seconds, "found": np.array(results).tolist()}


def _tensorflow_1() -> ModuleType:
    """Let modules that import ``tensorflow`` and ``utils`` find what the authors' had."""
    tf = import_module("tensorflow.compat.v1")
    tf.disable_v2_behavior()
    layers = SimpleNamespace(xavier_initializer=tf.glorot_uniform_initializer)
    tf.contrib = SimpleNamespace(layers=layers)  # type: ignore[attr-defined]
    utils = ModuleType("utils")
    vars(utils).update(reduce_sum=tf.reduce_sum, softmax=tf.nn.softmax, get_shape=tf.shape)
    sys.modules |= {"tensorflow": tf, "utils": utils}
    return tf


def _radam() -> Callable[[float], Any]:
    """Return RAdam as the authors use it; its package as a whole wants an older Keras."""
    package = find_spec("keras_radam")
    if package is None or package.origin is None:
        raise SystemExit(
            "the other interpreter has no keras-radam: install it, or --optimizer adam"
        )
    spec = spec_from_file_location("radam", Path(package.origin).with_name("training.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[float], Any] = module.RAdamOptimizer
    return found


def serve() -> None:
    """Answer the other process, one line of JSON for each of its lines."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed must not come between
    theirs: Theirs | None = None
    for line in sys.stdin:
        words = json.loads(line)
        answer: dict[str, Any] = {}
        if theirs is None:
            theirs = Theirs(**words)
            answer = theirs.versions
        elif "weights" in words:
            theirs.load(words["weights"])
        else:
            answer = theirs.run(**words)
        print(json.dumps(answer), file=answers, flush=True)


class Ours:
    """The preset, in this process."""

    def __init__(self, corpus: "Corpus", optimizer: str) -> None:
        import torch

        from treecaps.data.vocabulary import Vocabulary
        from treecaps.models.treecaps import TreeCaps
        from treecaps.models.treecaps_config import TreeCapsConfig
        from treecaps.training.presets import get_preset
        from treecaps.training.radam import RAdam

        config = get_preset("published").network
        assert isinstance(config, TreeCapsConfig)
        self.config, self.corpus = config, corpus
        self.labels = sorted({label or "" for label in corpus.labels})
        self.vocabulary = Vocabulary.of(corpus, config.known_tokens)
        torch.manual_seed(0)
        self.network = TreeCaps(config, len(self.vocabulary), len(self.labels))
        self.programs = self.network.read_trees(config, corpus, self.vocabulary)
        self.network.fit_features(self.programs)
        weights = self.network.parameters()
        self.optimizer = (
            RAdam([{"params": weights}])
            if optimizer == "radam"
            else torch.optim.Adam(weights, lr=1e-3)
        )

    def program(self, row: int) -> Program:
        """Return a program for the other process."""
        tree = self.corpus[row]
        return {
            "kind": self.vocabulary.encode(tree).tolist(),
            "parent": tree.parent.tolist(),
            "label": self.labels.index(self.corpus.labels[row] or ""),
        }

    def run(self, work: str, batches: list[NDArray[np.int64]]) -> dict[str, Any]:
        """Work on one batch after the other, and return the seconds of all and the results."""
        import torch

        trees = [[self.corpus[int(row)] for row in rows] for rows in batches]
        labels = [
            torch.tensor([self.labels.index(self.corpus.labels[int(row)] or "") for row in rows])
            for rows in batches
        ]
        time.sleep(REST)
        results: list[Any] = []
        begun = time.perf_counter()
        for rows, some, label in zip(batches, trees, labels, strict=True):
            if work == "classify":
                results.append(self._classify(some))
            else:
                results.append(self._learn(rows, label, step=work == "train"))
        seconds = time.perf_counter() - begun
        if work != "classify":
            return {"seconds": seconds, "loss": float(np.mean(results))}
        return {"seconds": seconds, "found": np.concatenate(results)}

    def _classify(self, trees: list[Any]) -> NDArray[np.float32]:
        import torch

        from treecaps.nn.tensors import to_tensors

        network = self.network
        with torch.no_grad():
            programs = network.read_trees(self.config, trees, self.vocabulary)
            found = network(to_tensors(programs, network.vectors))
        scores: NDArray[np.float32] = found.scores.numpy()
        return scores

    def _learn(self, rows: NDArray[np.int64], label: Any, *, step: bool) -> float:
        from treecaps.nn.tensors import to_tensors

        network = self.network
        self.optimizer.zero_grad()
        output = network(to_tensors(self.programs.select(rows), network.vectors))
        loss = network.loss(output, label)
        loss.backward()  # type: ignore[no-untyped-call]
        if step:
            self.optimizer.step()
        return loss.item()


def weights_of(network: "TreeCaps") -> list[NDArray[np.float32]]:
    """Return our weights in the order and the shapes of theirs."""
    config = network.config
    values = {name: value.numpy() for name, value in network.state_dict().items()}
    sizes = (config.slices, config.channels)
    windows = values["primary.weight"].reshape(3, config.vector_size, *sizes)
    # Theirs reshapes sums [V, 3] to [3, V] where it means to transpose them, so that its weights
    # for top, right and left are rows of all three: another order of the same weights.
    top_right_left = windows[[0, 2, 1]].swapaxes(0, 1).reshape(windows.shape)
    windows = top_right_left[[0, 2, 1]]
    shifts = values["primary.bias"].reshape(sizes)
    found = [values["vectors"]]
    for number in range(config.slices):
        found += [*windows[:, :, number], shifts[number]]
    # Theirs has the largest of all channels first, ours all of the first channel.
    code = values["code.weight"].reshape(config.channels, config.statics, config.primary_size, -1)
    code = code.transpose(1, 0, 3, 2)
    found.append(code.reshape(1, -1, code.shape[2], config.primary_size, 1))
    return [*found, values["code.bias"][None, None, :, :, None]]


class Worker:
    """The process that runs the authors' code."""

    def __init__(self, python: str, options: dict[str, Any]) -> None:
        environment = (
            os.environ
            | ALLOCATOR
            | {
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "CUDA_VISIBLE_DEVICES": "-1",
                "OMP_NUM_THREADS": str(options["threads"]),
            }
        )
        self.process = subprocess.Popen(
            [python, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.versions = self.ask(**options)

    def ask(self, **words: Any) -> dict[str, Any]:
        """Send a line, and return the answer."""
        to, back = self.process.stdin, self.process.stdout
        assert to is not None
        assert back is not None
        print(json.dumps(words), file=to, flush=True)
        line = back.readline()
        if not line:
            raise SystemExit("the authors' code failed; what it said stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Let the process end."""
        self.process.communicate()


def compare(ours: Ours, worker: Worker, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Give theirs the weights of ours, and return how far apart they are then and in training."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        np.savez(path, *weights_of(ours.network))
        worker.ask(weights=str(path))
    programs = [ours.program(int(row)) for row in rows]
    theirs = np.array(worker.ask(work="lengths", programs=programs)["found"])
    apart = np.abs(theirs - ours.run("classify", [rows])["found"])
    losses: dict[str, list[float]] = {"theirs": [], "ours": []}
    for _ in range(PASSES):
        losses["theirs"].append(worker.ask(work="train", programs=programs)["loss"])
        losses["ours"].append(ours.run("train", list(rows[:, None]))["loss"])
    return {
        "largest_difference": float(apart.max()),
        "losses": {side: [round(loss, 6) for loss in some] for side, some in losses.items()},
    }


def measure(ours: Ours, worker: Worker, options: argparse.Namespace) -> dict[str, Any]:
    """Let both sides work on the same programs, in an order that is drawn anew each time."""
    least = ours.config.routed or 1
    usable = np.flatnonzero([len(tree) >= least for tree in ours.corpus])
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {f"{work}_{side}": [] for work in WORKS for side in SIDES}
    nodes: list[float] = []
    compared = compare(ours, worker, rng.choice(usable, options.batch, replace=False))
    for turn in range(options.rounds + 1):
        rows = rng.choice(usable, options.batch, replace=False)
        programs = [ours.program(int(row)) for row in rows]
        runs: dict[str, Callable[[str], dict[str, Any]]] = {
            "theirs": lambda work, some=programs: worker.ask(work=work, programs=some),  # type: ignore[misc]
            "ours": lambda work, some=rows: ours.run(work, list(some[:, None])),  # type: ignore[misc]
            "ours_batch": lambda work, some=rows: ours.run(work, [some]),  # type: ignore[misc]
        }
        for work in WORKS:
            for side in rng.permutation(SIDES).tolist():
                found = runs[side](work)
                if turn:  # the first round only warms up
                    seconds[f"{work}_{side}"].append(found["seconds"] / len(rows))
        nodes.append(float(np.mean([len(program["kind"]) for program in programs])))
        print(f"round {turn} of {options.rounds}", file=sys.stderr)
    return {
        "programs": len(ours.corpus),
        "programs_left_out": len(ours.corpus) - len(usable),
        "classes": len(ours.labels),
        "nodes_per_program": round(float(np.mean(nodes[1:]))),
        **compared,
        **{work: _summary(seconds, work) for work in WORKS},
    }


def _summary(seconds: dict[str, list[float]], work: str) -> dict[str, Any]:
    """Return medians over rounds in ms a program, and how many times faster ours is."""
    times = {side: np.array(seconds[f"{work}_{side}"]) for side in SIDES}
    result: dict[str, Any] = {
        f"{side}_ms": round(1000 * float(np.median(values)), 3) for side, values in times.items()
    }
    for side in SIDES[1:]:
        low, middle, high = np.percentile(times["theirs"] / times[side], (25, 50, 75))
        result[f"ratio_{side}"] = round(float(middle), 2)
        result[f"ratio_{side}_quartiles"] = [round(float(low), 2), round(float(high), 2)]
    return result


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--frontend", default="srcml")
    parser.add_argument("--code", required=True, help="the folder with their network.py")
    parser.add_argument("--python", required=True, help="an interpreter that has tensorflow")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=16, help="programs a round, and a batch")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--optimizer", choices=["radam", "adam"], default="radam")
    return parser.parse_args()


def main() -> None:
    options = _options()
    import torch
    from origin import origin

    from treecaps.data.corpus import Corpus
    from treecaps.nn.memory import tune_malloc

    tune_malloc()
    torch.set_num_threads(options.threads)
    ours = Ours(Corpus.build(options.data, frontend=options.frontend), options.optimizer)
    words = {
        "code": str(Path(options.code).resolve()),
        "kinds": len(ours.vocabulary),
        "size": ours.config.vector_size,
        "classes": len(ours.labels),
        "threads": options.threads,
        "optimizer": options.optimizer,
    }
    worker = Worker(options.python, words)
    whence = origin()
    for given, word in ((options.python, "PYTHON"), (options.code, "CODE")):
        whence["command"] = whence["command"].replace(given, word)
    source = (Path(options.code) / "network.py").read_bytes()
    result = {
        "data": f"{options.data.parent.name}/{options.data.name}",
        "frontend": options.frontend,
        "threads": options.threads,
        "optimizer": options.optimizer,
        "batch": options.batch,
        "rounds": options.rounds,
        **measure(ours, worker, options),
        "their_code_sha256": hashlib.sha256(source.rstrip()).hexdigest(),
        **worker.versions,
        "torch": torch.__version__,
        **whence,
    }
    worker.close()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        main()
