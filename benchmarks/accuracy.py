"""How right a network is on programs it has not seen, beside a linear model on the same windows.

    python benchmarks/accuracy.py --data DIR --frontend srcml --preset paper --folds 5

``DIR`` holds ``train.jsonl.gz`` and ``val.jsonl.gz``. With ``--folds`` both together are divided
anew for every seed (stratified) and each part, or with ``--parts`` each of the first few, is
scored by networks trained on the others; without, networks learn from the one and are scored on
the other. What is scored is never used to choose anything: no epoch is picked, the network of the
last one counts. ``--svm`` and ``--svm-tokens`` score a linear support vector machine instead, on
the TF-IDF of windows or of tokens, on the same parts. Networks that learn from blind programs, and
machines on tokens, are scored as the programs are and blind. ``--compare`` scores these three in
turn and writes their figures to ``benchmarks/results`` and their table to ``docs/results.md``.
With ``--init-from`` networks are fine-tuned. ``--from`` and ``--to`` take the programs of one
language to learn from, and those of another to score.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import scipy.sparse
import tables
import torch
from numpy.typing import NDArray
from origin import origin
from values import RESULTS

from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Selection
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.base import Floats
from treecaps.inputs.windows import Windows
from treecaps.models.architectures import ARCHITECTURES
from treecaps.models.torch_engine import TorchEngine
from treecaps.models.trained import load
from treecaps.nn.memory import tune_malloc
from treecaps.syntax.tree import Tree
from treecaps.training.prepare import Data, prepare
from treecaps.training.presets import Preset, apply_settings, get_preset
from treecaps.training.trainer import Trainer

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
"""The accuracy as is and, where that is measured, blind."""
CURVES = ("loss", "val_accuracy", "val_accuracy_blind", "right_length", "coupling_entropy")


class Both(Sequence[Tree]):
    """The trees of two corpora, one after the other."""

    def __init__(self, first: Corpus, second: Corpus) -> None:
        self.first, self.second = first, second

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def __getitem__(self, index: Any) -> Any:
        place = index - len(self.first)
        return self.first[index] if place < 0 else self.second[place]


@dataclass(frozen=True)
class Programs:
    """All programs, those for training first.

    Args:
        trees: Their trees.
        blind: Their trees without names and comments, where they are needed.
        labels: Their classes.
        languages: Their languages.
        train: How many are for training.
    """

    trees: Both
    blind: Both | None
    labels: list[str]
    languages: list[str]
    train: int

    @classmethod
    def load(cls, options: Any) -> "Programs":
        """Parse a data set, as is and, if need be, blind."""

        def both(blind: bool) -> Both:
            first, second = (
                Corpus.build(
                    options.data / f"{name}.jsonl.gz", frontend=options.frontend, blind=blind
                )
                for name in ("train", "val")
            )
            return Both(first, second)

        trees = both(blind=False)
        preset = preset_of(options)
        sees_blind = preset.network.sees_names and preset.training.rename_probability
        blind = both(blind=True) if sees_blind or options.svm_tokens else None
        if blind is not None and len(blind) != len(trees):
            raise SystemExit("some programs cannot be made blind: the two sides would not match")
        labels = [label or "" for label in (*trees.first.labels, *trees.second.labels)]
        languages = [*trees.first.languages, *trees.second.languages]
        return cls(trees, blind, labels, languages, len(trees.first))


def parts(programs: Programs, options: Any, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield rows to learn from and rows to score."""
    labels = programs.labels
    if options.from_language:
        languages = np.array(programs.languages)
        learn, score = (
            np.flatnonzero(languages == one) for one in (options.from_language, options.to_language)
        )
        yield learn, score
        return
    if not options.folds:
        yield np.arange(programs.train), np.arange(programs.train, len(labels))
        return
    from sklearn.model_selection import StratifiedKFold

    division = StratifiedKFold(options.folds, shuffle=True, random_state=seed)
    yield from islice(division.split(labels, labels), options.parts)


def prepare_part(programs: Programs, learn: Rows, score: Rows, options: Any) -> Data:
    """Return some programs to learn from and some to score, as networks take them."""
    preset = preset_of(options)
    trees, labels, blind = programs.trees, programs.labels, programs.blind
    return prepare(
        Selection(trees, learn),
        [labels[row] for row in learn],
        (Selection(trees, score), [labels[row] for row in score]),
        read_trees=preset.read_trees,
        val_share=0,
        seed=0,
        tokens=preset.network.known_tokens,
        blind=None if blind is None else partial(select_again, blind),
        known=load(options.init_from).vocabulary if options.init_from else None,
    )


def preset_of(options: Any) -> Preset:
    """Return what is trained and how."""
    preset = get_preset(options.preset, options.model)
    if options.init_from:
        preset = replace(preset, network=load(options.init_from).config)
    return apply_settings(preset, options.set)


