"""How well programs find others that solve the same problem, of problems that nobody has seen.

    python benchmarks/retrieval.py --data DIR --json

``DIR`` holds ``train.jsonl.gz`` and ``val.jsonl.gz`` of POJ-104, which are taken together. Networks
learn similarity from problems 1-64, problems 65-80 choose their best epoch, and the programs of
81-104 look for each other, as they are and all of them blind. Beside them do so the cosine of the
TF-IDF of tokens and of tokens with pairs of neighbours, weighed by problems 1-64, and a network
that has learned nothing. What is told is MAP@R in per cent. With ``--validation``, 65-80 look for
each other instead: choose by that, and score the others rarely.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from origin import origin

from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Selection
from treecaps.models.architectures import new_model
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.trained import TrainedModel
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.memory import tune_malloc
from treecaps.rendering.training import train
from treecaps.syntax.tree import Tree
from treecaps.tasks.retrieval import average_precision, map_at_r
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.train import TrainingProgress

Rows = NDArray[np.int64]

LEARN, CHOOSE, SCORE = range(1, 65), range(65, 81), range(81, 105)
BLOCK = 512


class Programs(Sequence[Tree]):
    """All programs of a data set."""

    def __init__(self, data: Path, *, blind: bool) -> None:
        names = ("train", "val")
        self.parts = [Corpus.build(data / f"{name}.jsonl.gz", blind=blind) for name in names]
        self.problem = np.array([int(label or 0) for part in self.parts for label in part.labels])

    def __len__(self) -> int:
        return len(self.problem)

    def __getitem__(self, index: Any) -> Any:
        first, second = self.parts
        return first[index] if index < len(first) else second[index - len(first)]

    def texts(self, rows: Rows) -> list[str]:
        """Return the code of some programs."""
        return [self[row].text.decode("utf-8", "replace") for row in rows.tolist()]


def parse_options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ensemble", type=int, default=1)
    parser.add_argument("--programs", type=int, help="of each problem; all by default")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--validation", action="store_true", help="score problems 65-80")
    parser.add_argument("--out", type=Path, help="keep the models here")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    torch.set_num_threads(1)
    tune_malloc()
    seen, blind = (Programs(options.data, blind=blind) for blind in (False, True))
    if not np.array_equal(seen.problem, blind.problem):
        raise SystemExit("some programs cannot be made blind: the two sides would not match")
    learn, choose, score = (
        choose_rows(seen.problem, problems, options.programs) for problems in (LEARN, CHOOSE, SCORE)
    )
    asked = choose if options.validation else score
    label = np.unique(seen.problem[asked], return_inverse=True)[1]

    def both(measure: Callable[..., float], *what: Any) -> dict[str, float]:
        return {
            name: round(100 * measure(programs, asked, label, *what), 2)
            for name, programs in (("as is", seen), ("blind", blind))
        }

    rows = {
        name: both(score_tokens, learn, most)
        for name, most in (("TF-IDF of tokens", 1), ("TF-IDF of tokens and pairs", 2))
    }
    trained = []
    seconds, epochs = [], []
    for seed in range(options.seeds):
        begun = time.perf_counter()
        model = train_model(seen, learn, choose, seed, options)
        seconds.append(round(time.perf_counter() - begun))
        epochs.append(model.card["members"][0]["best_epoch"])
        if not seed:
            rows["untrained"] = both(score_model, forget(model))
        trained.append(both(score_model, model))
        print(f"seed {seed}: {trained[-1]}", file=sys.stderr, flush=True)
    rows["trained for similarity"] = {
        name: round(mean(one[name] for one in trained), 2) for name in ("as is", "blind")
    }
    result = {
        "programs": {"learned": len(learn), "chosen by": len(choose), "scored": len(asked)},
        "problems": f"{min(seen.problem[asked])}-{max(seen.problem[asked])}",
        "map_at_r": rows,
        "seeds": trained,
        "best_epochs": epochs,
        "training_seconds": seconds,
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    print("| MAP@R | as is | blind |\n| --- | --- | --- |")
    for name, row in rows.items():
        print(f"| {name} | {row['as is']:.1f} | {row['blind']:.1f} |")


def choose_rows(problem: Rows, problems: range, most: int | None) -> Rows:
    """Return the programs of some problems, or some of each."""
    chance = np.random.default_rng(0)
    every = [chance.permutation(np.flatnonzero(problem == one))[:most] for one in problems]
    return np.concatenate(every)


def train_model(
    programs: Programs, learn: Rows, choose: Rows, seed: int, options: Any
) -> TrainedModel:
    """Train for similarity on some programs, with the best epoch by others."""

    def labels(rows: Rows) -> list[str | None]:
        return [str(problem) for problem in programs.problem[rows]]

    def tell(progress: TrainingProgress) -> None:
        if sys.stderr.isatty():
            print(f"\r{progress.share:.0%}, loss {progress.loss:.3f}", end="", file=sys.stderr)

    return train(
        Selection(programs, learn),
        labels(learn),
        val=(Selection(programs, choose), labels(choose)),
        preset=apply_settings(get_preset("default", task="similarity"), options.set),
        seed=seed,
        ensemble=options.ensemble,
        folder=options.out / str(seed) if options.out else None,
        on_step=tell,
        on_epoch=lambda _, figures: print(figures, file=sys.stderr, flush=True),
    )


def forget(model: TrainedModel) -> TrainedModel:
    """Return a model with a network like another's first, that has learned nothing but features."""
    known, learned = model.vocabulary, model.members[0]
    torch.manual_seed(0)
    network = new_model(model.config, len(known), 0, len(known.tokens))
    assert isinstance(network, TreeCaps)
    assert isinstance(learned, TreeCaps)
    if network.tokens and learned.tokens:
        network.tokens.known.copy_(learned.tokens.known)
    return TrainedModel(TorchEngine([network], [1.0], 0), known, ())


def score_model(programs: Programs, rows: Rows, label: Rows, model: TrainedModel) -> float:
    """Return MAP@R of a model's vectors."""
    vectors = model.engine.embed(model.read_trees(Selection(programs, rows)))
    found = map_at_r(vectors, label)
    assert found is not None
    return found


def score_tokens(programs: Programs, rows: Rows, label: Rows, learn: Rows, most: int) -> float:
    """Return MAP@R of the TF-IDF of tokens, and of so many of them in a row."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(
        token_pattern=r"\w+|[^\w\s]", ngram_range=(1, most), sublinear_tf=True, lowercase=False
    ).fit(programs.texts(learn))
    vectors = weigh.transform(programs.texts(rows)).astype(np.float32)
    found = []
    others = np.bincount(label)[label] - 1
    for begin in range(0, len(rows), BLOCK):
        part = np.arange(begin, min(begin + BLOCK, len(rows)))
        alike = (vectors[begin : begin + BLOCK] @ vectors.T).toarray()
        alike[np.arange(len(part)), part] = -np.inf  # a program does not find itself
        found.append(average_precision(alike, label[part], label, others[part]))
    return float(np.concatenate(found).mean())


if __name__ == "__main__":
    main()
