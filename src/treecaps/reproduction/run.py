"""Running a reproduction: every cell of a table is trained and scored once, and kept."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from treecaps._version import __version__
from treecaps.data.corpus import Corpus
from treecaps.errors import ModelError, TreeCapsError, describe_os_error
from treecaps.files import FileLock
from treecaps.hashing import digest
from treecaps.inference.evaluate import evaluate
from treecaps.models.files import to_json_bytes, write_files
from treecaps.models.settings import to_json
from treecaps.models.trained import TrainedModel
from treecaps.reproduction.data import Places, split, take_part
from treecaps.reproduction.ensemble import join
from treecaps.reproduction.memory import forget_peak, peak
from treecaps.reproduction.plan import Column, Metrics, Results, Row
from treecaps.reproduction.timing import time_programs
from treecaps.syntax.parse import parse_code
from treecaps.training.facts import MakeReport
from treecaps.training.folder import is_complete
from treecaps.training.presets import Preset, apply_settings, get_preset
from treecaps.training.train import TrainingProgress, train

_FORMAT = 2
"""Of what cells hold, and of how they come about: those of another format are not read."""
_JOINING = 0.01
"""How long it takes to join networks, against training one: a guess."""
_QUICK = ("epochs=6", "batch_size=8")


class Cell(NamedTuple):
    """One figure of one seed: a model, on a data set, with a seed; an ensemble has seed 0."""

    row: Row
    column: Column
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.column.name}-{self.row.name}-{self.seed}"

    @property
    def members(self) -> "list[Cell]":
        """The cells whose networks an ensemble consists of; none for one network."""
        row = self.row.of
        return [Cell(row, self.column, seed) for seed in range(self.row.ensemble)] if row else []


def list_cells(rows: Sequence[Row], columns: Sequence[Column], seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of models on data sets, one data set after the other.

    The networks of an ensemble come before it, whatever the seeds are.
    """
    found: dict[str, Cell] = {}
    for column in columns:
        for row in rows:
            for seed in [0] if row.of else seeds:
                cell = Cell(row, column, seed)
                found |= {one.name: one for one in (*cell.members, cell)}
    return list(found.values())


Tell = Callable[[float, str], None]
"""Called with the share of all that is done, and what is being done."""
OnStep = Callable[[TrainingProgress], None]