def nodes_of(preset: Preset) -> str | None:
    """Return what a network sees of nodes; a linear model has no such option."""
    return getattr(preset.network, "nodes", None)


@dataclass(frozen=True)
class Scored:
    """How some networks did.

    Args:
        alone: The accuracy of each.
        together: That of all together.
        learned: The accuracy of each on what it was trained on, as the programs are.
        histories: The figures of their epochs.
    """

    alone: list[Scores]
    together: Scores
    learned: list[float]
    histories: list[list[dict[str, Any]]]


def score_networks(data: Data, options: Any, seed: int) -> Scored:
    """Train networks on the same programs, and score them."""
    preset = preset_of(options)
    init_from = load(options.init_from) if options.init_from else None
    alone, learned, histories = [], [], []
    total = np.zeros((len(data.val.inputs), len(data.labels)), np.float32)

    def accuracy(lengths: Floats) -> Scores:
        right = lengths.argmax(1) == data.val.every_label
        found: Scores = right.reshape(-1, len(data.val)).mean(1)
        return found

    for member in range(options.ensemble):
        trainer = Trainer(preset, data, seed + 1000 * member, init_from)
        trainer.begin()
        while not trainer.finished:
            trainer.run_epoch(lambda *_: None)
            if options.verbose:
                print(trainer.history[-1], file=sys.stderr, flush=True)
        engine = TorchEngine([trainer.model], [1.0], len(data.labels))
        lengths = engine.scores(data.val.inputs)
        alone.append(accuracy(lengths))
        shown = data.train.inputs.select(range(len(data.train)))
        right = engine.scores(shown).argmax(1) == data.train.label
        learned.append(float(right.mean()))
        total += lengths
        histories.append(trainer.history)
    return Scored(alone, accuracy(total), learned, histories)


def select_again(others: Sequence[Tree], seen: Any) -> Selection:
    """Select the same rows of other trees as a selection of a selection has."""
    return Selection(Selection(others, seen.trees.rows), seen.rows)


def score_windows(matrix: Any, labels: list[str], learn: Rows, score: Rows) -> Scores:
    """Return the accuracy of a linear model on windows weighted by TF-IDF."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    names = np.array(labels)
    weigh = TfidfTransformer(sublinear_tf=True).fit(matrix[learn])
    machine = LinearSVC().fit(weigh.transform(matrix[learn]), names[learn])
    return np.array([(machine.predict(weigh.transform(matrix[score])) == names[score]).mean()])


def score_tokens(programs: Programs, learn: Rows, score: Rows, renamed: bool) -> Scores:
    """Return the accuracies of a linear model on pairs of tokens, as is and blind.

    Args:
        programs: The programs and their labels.
        learn: Rows to learn from.
        score: Rows to score.
        renamed: Whether it learns from the blind programs as well.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    assert programs.blind is not None
    names = np.array(programs.labels)

    def texts(trees: Sequence[Tree], rows: Rows) -> list[str]:
        return [trees[int(row)].text.decode("utf-8", "replace") for row in rows]

    weigh = TfidfVectorizer(
        token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), sublinear_tf=True, lowercase=False
    )
    known = texts(programs.trees, learn) + (texts(programs.blind, learn) if renamed else [])
    machine = LinearSVC().fit(weigh.fit_transform(known), np.tile(names[learn], 1 + renamed))
    guesses = [
        machine.predict(weigh.transform(texts(trees, score)))
        for trees in (programs.trees, programs.blind)
    ]
    return np.array([(guess == names[score]).mean() for guess in guesses])


