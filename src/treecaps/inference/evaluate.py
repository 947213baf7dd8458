"""How well a trained model does on a corpus."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from treecaps.chunks import chunked
from treecaps.data.corpus import Corpus
from treecaps.data.summary import group_failures
from treecaps.errors import DataError, UsageError
from treecaps.inference.confusion import count_predictions
from treecaps.models.trained import ModelLike, TrainedModel, as_model, spell_parser
from treecaps.text import html_table, short_repr

Step = Callable[[float], None]
"""Called now and then with the share done, from 0 to 1."""

_CHUNK_PROGRAMS = 1024
_CHUNK_NODES = 1 << 20


@dataclass(frozen=True)
class ClassScore:
    """How well one class is told.

    Args:
        label: The class.
        precision: Of the programs that the model put here, the share that belongs here; 0 if it
            put none.
        recall: Of the programs that belong here, the share that the model put here; 0 if none do.
        f1: The harmonic mean of both.
        programs: How many programs belong here.
    """

    label: str
    precision: float
    recall: float
    f1: float
    programs: int


@dataclass(frozen=True)
class Evaluation:
    """What a model scores on a corpus.

    Only programs that have a label and could be parsed are scored. Those that failed are counted
    beside and change no score. Programs of a class that the model never learned are scored, and
    always wrong.

    Args:
        accuracy: The share of scored programs that the model put into their class.
        macro_f1: The mean of the F1 of ``classes``: each class weighs the same.
        programs: How many programs were scored.
        failed: How many could not be read or parsed.
        unlabelled: How many have no label, and were left out.
        unknown_labels: How many programs there are of each class that the model does not know.
        classes: The classes that occur, in the corpus or in the answers, by name.
        labels: Their names.
        confusion: How many programs of each class (a row) got each answer (a column), in the
            order of ``labels``.
        ms_per_program: Milliseconds a program from tree to answer; parsing is not in it.
        failures: The reasons of failures, as ``treecaps data --json`` groups them.
    """

    accuracy: float
    macro_f1: float
    programs: int
    failed: int
    unlabelled: int
    unknown_labels: dict[str, int]
    classes: tuple[ClassScore, ...]
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    ms_per_program: float
    failures: tuple[dict[str, Any], ...]

    def __repr__(self) -> str:
        scores = {"accuracy": round(self.accuracy, 4), "macro_f1": round(self.macro_f1, 4)}
        return short_repr(self, **scores, programs=self.programs, classes=len(self.classes))

    def _repr_html_(self) -> str:
        title = f"accuracy {self.accuracy:.1%}, macro F1 {self.macro_f1:.1%}"
        rows = [
            (
                one.label,
                *(f"{share:.1%}" for share in (one.precision, one.recall, one.f1)),
                f"{one.programs:,}",
            )
            for one in self.classes
        ]
        return html_table(title, ("class", "precision", "recall", "F1", "programs"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **vars(self),
            "unknown_labels": dict(self.unknown_labels),
            "classes": [asdict(score) for score in self.classes],
            "labels": list(self.labels),
            "confusion": [list(row) for row in self.confusion],
            "failures": list(self.failures),
        }

    def mistakes(self) -> list[tuple[str, str, int]]:
        """Return the class, the wrong answer and how many programs got it, most frequent first."""
        found = [
            (label, answer, count)
            for label, row in zip(self.labels, self.confusion, strict=True)
            for answer, count in zip(self.labels, row, strict=True)
            if count and answer != label
        ]
        return sorted(found, key=lambda mistake: -mistake[2])


def evaluate(model: ModelLike, corpus: Corpus, *, step: Step | None = None) -> Evaluation:
    """Score a model on the labelled programs of a corpus.

    Args:
        model: A trained model, its folder, or the name of a bundled one.
        corpus: Programs it was not trained on, parsed as it was trained: by ``model.frontend``
            and with ``model.comments``.
        step: Called with the share done.
    """
    model = as_model(model)
    truth: list[str] = []
    answers: list[str] = []
    seconds = 0.0
    for chunk, share in chunk_labelled(model, corpus):
        trees = [corpus[number] for number in chunk]
        begun = time.perf_counter()
        inputs = model.read_trees(trees)
        best = model.scores(inputs).argmax(1).tolist()
        seconds += time.perf_counter() - begun
        truth += [corpus.labels[number] or "" for number in chunk]
        answers += [model.labels[number] for number in best]
        if step:
            step(share)
    unknown = Counter(label for label in truth if label not in model.labels)
    labels, confusion = count_predictions(truth, answers)
    scores = precision_recall_fscore_support(truth, answers, labels=labels, zero_division=0)
    classes = tuple(
        ClassScore(label, float(precision), float(recall), float(f1), int(programs))
        for label, precision, recall, f1, programs in zip(labels, *scores, strict=True)
    )
    return Evaluation(
        accuracy=float(accuracy_score(truth, answers)),
        macro_f1=float(np.mean([score.f1 for score in classes])),
        programs=len(truth),
        failed=len(corpus.failures),
        unlabelled=len(corpus) - len(truth),
        unknown_labels=dict(sorted(unknown.items())),
        classes=classes,
        labels=labels,
        confusion=confusion,
        ms_per_program=1000 * seconds / len(truth),
        failures=tuple(group_failures(corpus)),
    )


def chunk_labelled(model: TrainedModel, corpus: Any) -> Iterator[tuple[list[int], float]]:
    """Yield the numbers of labelled programs some at a time, and the share done after them."""
    if not isinstance(corpus, Corpus):
        raise UsageError(
            f"programs are evaluated as a corpus, not {type(corpus).__name__}: give"
            " Corpus.build(path)"
        )
    parsed_by = corpus.about["frontend"], corpus.about["comments"]
    if parsed_by != (model.frontend, model.comments):
        raise UsageError(
            f"the model wants trees by {spell_parser(model.frontend, model.comments)},"
            f" but {corpus.name} was parsed by {spell_parser(*parsed_by)}"
        )
    chosen = [number for number, label in enumerate(corpus.labels) if label is not None]
    if not chosen:
        raise _nothing_to_score(corpus)
    sizes, done = corpus.node_counts.tolist(), 0
    for chunk in chunked(chosen, _CHUNK_PROGRAMS, _CHUNK_NODES, sizes.__getitem__):
        done += len(chunk)
        yield chunk, done / len(chosen)


def _nothing_to_score(corpus: Corpus) -> DataError:
    if len(corpus):
        return DataError(
            f"no program of {corpus.name} has a label to compare with; put the programs of each"
            " class into a sub-folder of its name, or give each row a 'label'"
        )
    first = corpus.failures[0]
    return DataError(
        f"all {len(corpus.failures):,} programs of {corpus.name} failed:"
        f" {first.id} {first.message}",
        arguments=first.arguments,
    )