@dataclass(frozen=True)
class Reproduction:
    """A table on its way.

    Args:
        places: Where the data sets are; all results go into ``places.out``.
        epochs: The number of epochs by data set, where it is not that of the presets; below 1
            that part of the programs is trained on once.
        frontend: Another front end than those of the paper.
        report: Makes the report of each training; none by default.
        command: What was typed; it is kept with the results.
    """

    places: Places
    epochs: Mapping[str, float]
    frontend: str | None = None
    report: MakeReport | None = None
    command: str | None = None

    @property
    def _cells(self) -> Path:
        return self.places.out / "cells"

    def run(
        self, cells: Sequence[Cell], tell: Tell
    ) -> Iterator[tuple[Cell, Metrics | TreeCapsError]]:
        """Yield the metrics of each cell, or what went wrong with it; the others go on.

        What was finished before is read, not trained again. What another process is training is
        waited for.
        """
        weights = [
            self.places.size(cell.column) * (_JOINING if cell.members else 1) for cell in cells
        ]
        for number, cell in enumerate(cells):
            before, weight = sum(weights[:number]) / sum(weights), weights[number] / sum(weights)

            def on_step(
                progress: TrainingProgress,
                before: float = before,
                weight: float = weight,
                name: str = cell.name,
            ) -> None:
                done = before + weight * progress.share
                tell(done, f"{name}, epoch {progress.epoch}/{progress.epochs}")

            tell(before, cell.name)
            try:
                metrics = self.kept(cell) or self._make(cell, on_step)
            except TreeCapsError as error:
                yield cell, error
            else:
                yield cell, metrics

    def kept(self, cell: Cell) -> Metrics | None:
        """Return the metrics of a cell that was finished before, for the very same."""
        metrics = _read(self._place("cells", cell, ".json"))
        return metrics if metrics and metrics["asked"] == self._asked(cell) else None

    def results(
        self, rows: Sequence[Row], columns: Sequence[Column], seeds: Sequence[int]
    ) -> Results:
        """Return the metrics of all that is finished, also by other processes.

        Cells with other epochs than those that are asked for are taken where there are no others:
        of the number of epochs with the most seeds, and of these the largest.
        """
        known: dict[bytes, dict[int | None, Metrics]] = {}
        for path in sorted(self._cells.glob("*.json")):
            if metrics := _read(path):
                epochs, key = _part_epochs(metrics["asked"])
                known.setdefault(key, {})[epochs] = metrics
        found: Results = {}
        for row, column in product(rows, columns):
            by_epochs: dict[int | None, list[Metrics]] = {}
            wanted = None
            for seed in [0] if row.of else seeds:
                wanted, key = _part_epochs(self._asked(Cell(row, column, seed)))
                for epochs, metrics in known.get(key, {}).items():
                    by_epochs.setdefault(epochs, []).append(metrics)
            if by_epochs:
                others = max(by_epochs.values(), key=lambda each: (len(each), each[0]["epochs"]))
                found[row.name, column.name] = by_epochs.get(wanted, others)
        return found

    def frontend_of(self, row: Row, column: Column) -> str:
        """Return the front end whose trees a model gets."""
        return self.frontend or row.frontend or column.frontend

    def _place(self, kind: str, cell: Cell, ending: str = "") -> Path:
        """Return where something of a cell is, also where another row has the very same."""
        home, last = self.places.out / kind, f"-{self._digest(cell)}{ending}"
        return next(iter(sorted(home.glob(f"*{last}"))), home / f"{cell.name}{last}")

    def _digest(self, cell: Cell) -> str:
        return digest(to_json_bytes(self._asked(cell)))[:8]

    def _asked(self, cell: Cell) -> dict[str, Any]:
        """Return all that metrics depend on."""
        row, preset, part = cell.row, self._preset(cell), self._part(cell)
        return {
            "format": _FORMAT,
            "model": row.model,
            "network": to_json(preset.network),
            "training": {**to_json(preset.training), **({"epochs": part} if part else {})},
            "ensemble": row.ensemble,
            "seed": cell.seed,
            "frontend": self.frontend_of(cell.row, cell.column),
            "quick": self.places.quick,
            "data": self.places.fingerprints(cell.column),
            "treecaps": __version__,
        }

    def _preset(self, cell: Cell) -> Preset:
        preset = get_preset(cell.row.preset, cell.row.model)
        epochs = self.epochs.get(cell.column.name)
        changes = [*cell.row.settings, *(_QUICK if self.places.quick else ())]
        if not preset.model.CLOSED_FORM:
            changes.append("ordinary_background=false")  # all learn from the same programs
        if epochs and not preset.model.CLOSED_FORM:
            changes.append(f"epochs={math.ceil(epochs)}")
        return apply_settings(preset, changes)

    def _part(self, cell: Cell) -> float | None:
        """Return which part of one epoch is asked for, if it is not a whole number of them."""
        epochs = self.epochs.get(cell.column.name)
        closed = get_preset(cell.row.preset, cell.row.model).model.CLOSED_FORM
        return epochs if epochs and epochs < 1 and not closed else None

    def _make(self, cell: Cell, on_step: OnStep) -> Metrics:
        """Train and score a cell, unless another process does: then wait for it."""
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._cells / f"{self._digest(cell)}.lock", math.inf)
        except OSError as error:
            raise ModelError(
                f"cannot write into {self._cells}: {describe_os_error(error)}",
                arguments=("folder",),
            ) from None
        with closing(lock):
            if metrics := self.kept(cell):
                return metrics
            frontend = self.frontend_of(cell.row, cell.column)
            learn = self.places.load(cell.column, "train", frontend)
            metrics = {
                "asked": self._asked(cell),
                **({"command": self.command} if self.command else {}),
                "seed": cell.seed,
                "train_programs": len(learn),
                "train_failed": len(learn.failures),
            }
            make = self._join if cell.members else self._train
            model, facts = make(cell, learn, on_step)
            metrics |= {**facts, **self._score(model, cell, frontend)}
            path = self._place("cells", cell, ".json")
            write_files(path.parent, {path.name: to_json_bytes(metrics)})
            return metrics

    def _train(self, cell: Cell, learn: Corpus, on_step: OnStep) -> tuple[TrainedModel, Metrics]:
        """Train one network."""
        _warm_up(cell.row.preset)
        # Trained otherwise, it is another model: nothing of that can be gone on with.
        folder = self._place("models", cell)
        preset = self._preset(cell)
        some, val = split(learn, preset.training.val_share)
        preset_epochs = _count_epochs(cell.row, len(some.labels))
        part = self._part(cell)
        if part:
            some = take_part(some, part)
        trained = folder.exists() and is_complete(folder)
        before = forget_peak()
        model = train(
            *some,
            val=val,
            preset=preset,
            seed=cell.seed,
            frontend=learn.about["frontend"],
            comments=learn.about["comments"],
            folder=folder,
            resume=folder.exists(),
            report=self.report,
            on_step=on_step,
        )
        # Not every system tells, and what was trained before takes none.
        memory = round(peak() - before) if before and not trained else None
        (history,) = json.loads((folder / "history.json").read_bytes())["members"]
        return model, {
            "epochs": part or len(history),
            "preset_epochs": preset_epochs,
            "best_epoch": model.card["members"][0]["best_epoch"],
            # All of it, also what was trained before it was cut off.
            "seconds": model.card["metrics"]["seconds"],
            "memory_mb": memory,
            "loss": [epoch["loss"] for epoch in history],
            "validation": [epoch["val_accuracy"] for epoch in history],
        }

    def _join(self, cell: Cell, learn: Corpus, _: OnStep) -> tuple[TrainedModel, Metrics]:
        """Make an ensemble of networks that are trained already."""
        found = [self.kept(one) for one in cell.members]
        members = [one for one in found if one]
        if len(members) < len(found):
            raise ModelError("some of its networks could not be trained")
        models = [TrainedModel.load(self._place("models", one)) for one in cell.members]
        val = split(learn, self._preset(cell).training.val_share)[1]
        model = join(models, val)
        memory = [one["memory_mb"] for one in members]
        return model, {
            "epochs": members[0]["epochs"],
            "preset_epochs": members[0]["preset_epochs"],
            "weights": list(model.engine.weights),
            "seconds": sum(one["seconds"] for one in members),
            "memory_mb": None if None in memory else max(memory),
            "loss": [],
            "validation": [],
        }

    def _score(self, model: TrainedModel, cell: Cell, frontend: str) -> Metrics:
        """Score a model on test programs, as they are and blind, and time it."""
        metrics: Metrics = {"parameters": model.num_parameters}
        for kind, blind in (("", False), ("_blind", True)):
            test = self.places.load(cell.column, "test", frontend, blind=blind)
            scored = evaluate(model, test)
            metrics |= {
                f"accuracy{kind}": scored.accuracy,
                f"programs{kind}": scored.programs,
                f"failed{kind}": scored.failed,
            }
            if not blind:
                metrics |= {
                    "labels": list(scored.labels),
                    "confusion": [list(row) for row in scored.confusion],
                    "ms": time_programs(model, test),
                }
        return metrics


