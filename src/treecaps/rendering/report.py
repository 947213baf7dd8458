"""``report.html``: how a training went, what the model gets wrong, and why."""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from treecaps.data.forest import Forest
from treecaps.explanation.explanation import explain
from treecaps.inference.confusion import count_answers
from treecaps.models.engine import batches
from treecaps.models.treecaps import Capsules, TreeCaps
from treecaps.rendering import charts
from treecaps.rendering.confusion import to_svg
from treecaps.rendering.document import document, table
from treecaps.rendering.explanation import to_source
from treecaps.syntax.tree import Tree
from treecaps.tasks import Task, get_task
from treecaps.tasks.base import Section
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

_STYLE = (
    ".l { color: var(--quiet); display: inline-block; width: 8.2rem; white-space: pre }"
    + """
#told { position: sticky; bottom: 0; display: block; background: var(--paper); padding: .3rem }
"""
)
# Touch screens show no titles.
_SCRIPT = """
const told = document.getElementById('told');
for (const kind of ['click', 'mouseover'])
  document.addEventListener(kind, event => { const title = event.target.closest('circle, rect')
    ?.querySelector('title'); told.textContent = title ? title.textContent : ''; });
"""


def to_html(facts: TrainingFacts) -> str:
    """Return the report of a training."""
    return _Report(**vars(facts)).to_html()


