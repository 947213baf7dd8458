"""How often the line with a real bug is found, and how often there is a false alarm.

    python benchmarks/bugs.py --data DIR --out FOLDER --seeds 3 --json

``DIR`` holds ``bugs``, ``problems``, ``poj104`` and ``ordinary``. Networks are trained on the
training parts and kept in ``FOLDER``; figures are those of the validation part of ``bugs``, by
language. Each system ranks the lines of a program that hold code, and says how suspicious the
whole is:

- ``random``, ``longest``: a random line, the longest.
- ``surprise``: the summed surprise of a line's tokens under a 5-gram model (Witten-Bell) of
  programs without bugs; for a program, the mean of all its tokens.
- ``linear``: logistic regression on n-grams of the line, of the one before and of the one behind.
- ``treecaps``: mutations, then real pairs; ``mutations`` and ``pairs`` are each stage by itself,
  ``no-flow`` and ``no-static`` leave a part of the read-out out. ``ggnn`` has the same read-out.

``--systems`` chooses some of these, or none. ``--model FOLDER`` scores a trained model in place of
the networks that are trained here.
"""

import argparse
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from origin import origin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from treecaps import Tree, parse_code
from treecaps.models.trained import TrainedModel, load
from treecaps.syntax.functions import find_functions
from treecaps.syntax.mutations import LANGUAGES
from treecaps.tasks.bug_targets import BugTargets, margins, most_probable, probability_of_bug
from treecaps.tasks.lines import area_under_curve, line_ranks, lines_of_nodes

BASELINES = ("random", "longest", "surprise", "linear")
STAGES = ("treecaps", "mutations", "pairs", "no-flow", "no-static", "ggnn")
ORDER = 5
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LARGEST = 6_000
"""Longer programs are not learned from."""

Ranking = tuple[list[int], list[float], float]
"""Lines with code, the most suspicious first, their scores, and how suspicious the program is."""


@dataclass(frozen=True)
class Pair:
    """A program with a bug, and the same without it."""

    wrong: Tree
    fixed: Tree
    lines: tuple[int, ...]


class System(Protocol):
    """Ranks the lines of programs."""

    def rank(self, trees: Sequence[Tree]) -> list[Ranking]:
        """Rank the lines of each program."""


def rows(path: Path, most: int | None = None, languages: Iterable[str] = LANGUAGES) -> Any:
    """Return rows of a data set, drawn if there are more than asked for."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = [row for row in map(json.loads, file) if row["language"] in set(languages)]
    found = [row for row in found if most is None or len(row["code"]) <= _LARGEST]
    if most is None or len(found) <= most:
        return found
    chosen = np.random.default_rng(0).permutation(len(found))[:most]
    return [found[row] for row in chosen]


def read_pairs(path: Path, most: int | None = None) -> list[Pair]:
    """Return pairs, with lines that hold code."""
    found = []
    for row in rows(path, most):
        wrong, fixed = (parse_code(row[key], row["language"]) for key in ("code", "fixed"))
        (lines,) = BugTargets.of([wrong], [tuple(row["lines"])]).wrong
        found.append(Pair(wrong, fixed, lines))
    return found


def read_trees(path: Path, most: int | None, languages: Iterable[str] = LANGUAGES) -> list[Tree]:
    """Return the trees of programs."""
    return [parse_code(row["code"], row["language"]) for row in rows(path, most, languages)]


def ranking(lines: Iterable[int], scores: Iterable[float], whole: float) -> Ranking:
    """Sort lines by their scores."""
    pairs = sorted(zip(lines, scores, strict=True), key=lambda one: (-one[1], one[0]))
    return [line for line, _ in pairs], [score for _, score in pairs], whole


def texts(tree: Tree) -> dict[int, str]:
    """Return the text of each line that holds code."""
    every = tree.text.decode("utf-8", "replace").split("\n")
    return {line: every[line - 1] for line in np.unique(lines_of_nodes(tree)).tolist()}


class Random:
    """A random line."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def rank(self, trees: Sequence[Tree]) -> list[Ranking]:
        """Draw an order."""
        return [
            ranking(lines, self.rng.random(len(lines)).tolist(), self.rng.random())
            for lines in map(texts, trees)
        ]


class Longest:
    """The longest line."""

    def rank(self, trees: Sequence[Tree]) -> list[Ranking]:
        """Sort by length."""
        found = []
        for lines in map(texts, trees):
            sizes = [float(len(text.strip())) for text in lines.values()]
            found.append(ranking(lines, sizes, max(sizes)))
        return found