def count_windows(trees: Both, depth: int) -> Any:
    windows = Windows.from_trees(trees, Vocabulary.of(trees), (depth,))
    shape = (len(windows), len(windows.layers[0]))
    return scipy.sparse.csr_matrix(
        (windows.count.astype(np.float64), windows.window, windows.offsets), shape
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--frontend", default="tree-sitter")
    parser.add_argument("--model", default="treecaps", choices=ARCHITECTURES)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--parts", type=int, metavar="N", help="score only the first N folds")
    parser.add_argument("--from", dest="from_language", metavar="LANGUAGE")
    parser.add_argument("--to", dest="to_language", metavar="LANGUAGE")
    parser.add_argument(
        "--init-from", type=Path, metavar="MODEL", help="begin with a trained model"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ensemble", type=int, default=1)
    parser.add_argument("--svm", type=int, metavar="DEPTH", help="a linear model on such windows")
    parser.add_argument(
        "--svm-tokens",
        choices=("plain", "renamed"),
        help="a linear model on tokens, trained on the programs as they are, or also blind",
    )
    parser.add_argument("--out", type=Path, help="write JSON there")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="score both linear models on tokens and the network, and write their table",
    )
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    torch.set_num_threads(1)
    if not options.compare:
        write(measure(options), options.out)
        return
    for name, machine in (("svm", "plain"), ("svm-renamed", "renamed"), ("default", None)):
        options.svm_tokens = machine
        file = f"accuracy-{describe_data(options)}-tokens-{name}.json"
        write(measure(options), RESULTS / file)
    tables.main()


def write(result: dict[str, Any], out: Path | None) -> None:
    text = json.dumps(result, indent=1)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


def measure(options: Any) -> dict[str, Any]:
    """Return the scores of what the options ask for, and all that they depend on."""
    programs = Programs.load(options)
    matrix = count_windows(programs.trees, options.svm) if options.svm else None
    begun = time.perf_counter()
    single: list[Scores] = []
    members: list[Scores] = []
    learned: list[float] = []
    together: list[Scores] = []
    histories: list[list[dict[str, Any]]] = []
    data: Data | None = None
    for seed in options.seeds:
        scores: list[tuple[Scores, Scores]] = []
        for fold, (learn, score) in enumerate(parts(programs, options, seed)):
            if matrix is not None:
                scores.append((score_windows(matrix, programs.labels, learn, score),) * 2)
            elif options.svm_tokens:
                renamed = options.svm_tokens == "renamed"
                scores.append((score_tokens(programs, learn, score, renamed),) * 2)
            else:
                if data is None or options.folds:
                    data = prepare_part(programs, learn, score, options)
                found = score_networks(data, options, 100 * seed + fold)
                scores.append((np.mean(found.alone, 0), found.together))
                members += found.alone
                learned += found.learned
                histories += found.histories
        single.append(np.mean([one for one, _ in scores], 0))
        together.append(np.mean([several for _, several in scores], 0))
        print(f"seed {seed}: {single[-1]}, together {together[-1]}", file=sys.stderr, flush=True)
        if not (histories or options.folds):
            break  # there is no chance in it
    seeds = options.seeds[: len(single)]
    if members and not options.folds:
        # All learn from the same programs, so each network is a seed of its own.
        seeds = [100 * seed + 1000 * number for seed in seeds for number in range(options.ensemble)]
        single = members
    result: dict[str, Any] = {
        "data": describe_data(options),
        "split": describe_split(options),
        "frontend": options.frontend,
        **describe_model(options),
        "settings": options.set,
        "seeds": seeds,
        **summarise("", single),
        "seconds": round(time.perf_counter() - begun),
        **origin(),
        "torch": torch.__version__,
    }
    if options.ensemble > 1:
        result |= {"ensemble": options.ensemble, **summarise("ensemble_", together)}
    if learned:
        result["train_accuracy"] = [round(one, 5) for one in learned]
    if histories:
        result["curves"] = mean_curves(histories)
    return result


def mean_curves(histories: list[list[dict[str, Any]]]) -> dict[str, list[float]]:
    """Return the figures of each epoch, the means of all networks."""
    curves = {
        name: np.mean([[epoch[name] for epoch in one] for one in histories], 0)
        for name in CURVES
        if name in histories[0][0]
    }
    return {name: [round(float(value), 4) for value in curve] for name, curve in curves.items()}


def summarise(name: str, scores: list[Scores]) -> dict[str, Any]:
    """Return the scores of each seed with their mean and deviation, as is and blind."""
    result: dict[str, Any] = {}
    for kind, values in zip(("", "_blind"), np.transpose(scores).tolist(), strict=False):
        result |= {
            f"{name}accuracy{kind}": [round(value, 5) for value in values],
            f"{name}mean{kind}": round(float(np.mean(values)), 4),
            f"{name}deviation{kind}": round(stdev(values), 4) if len(values) > 1 else 0.0,
        }
    return result


def describe_model(options: Any) -> dict[str, str | None]:
    nodes: str | None
    if options.svm:
        nodes, model = "kinds", f"linear SVM, TF-IDF of windows of depth {options.svm}"
    elif options.svm_tokens:
        nodes, model = "tokens", "linear SVM, TF-IDF of single tokens and pairs"
        if options.svm_tokens == "renamed":
            model += ", trained on blind programs too"
    else:
        nodes = nodes_of(preset_of(options))
        model = f"{options.model}, preset {options.preset}"
        if options.init_from:
            model += f", fine-tuned from {options.init_from.name}"
    return {"nodes": nodes, "model": model}


def describe_data(options: Any) -> str:
    name: str = options.data.name
    if options.from_language:
        name += f"-{options.from_language}-to-{options.to_language}"
    return name


def describe_split(options: Any) -> str:
    if options.from_language:
        return f"trained on {options.from_language}, scored on {options.to_language}, train+val"
    if not options.folds:
        return "trained on train, scored on val"
    some = f", {options.parts} of them scored" if options.parts else ""
    return f"{options.folds}-fold cross-validation on train+val{some}"


if __name__ == "__main__":
    main()