def _read(path: Path) -> Metrics | None:
    """Return what a cell holds, or nothing if it is not there or damaged."""
    try:
        metrics: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    usable = isinstance(metrics, dict) and metrics.get("asked", {}).get("format") == _FORMAT
    return metrics if usable else None


def _part_epochs(asked: dict[str, Any]) -> tuple[int | None, bytes]:
    """Return the epochs that a cell asks for, and a key of all else."""
    training = {**asked["training"], "epochs": None}
    return asked["training"]["epochs"], to_json_bytes({**asked, "training": training})


def _count_epochs(row: Row, programs: int) -> int:
    """Return how many epochs the preset of a row asks for."""
    preset = get_preset(row.preset, row.model)
    if preset.model.CLOSED_FORM:
        return 1
    return preset.training.for_programs(programs, preset.task.num_epochs(programs)).epochs


@cache
def _warm_up(preset: str) -> None:
    """Load and compile what trainings share, so that the first is not charged with it."""
    trees = [parse_code(f"x = {number}\n", "python") for number in range(4)]
    labels = ["one", "two"] * 2
    settings = [
        "epochs=1",
        "channels=1",
        "hidden=",
        "rename_probability=0",
        "ordinary_background=false",
    ]
    small = apply_settings(get_preset(preset), settings)
    train(trees, labels, val=(trees, labels), preset=small)
