"""``report.html``: how a training went, what the model gets wrong, and why."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from treecaps.explanation.explanation import explain
from treecaps.inference.confusion import count_predictions
from treecaps.inputs.base import Floats
from treecaps.models.treecaps import TreeCaps
from treecaps.rendering import charts
from treecaps.rendering.confusion import to_svg
from treecaps.rendering.explanation import Line, to_lines
from treecaps.rendering.page import render
from treecaps.tasks import Task, get_task
from treecaps.training.facts import TrainingFacts

_PAIRS = 3
_MISTAKES = 5
_POINTS = 500
_LINES = 60
_EVEN = 0.9999
_LONGEST = 200_000
"""Programs of more bytes are shown without colours."""

_BYTES = 8000
"""How much of a program is shown."""


class _Program(NamedTuple):
    """A program as it is shown: lines with what they add, or else its text."""

    title: str
    lines: list[Line]
    text: str


def to_html(facts: TrainingFacts) -> str:
    """Return the report of a training."""
    report = _Report(**vars(facts))
    shown = report.task.sections if len(report.trees) else ()
    return render(
        "report",
        facts=report.facts(),
        curves=report.curves(),
        even=report.even,
        classifies=report.classifies,
        confusion=report.confusion() if "confusion" in shown else "",
        pairs=report.pairs() if "mistakes" in shown else [],
        mistakes=report.mistakes() if "mistakes" in shown else [],
        map=report.map() if "map" in shown else "",
    )


@dataclass(frozen=True)
class _Report(TrainingFacts):
    """What a training ends with, and what its model says of the validation programs."""

    @cached_property
    def scores(self) -> Floats:
        """``[B, classes]``, for the validation programs as they are."""
        return self.model.scores(self.model.read_trees(self.trees))

    @property
    def task(self) -> type[Task]:
        """What the model was trained for."""
        return get_task(self.model.task)

    @property
    def classifies(self) -> bool:
        """Whether the model names classes."""
        return "classes" in self.task.answers

    @cached_property
    def guess(self) -> list[int]:
        """The class that it puts each into."""
        found: list[int] = self.scores.argmax(1).tolist()
        return found

    def facts(self) -> list[tuple[str, str]]:
        """Return names and metrics."""
        model, metrics = self.model, self.model.card["metrics"]
        classes = model.card["data"]["training"]["classes"]
        rows = [
            *([("classes", f"{classes:,}")] if self.task.needs_labels else []),
            ("training programs", f"{model.card['data']['training']['programs']:,}"),
            ("validation programs", f"{len(self.trees):,}"),
            ("networks", f"{len(model.members)}, with {model.num_parameters:,} weights in all"),
            ("epochs", f"{metrics['epochs']}, in {metrics['seconds']:.0f} s"),
        ]
        metric = f"validation_{self.task.metric}"
        for name, key in (
            (f"validation {self.task.title}", metric),
            ("the same, blind", f"{metric}_blind"),
        ):
            if key in metrics:
                rows.append((name, f"{metrics[key]:.1%}"))
        return rows

    def curves(self) -> list[tuple[str, Markup]]:
        """Draw what the first network learned, epoch by epoch."""
        if not self.histories:
            return []
        history = self.histories[0]

        def of(**names: str) -> dict[str, list[float | None]]:
            return {
                title.replace("_", " "): [epoch[name] for epoch in history]
                for title, name in names.items()
                if name in history[0]
            }

        metric, title = self.task.metric, self.task.title
        shown = of(training=metric, validation=f"val_{metric}", blind=f"val_{metric}_blind")
        loss = of(training="loss", validation="val_loss")
        inside = of(
            length_of_the_right_capsule="right_length",
            length_of_the_longest_other="wrong_length",
            entropy_of_the_coupling="coupling_entropy",
        )
        found = [
            (f"{title[:1].upper()}{title[1:]} in per cent", charts.curves(shown)),
            ("Loss", charts.curves(loss, percent=False)),
        ]
        if inside:
            title = "Inside, in per cent of the most there can be"
            found.append((title, charts.curves(inside)))
        return found

    @property
    def even(self) -> bool:
        """Whether every capsule gave all classes the same."""
        return all(
            (epoch.get("coupling_entropy") or 0) > _EVEN
            for history in self.histories[:1]
            for epoch in history
        )

    def confusion(self) -> Markup:
        """Draw which classes are taken for which."""
        known = [
            (self.model.labels[right], self.model.labels[guess])
            for right, guess in zip(self.label.tolist(), self.guess, strict=True)
            if right >= 0
        ]
        return to_svg(
            count_predictions([right for right, _ in known], [guess for _, guess in known])
        )

    @property
    def _wrong(self) -> list[int]:
        """The programs that it gets wrong, the surest mistakes first."""
        surest = self.scores.max(1).tolist()
        wrong = [
            row
            for row, (right, guess) in enumerate(zip(self.label.tolist(), self.guess, strict=True))
            if right not in {guess, -1}
        ]
        return sorted(wrong, key=lambda row: -surest[row])

    def pairs(self) -> list[tuple[str, list[_Program]]]:
        """Show the classes that are confused most: one that is taken for another, and another."""
        labels, right = self.model.labels, self.label.tolist()
        found = []
        for (one, other), count in self._confused:
            shown = [
                self._show(f"{labels[one]}, but called {labels[other]}", self._example(one, other))
            ]
            rows = enumerate(zip(right, self.guess, strict=True))
            good = next((row for row, pair in rows if pair == (other, other)), None)
            if good is not None:
                shown.append(self._show(f"{labels[other]}, and called so", good))
            found.append((f"{labels[one]} taken for {labels[other]}: {count:,}", shown))
        return found

    @property
    def _confused(self) -> list[tuple[tuple[int, int], int]]:
        """The classes that are confused most, and how often."""
        right = self.label.tolist()
        return Counter((right[row], self.guess[row]) for row in self._wrong).most_common(_PAIRS)

    def _example(self, one: int, other: int) -> int:
        """Return the surest program of a class that is taken for another."""
        right = self.label.tolist()
        return next(row for row in self._wrong if (right[row], self.guess[row]) == (one, other))

    def mistakes(self) -> list[_Program]:
        """Show the surest mistakes that are not shown yet, and what led to them."""
        labels, right = self.model.labels, self.label.tolist()
        before = {self._example(*pair) for pair, _ in self._confused}
        others = [row for row in self._wrong if row not in before]
        return [
            self._show(
                f"{labels[right[row]]}, but called {labels[self.guess[row]]}"
                f" ({self.scores[row, self.guess[row]]:.2f})",
                row,
            )
            for row in others[:_MISTAKES]
        ]

    def _show(self, title: str, row: int) -> _Program:
        """Show a program, with what led to the answer where that can be told."""
        tree = self.trees[row]
        if len(tree.text) <= _LONGEST and self._routes:
            found = explain(self.model, tree, label=self.model.labels[self.guess[row]])
            return _Program(title, to_lines(found, _BYTES)[:_LINES], "")
        text = tree.text[:_BYTES].decode("utf-8", "replace")
        return _Program(title, [], "\n".join(text.split("\n")[:_LINES]))

    @property
    def _routes(self) -> bool:
        """Whether it can be told what leads to answers."""
        return all(
            isinstance(one, TreeCaps) and one.config.has_routes for one in self.model.members
        )

    def map(self) -> Markup:
        """Draw the programs on a plane: those with like capsules lie together."""
        from sklearn.manifold import TSNE

        count = min(len(self.trees), _POINTS)
        if count < 5:
            return Markup("")
        rows = np.linspace(0, len(self.trees) - 1, count).astype(int).tolist()
        inputs = self.model.read_trees([self.trees[row] for row in rows])
        model = self.model
        represent = model.torch_engine.represent if self.classifies else model.embeddings
        capsules = represent(inputs)
        if np.ptp(capsules, 0).max() == 0:  # programs that are all alike have no places to take
            return Markup("")
        plane = TSNE(init="pca", random_state=0, perplexity=min(30, (count - 1) / 3))
        values = plane.fit_transform(capsules)
        labels, right = self.names, self.label.tolist()
        titles = [
            (labels[right[row]] if right[row] >= 0 else "another class")
            + (f", called {labels[self.guess[row]]}" if self.classifies else "")
            for row in rows
        ]
        return charts.points(
            [(float(x), float(y)) for x, y in values],
            [right[row] if right[row] >= 0 else None for row in rows],
            labels,
            titles,
        )