@dataclass(frozen=True)
class _Report(TrainingFacts):
    @cached_property
    def scores(self) -> Tensor:
        """``[B, classes]``, what the model says of the validation programs as they are."""
        return torch.from_numpy(self.model.scores(self.model.forest(self.trees)))

    @cached_property
    def guess(self) -> list[int]:
        """The class that it puts each into."""
        found: list[int] = self.scores.argmax(1).tolist()
        return found

    def to_html(self) -> str:
        """Return the page."""
        parts = [self._facts(), *self._curves()]
        if len(self.trees):
            for section in self.task.sections:
                parts += self._section(section)
        parts.append('<output id="told"></output>')
        return document("How the training went", parts, style=_STYLE, script=_SCRIPT)

    @property
    def task(self) -> type[Task]:
        """What the model was trained for."""
        return get_task(self.model.task)

    def _section(self, name: Section) -> list[str]:
        if name == "confusion":
            return self._confusion()
        if name == "mistakes":
            return [*self._pairs(), *self._mistakes()]
        return self._map()

    def _facts(self) -> str:
        model, figures = self.model, self.model.card["figures"]
        weights = sum(weight.numel() for one in model.members for weight in one.parameters())
        rows = [
            ("classes", f"{model.card['data']['training']['classes']:,}"),
            ("training programs", f"{model.card['data']['training']['programs']:,}"),
            ("validation programs", f"{len(self.trees):,}"),
            ("networks", f"{len(model.members)}, with {weights:,} weights in all"),
            ("epochs", f"{figures['epochs']}, in {figures['seconds']:.0f} s"),
        ]
        metric = f"validation_{self.task.metric}"
        for name, key in (
            (f"validation {self.task.title}", metric),
            ("the same, blind", f"{metric}_blind"),
        ):
            if key in figures:
                rows.append((name, f"{figures[key]:.1%}"))
        return table(("", ""), rows)

    def _curves(self) -> list[str]:
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
        inside = of(
            length_of_the_right_capsule="right_length",
            length_of_the_longest_other="wrong_length",
            entropy_of_the_coupling="coupling_entropy",
        )
        even = all((epoch.get("coupling_entropy") or 0) > _EVEN for epoch in history)
        parts = ["<h2>Epoch by epoch</h2>"]
        parts += [f"<h3>{title[:1].upper()}{title[1:]} in per cent</h3>"]
        parts += [charts.curves(shown), "<h3>Loss</h3>"]
        loss = of(training="loss", validation="val_loss")
        parts.append(charts.curves(loss, percent=False))
        if inside:
            parts += ["<h3>Inside, in per cent of the most there can be</h3>"]
            parts.append(charts.curves(inside))
        if even:
            parts.append(
                '<p class="quiet">The entropy of the coupling stays at its most: with one iteration'
                " of dynamic routing, every capsule gives all classes the same.</p>"
            )
        return parts

    def _confusion(self) -> list[str]:
        known = [
            (self.model.labels[right], self.model.labels[guess])
            for right, guess in zip(self.label.tolist(), self.guess, strict=True)
            if right >= 0
        ]
        counts = count_answers([right for right, _ in known], [guess for _, guess in known])
        return ["<h2>Which classes are taken for which</h2>", to_svg(counts)]

    @property
    def _wrong(self) -> list[int]:
        """The programs that it gets wrong, the surest mistakes first."""
        surest = self.scores.amax(1).tolist()
        wrong = [
            row
            for row, (right, guess) in enumerate(zip(self.label.tolist(), self.guess, strict=True))
            if right not in {guess, -1}
        ]
        return sorted(wrong, key=lambda row: -surest[row])

    def _pairs(self) -> list[str]:
        """Show the classes that are confused most: one that is taken for another, and another."""
        labels, right = self.model.labels, self.label.tolist()
        pairs = Counter((right[row], self.guess[row]) for row in self._wrong)
        parts = []
        for (one, other), count in pairs.most_common(_PAIRS):
            mistaken = self._example(one, other)
            rows = enumerate(zip(right, self.guess, strict=True))
            good = next((row for row, pair in rows if pair == (other, other)), None)
            title = f"{labels[one]} taken for {labels[other]}: {count:,}"
            shown = [(f"{labels[one]}, but called {labels[other]}", mistaken)]
            shown += [(f"{labels[other]}, and called so", good)] if good is not None else []
            parts.append(f"<h3>{html.escape(title)}</h3>" + self._side_by_side(shown))
        return ["<h2>Most confused</h2>", *parts] if parts else []

    def _example(self, one: int, other: int) -> int:
        """Return the surest program of a class that is taken for another."""
        right = self.label.tolist()
        return next(row for row in self._wrong if (right[row], self.guess[row]) == (one, other))

    def _mistakes(self) -> list[str]:
        """Show the surest mistakes that are not shown yet, and what led to them."""
        labels, right = self.model.labels, self.label.tolist()
        pairs = Counter((right[row], self.guess[row]) for row in self._wrong)
        before = {self._example(*pair) for pair, _ in pairs.most_common(_PAIRS)}
        others = [row for row in self._wrong if row not in before]
        parts = [
            self._side_by_side(
                [
                    (
                        f"{labels[right[row]]}, but called {labels[self.guess[row]]}"
                        f" ({self.scores[row, self.guess[row]]:.2f})",
                        row,
                    )
                ]
            )
            for row in others[:_MISTAKES]
        ]
        return ["<h2>Surest mistakes beside these</h2>", *parts] if parts else []

    def _side_by_side(self, programs: Sequence[tuple[str, int]]) -> str:
        """Show programs, with what led to the answer where that can be told."""
        boxes = [
            f"<div><p>{html.escape(title)}</p>"
            f'<div class="box">{self._source(self.trees[row], self.guess[row])}</div></div>'
            for title, row in programs
        ]
        return f'<div class="two">{"".join(boxes)}</div>' if len(boxes) > 1 else boxes[0]

    def _source(self, tree: Tree, guess: int) -> str:
        if len(tree.text) <= _LONGEST and self._routes:
            found = explain(self.model, tree, label=self.model.labels[guess])
            return to_source(found, _LINES, _BYTES)
        text = tree.text[:_BYTES].decode("utf-8", "replace")
        return f"<pre>{html.escape(chr(10).join(text.split(chr(10))[:_LINES]))}</pre>"

    @property
    def _routes(self) -> bool:
        """Whether it can be told what leads to answers."""
        return all(
            isinstance(one, TreeCaps) and one.config.pooling != "max" for one in self.model.members
        )

    def _map(self) -> list[str]:
        """Draw the programs on a plane: those with like capsules lie together."""
        from sklearn.manifold import TSNE

        count = min(len(self.trees), _POINTS)
        if count < 5:
            return []
        rows = np.linspace(0, len(self.trees) - 1, count).astype(int).tolist()
        forest = self.model.forest([self.trees[row] for row in rows])
        classes = "classes" in self.task.answers
        capsules = self._code(forest).numpy() if classes else self.model.embed(forest)
        if np.ptp(capsules, 0).max() == 0:  # programs that are all alike have no places to take
            return []
        plane = TSNE(init="pca", random_state=0, perplexity=min(30, (count - 1) / 3))
        values = plane.fit_transform(capsules)
        labels, right = self.names, self.label.tolist()
        titles = [
            (labels[right[row]] if right[row] >= 0 else "another class")
            + (f", called {labels[self.guess[row]]}" if classes else "")
            for row in rows
        ]
        drawn = charts.points(
            [(float(x), float(y)) for x, y in values],
            [right[row] if right[row] >= 0 else None for row in rows],
            labels,
            titles,
        )
        alike = "code capsules" if classes else "embeddings"
        called = ", and what it is called" if classes else ""
        return [
            "<h2>A map of the programs</h2>",
            f"<p>Programs with like {alike} lie together (t-SNE); the colour is the class."
            f" Point at one, or touch it, to see what it is{called}.</p>",
            drawn,
        ]

    def _code(self, forest: Forest) -> Tensor:
        """Return the code capsules of programs by the strongest network, or its scores."""
        found = []
        with torch.no_grad():
            for _, batch in batches(forest):
                answer = self.model.strongest(batch)
                code = answer.code if isinstance(answer, Capsules) else answer.scores
                found.append(code.flatten(1))
        return torch.cat(found)
