"""What answers requests: parsers in processes, and a model whose thread takes many at once."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from treecaps.errors import Failure, UsageError
from treecaps.explanation.attribution import MOST_NODES, Method
from treecaps.explanation.explanation import explain
from treecaps.inference.classify import Classification, classify_units, find_reason
from treecaps.inference.embed import Embedder, Embedding
from treecaps.inference.units import CodeUnit, is_empty
from treecaps.models.trained import TrainedModel, spell_parser
from treecaps.search.matches import AnyIndex, Match
from treecaps.search.query import Lines, select
from treecaps.server.batching import Batcher
from treecaps.server.following import FollowedIndex
from treecaps.server.limits import Limits, RefusedError, refuse
from treecaps.server.metrics import Metrics
from treecaps.server.parsing import Parsers, Source

Plain = dict[str, Any]


class _Job(NamedTuple):
    """What a request wants to know of a program or of its functions."""

    want: Literal["classes", "vectors", "matches"]
    units: list[CodeUnit]
    top: int = 1


class _Question(NamedTuple):
    """What a request wants explained."""

    unit: CodeUnit
    label: str | None
    method: Method | None


class Engine:
    """A model at the service of many requests at once.

    Args:
        model: What names classes.
        embedder: What makes vectors, of the same trees.
        followed: What is searched, if anything; the embedder made it.
        limits: How much it takes on.
        metrics: Is told what it does.
    """

    def __init__(
        self,
        model: TrainedModel,
        embedder: Embedder,
        followed: FollowedIndex | None,
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        trees = [spell_parser(one.frontend, one.comments) for one in (model, embedder.model)]
        if trees[0] != trees[1]:
            raise UsageError(
                f"the model reads trees by {trees[0]}, but that of the index by {trees[1]}: choose"
                " another model or index",
                arguments=("model",),
            )
        self.model, self.limits = model, limits
        self._followed = followed
        self._embedder = embedder
        self._metrics = metrics
        self._parsers = Parsers(
            model.frontend, model.comments, limits.max_nodes, limits.workers, limits.seconds
        )
        self._network = Batcher(self._predict, limits.batch, _nodes)
        # An explanation takes as long as many answers, which need not wait for it.
        self._explainer = Batcher(self._explain, 1)

    def wait(self) -> None:
        """Wait until it can answer: processes start while other things are done."""
        self._parsers.wait()

    @property
    def index(self) -> AnyIndex | None:
        """What is searched, as it is now."""
        return self._followed.current if self._followed else None

    async def can_answer(self) -> bool:
        """Whether programs can be parsed now."""
        return await self._parsers.can_answer()

    def close(self, seconds: float = 4.0) -> None:
        """End processes and threads, which have so many seconds to finish what is under way."""
        self._parsers.close()
        deadline = time.monotonic() + seconds
        for part in (self._network, self._explainer, self._followed):
            if part:
                part.close(deadline - time.monotonic())

    async def classify(self, source: Source, top: int) -> list[Classification]:
        """Tell the class of a program, or of each of its functions."""
        job = _Job("classes", await self._parse(source), top)
        return await self._network.answer(job) if job.units else []

    async def embed(self, source: Source) -> list[Embedding]:
        """Make vectors of a program, or of each of its functions."""
        job = _Job("vectors", await self._parse(source))
        return await self._network.answer(job) if job.units else []

    async def search(
        self, source: Source, top: int, lines: Lines | None, with_code: bool
    ) -> list[Plain]:
        """Find what is most like a program or some of its lines, as plain values for JSON."""
        index = self.index
        if index is None:
            raise RefusedError(
                404, "no-index", "this server has no index: start it with --index INDEX"
            )
        units = await self._parse(source)
        if not source.functions:
            ((name, tree, *_),) = units
            if is_empty(tree):
                raise _refuse_empty("search for")
            try:
                units = [CodeUnit(name, select(tree, lines, functions=index.functions))]
            except UsageError as error:
                raise RefusedError(404, "no-lines", str(error)) from None
        found: list[list[Match]] = []
        if units:
            found = await self._network.answer(_Job("matches", units, top))

        def spell(match: Match) -> Plain:
            return match.to_dict() | ({"code": index.code(match)} if with_code else {})

        def spell_all() -> list[Plain]:
            return [
                {
                    "id": unit.id,
                    **({"function": unit.function, "line": unit.line} if unit.function else {}),
                    "matches": [spell(match) for match in matches],
                }
                for unit, matches in zip(units, found, strict=True)
            ]

        return await asyncio.to_thread(spell_all) if with_code else spell_all()

    async def explain(self, source: Source, label: str | None, method: Method | None) -> Plain:
        """Tell what of a program leads to its class, as plain values for JSON."""
        (unit,) = await self._parse(source)
        if is_empty(unit.tree):
            raise _refuse_empty("explain")
        reason = find_reason(self.model, unit.tree)
        if reason and label is None:
            raise RefusedError(422, "no-class", f"{reason}: choose the label to explain")
        if method == "gradients" and len(unit.tree) > MOST_NODES:
            raise RefusedError(
                413,
                "too-many-nodes",
                f"the program has {len(unit.tree):,} nodes, and gradients are taken here of"
                f" {MOST_NODES:,}: leave the method out",
            )
        return await self._explainer.answer(_Question(unit, label, method))

    async def language(self, source: Source) -> str:
        """Tell the language of a program."""
        found = await self._parsers.language(source)
        if isinstance(found, Failure):
            raise refuse(found)
        return found

    async def _parse(self, source: Source) -> list[CodeUnit]:
        found = await self._parsers.parse(source)
        if isinstance(found, Failure):
            raise refuse(found)
        return found

    def _predict(self, jobs: Sequence[_Job]) -> list[Any]:
        """Answer all jobs with one forward pass for classes and one for embeddings."""
        begun = time.perf_counter()
        answers: list[list[Any]] = [[] for _ in jobs]
        for classes in (True, False):
            # Programs of one language share more windows, and each is looked at only once.
            chosen = sorted(
                (
                    (number, unit)
                    for number, job in enumerate(jobs)
                    if (job.want == "classes") is classes
                    for unit in job.units
                ),
                key=lambda one: one[1].tree.language,
            )
            if not chosen:
                continue
            units = [unit for _, unit in chosen]
            self._metrics.batch.observe(len(units))
            found = self._classes(units, jobs) if classes else self._embedder.embed_units(units)
            for (number, _), one in zip(chosen, found, strict=True):
                answers[number].append(one)
        self._finish(jobs, answers)
        self._metrics.network.inc(time.perf_counter() - begun)
        return answers

    def _classes(self, units: list[CodeUnit], jobs: Sequence[_Job]) -> Sequence[Classification]:
        return classify_units(self.model, units, max(job.top for job in jobs))

    def _finish(self, jobs: Sequence[_Job], answers: list[list[Any]]) -> None:
        """Give each job as many classes as it wants, and matches for its vector."""
        for job, answer in zip(jobs, answers, strict=True):
            if job.want == "classes":
                answer[:] = [replace(one, top=one.top[: job.top]) for one in answer]
        searching = [number for number, job in enumerate(jobs) if job.want == "matches"]
        if searching and (index := self.index) is not None:
            vectors = np.stack([one.vector for number in searching for one in answers[number]])
            most = max(jobs[number].top for number in searching)
            found = iter(index.search_many(vectors, most))
            for number in searching:
                answers[number] = [next(found)[: jobs[number].top] for _ in answers[number]]

    def _explain(self, questions: Sequence[_Question]) -> list[Plain]:
        found = []
        for unit, label, method in questions:
            explained = explain(self.model, unit.tree, label=label, method=method)
            said = replace(explained.classification, id=unit.id)
            found.append(replace(explained, classification=said).to_dict())
        return found


def _refuse_empty(use: str) -> RefusedError:
    return RefusedError(422, "empty", f"the program is empty: there is nothing to {use}")


def _nodes(job: _Job) -> int:
    return sum(len(unit.tree) for unit in job.units)