class Surprise:
    """How surprising tokens are under an n-gram model of each language."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        self.counts: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self.after: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self.kinds: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        for tree in trees:
            known, language = self.counts[tree.language], tree.language
            words = [word for word, _ in self._words(tree)]
            padded = [""] * (ORDER - 1) + words
            for place in range(ORDER - 1, len(padded)):
                for size in range(ORDER):
                    gram = tuple(padded[place - size : place + 1])
                    self.after[language][gram[:-1]] += 1
                    self.kinds[language][gram[:-1]] += gram not in known
                    known[gram] += 1

    @staticmethod
    def _words(tree: Tree) -> Iterator[tuple[str, int]]:
        line = lines_of_nodes(tree)
        leaves = np.flatnonzero((tree.child_count == 0) & (tree.end > tree.start))
        for leaf in leaves.tolist():
            yield (
                tree.text[tree.start[leaf] : tree.end[leaf]].decode("utf-8", "replace"),
                line[leaf],
            )

    def _probability(self, language: str, gram: tuple[str, ...]) -> float:
        found = 1e-5
        for size in range(1, ORDER + 1):
            part = gram[-size:]
            seen = self.after[language][part[:-1]]
            if not seen:
                break
            kinds = self.kinds[language][part[:-1]]
            found = (self.counts[language][part] + kinds * found) / (seen + kinds)
        return found

    def rank(self, trees: Sequence[Tree]) -> list[Ranking]:
        """Sort by summed surprise."""
        found = []
        for tree in trees:
            sums = dict.fromkeys(texts(tree), 0.0)
            words = list(self._words(tree))
            padded = [""] * (ORDER - 1) + [word for word, _ in words]
            for place, (_, line) in enumerate(words):
                gram = tuple(padded[place : place + ORDER])
                sums[line] -= math.log(self._probability(tree.language, gram))
            found.append(ranking(sums, sums.values(), sum(sums.values()) / max(len(words), 1)))
        return found


class Linear:
    """Logistic regression on n-grams of a line and its neighbours, trained on pairs."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.vectorizer = HashingVectorizer(analyzer=self._features, n_features=1 << 20)
        shown, right = [], []
        for pair in pairs:
            for line, text in self._lines(pair.wrong).items():
                shown.append(text)
                right.append(line in pair.lines)
        self.model = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0)
        self.model.fit(self.vectorizer.transform(shown), right)

    @staticmethod
    def _lines(tree: Tree) -> dict[int, tuple[str, str, str, str]]:
        lines = texts(tree)
        around = ["", *lines.values(), ""]
        return {
            line: (tree.language, around[place], around[place + 1], around[place + 2])
            for place, line in enumerate(lines)
        }

    @staticmethod
    def _features(shown: tuple[str, str, str, str]) -> Iterator[str]:
        language, *lines = shown
        for place, text in enumerate(lines):
            words = _TOKEN.findall(text)
            for size in (1, 2, 3) if place == 1 else (1,):
                for begin in range(len(words) - size + 1):
                    yield f"{language} {place} {' '.join(words[begin : begin + size])}"

    def rank(self, trees: Sequence[Tree]) -> list[Ranking]:
        """Sort by probability."""
        found = []
        for lines in map(self._lines, trees):
            scores = self.model.decision_function(self.vectorizer.transform(lines.values()))
            found.append(ranking(lines, scores.tolist(), float(scores.max())))
        return found


class Network:
    """A trained model."""

    def __init__(self, model: TrainedModel) -> None:
        self.model = model

    def rank(self, trees: Sequence[Tree]) -> list[Ranking]:
        """Sort by probability."""
        found = []
        scores = self.model.score_bugs(self.model.read_trees(trees))
        chance = probability_of_bug(self.model, margins(scores))
        for row, tree in enumerate(trees):
            bug = scores.bug[scores.offsets[row] : scores.offsets[row + 1]]
            lines, sums = line_ranks(bug, lines_of_nodes(tree))
            shares = np.exp(sums - np.logaddexp.reduce(sums)) * chance[row]
            found.append((lines.tolist(), shares.tolist(), float(chance[row])))
        return found

    def alarms(self, trees: Sequence[Tree]) -> float:
        """Return how many of 100 functions have a place above the threshold."""
        functions = [one.tree for tree in trees for one in find_functions(tree)]
        target = BugTargets.of(functions, [()] * len(functions))
        scores = self.model.score_bugs(self.model.read_trees(functions))
        most = most_probable(self.model, scores, target)
        return 100 * float((most > self.model.calibration.threshold).mean())


