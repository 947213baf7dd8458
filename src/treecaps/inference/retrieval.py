"""How well the embeddings of a trained model find programs of the same class."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from treecaps.data.corpus import Corpus
from treecaps.data.summary import group_failures
from treecaps.inference.evaluate import Step, chunk_labelled
from treecaps.models.trained import ModelLike, as_model
from treecaps.tasks.retrieval import maps_at_r
from treecaps.text import html_table, short_repr


@dataclass(frozen=True)
class Retrieval:
    """What the embeddings of a model score on a corpus.

    Every program with a label asks for those most like it. Those that failed are counted beside and
    change no score.

    Args:
        map_at_r: MAP@R among all programs; ``None`` where no two are of one class.
        map_at_r_within: Only programs of its own language are candidates; ``None`` where there is
            one language, or nothing to find.
        map_at_r_across: Only programs of other languages are.
        programs: How many programs were scored.
        classes: How many classes they are of.
        languages: How many programs are in each language.
        failed: How many could not be read or parsed.
        unlabelled: How many have no label, and were left out.
        ms_per_program: Milliseconds a program from tree to embedding; parsing is not in it.
        failures: The reasons of failures, as ``treecaps data --json`` groups them.
    """

    map_at_r: float | None
    map_at_r_within: float | None
    map_at_r_across: float | None
    programs: int
    classes: int
    languages: dict[str, int]
    failed: int
    unlabelled: int
    ms_per_program: float
    failures: tuple[dict[str, Any], ...]

    def __repr__(self) -> str:
        found = None if self.map_at_r is None else round(self.map_at_r, 4)
        return short_repr(self, map_at_r=found, programs=self.programs, classes=self.classes)

    def _repr_html_(self) -> str:
        names = ("all", "those of its language", "those of other languages")
        values = (self.map_at_r, self.map_at_r_within, self.map_at_r_across)
        rows = [
            (name, f"{value:.1%}")
            for name, value in zip(names, values, strict=True)
            if value is not None
        ]
        title = f"{self.programs:,} programs of {self.classes:,} classes"
        return html_table(title, ("candidates", "MAP@R"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**vars(self), "failures": list(self.failures)}


def evaluate_retrieval(model: ModelLike, corpus: Corpus, *, step: Step | None = None) -> Retrieval:
    """Score the embeddings of a model on the labelled programs of a corpus.

    Args:
        model: A trained model, its folder, or the name of a bundled one.
        corpus: Programs it was not trained on, parsed as it was trained: by ``model.frontend``
            and with ``model.comments``.
        step: Called with the share done.
    """
    model = as_model(model)
    found, rows = [], []
    seconds = 0.0
    for chunk, share in chunk_labelled(model, corpus):
        trees = [corpus[number] for number in chunk]
        begun = time.perf_counter()
        found.append(model.embeddings(model.read_trees(trees)))
        seconds += time.perf_counter() - begun
        rows += chunk
        if step:
            step(share)
    _, label = np.unique([corpus.labels[row] or "" for row in rows], return_inverse=True)
    names, language, counts = np.unique(
        [corpus.languages[row] for row in rows], return_inverse=True, return_counts=True
    )
    scores = maps_at_r(np.concatenate(found), label, language)
    return Retrieval(
        scores["map_at_r"],
        scores.get("map_at_r_within"),
        scores.get("map_at_r_across"),
        programs=len(rows),
        classes=int(label.max()) + 1,
        languages=dict(zip(names.tolist(), counts.tolist(), strict=True)),
        failed=len(corpus.failures),
        unlabelled=len(corpus) - len(rows),
        ms_per_program=1000 * seconds / len(rows),
        failures=tuple(group_failures(corpus)),
    )