def score(system: System, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the figures of a system on pairs, in per cent."""
    wrong = system.rank([pair.wrong for pair in pairs])
    fixed = system.rank([pair.fixed for pair in pairs])
    ranks = np.array(
        [
            next(place for place, line in enumerate(lines) if line in pair.lines)
            for (lines, _, _), pair in zip(wrong, pairs, strict=True)
        ]
    )
    one, other = (np.array([whole for *_, whole in some]) for some in (wrong, fixed))
    right: NDArray[np.bool_] = np.arange(2 * len(pairs)) < len(pairs)
    area = area_under_curve(np.concatenate([one, other]), right) or 0.0
    found = {f"first {count}": float((ranks < count).mean()) for count in (1, 3, 5)}
    found |= {"ordered": float(((one > other) + 0.5 * (one == other)).mean()), "area": area}
    if isinstance(system, Network):
        limit = system.model.calibration.threshold
        above = np.array([scores[0] > limit for _, scores, _ in wrong])
        quiet = np.array([scores[0] <= limit for _, scores, _ in fixed])
        found["joint"] = float(((ranks == 0) & above & quiet).mean())
    return {name: 100 * value for name, value in found.items()}


def by_language(system: System, pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """Return the figures of each language."""
    found = {}
    for language in sorted({pair.wrong.language for pair in pairs}):
        found[language] = score(system, [one for one in pairs if one.wrong.language == language])
    return found


def train_stage(
    name: str, seed: int, options: argparse.Namespace, data: dict[str, Any]
) -> TrainedModel:
    """Train a system of ``STAGES``, or read it if it is there."""
    from treecaps import train
    from treecaps.training.presets import apply_settings, get_preset

    architecture = "ggnn" if name == "ggnn" else "treecaps"
    preset = get_preset(model=architecture, task="bugs")
    left_out = {"no-flow": ["readout_flow=false"], "no-static": ["readout_static=false"]}
    preset = apply_settings(preset, [*left_out.get(name, []), f"epochs={options.epochs}"])
    common: dict[str, Any] = {"val": data["val"], "background": data["background"], "seed": seed}
    first: TrainedModel | None = None
    if name != "pairs":
        folder = options.out / f"{'mutations' if name == 'treecaps' else name + '-0'}-{seed}"
        first = _train_once(train, folder, data["correct"], preset=preset, **common)
        if name == "mutations":
            return first
    real = apply_settings(preset, ["mutation_probability=0", "learning_rate=1e-3"])
    folder = options.out / f"{name}-{seed}"
    return _train_once(train, folder, data["pairs"], preset=real, init_from=first, **common)


def _train_once(train: Any, folder: Path, data: Any, **options: Any) -> TrainedModel:
    if (folder / "config.json").exists():
        return load(folder)
    trained: TrainedModel = train(*data, folder=folder, overwrite=True, **options)
    return trained


def labelled(pairs: Sequence[Pair]) -> tuple[list[Tree], list[str | None]]:
    """Return programs with their labels, twins beside each other."""
    from treecaps.data.bugs import label_of

    trees = [tree for pair in pairs for tree in (pair.wrong, pair.fixed)]
    return trees, [label for pair in pairs for label in (label_of(pair.lines), None)]


def learn(options: argparse.Namespace, pairs: list[Pair], correct: list[Tree]) -> Any:
    """Yield the name, seed and network of each system that is trained."""
    held_out = read_pairs(options.data / "bugs/train.jsonl.gz", 3 * options.held_out)
    known = {one.wrong.text for one in held_out[: options.held_out]}
    data = {
        "pairs": labelled([pair for pair in pairs if pair.wrong.text not in known]),
        "correct": (correct, [None] * len(correct)),
        "val": labelled(held_out[: options.held_out]),
        "background": read_trees(options.data / "ordinary/train.jsonl.gz", options.background),
    }
    for name in (name for name in STAGES if name in options.systems):
        for seed in range(options.seeds):
            yield name, seed, Network(train_stage(name, seed, options, data))


def baseline(name: str, pairs: list[Pair], correct: list[Tree]) -> System:
    """Return a baseline, trained if it learns anything."""
    if name == "surprise":
        return Surprise([*correct, *(pair.fixed for pair in pairs)])
    if name == "linear":
        return Linear(pairs)
    return Random() if name == "random" else Longest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", type=Path, default=Path("bugs-models"))
    parser.add_argument("--model", type=Path)
    every = (*BASELINES, *STAGES)
    parser.add_argument("--systems", nargs="*", choices=every, default=every)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=12_000)
    parser.add_argument("--correct", type=int, default=12_000)
    parser.add_argument("--held-out", type=int, default=400)
    parser.add_argument("--background", type=int, default=800)
    parser.add_argument("--alarms", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    val = read_pairs(options.data / "bugs/val.jsonl.gz")
    pairs: list[Pair] = []
    correct: list[Tree] = []
    if options.systems:
        pairs = read_pairs(options.data / "bugs/train.jsonl.gz", options.pairs)
        correct = read_trees(options.data / "problems/train.jsonl.gz", options.correct)
        correct += read_trees(options.data / "poj104/train.jsonl.gz", options.correct // 3)
    ordinary = read_trees(options.data / "ordinary/val.jsonl.gz", options.alarms)
    found: list[dict[str, Any]] = [
        {"system": name, "languages": by_language(baseline(name, pairs, correct), val)}
        for name in BASELINES
        if name in options.systems
    ]
    networks = (
        [(options.model.name, 0, Network(load(options.model)))]
        if options.model
        else learn(options, pairs, correct)
    )
    for name, seed, network in networks:
        figures = by_language(network, val)
        alarms = network.alarms(ordinary)
        found.append({"system": name, "seed": seed, "languages": figures, "alarms": alarms})
    if options.json:
        print(json.dumps({"origin": origin(), "systems": found}, indent=1))
        return
    for one in found:
        print(one["system"], one.get("seed", ""), f"alarms {one.get('alarms', math.nan):.1f}")
        for language, figures in one["languages"].items():
            told = ", ".join(f"{name} {value:.1f}" for name, value in figures.items())
            print(f"  {language}: {told}")


if __name__ == "__main__":
    main()
