"""Running a reproduction: every cell of a table is trained and scored once, and kept."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from treecaps._version import __version__
from treecaps.data.corpus import Corpus
from treecaps.data.dataset import DataSet
from treecaps.errors import DataError, TreeCapsError
from treecaps.hashing import digest, digest_file
from treecaps.inference.evaluate import evaluate
from treecaps.models.files import to_json_bytes, write_files
from treecaps.models.settings import to_json
from treecaps.reproduction.memory import forget_peak, peak
from treecaps.reproduction.plan import Column, Row
from treecaps.syntax.parse import parse_code
from treecaps.syntax.program import Program
from treecaps.training.facts import MakeReport
from treecaps.training.presets import Preset, apply_settings, get_preset
from treecaps.training.train import TrainingProgress, train

_ENDINGS = (".jsonl.gz", ".jsonl", ".parquet", "")
_SHAPE = (
    "one folder {name} with train.jsonl.gz and test.jsonl.gz (or val.jsonl.gz), each line with"
    " 'code', 'language' and 'label'; .jsonl, .parquet and folders of classes do as well"
)
QUICK_PROGRAMS = 240
"""How many programs of each part a quick run takes."""
QUICK_CLASSES = 12
"""Of how many classes they are at most."""
_QUICK = ("epochs=6", "batch_size=8")


class Cell(NamedTuple):
    """One training: a model, on a data set, with a seed."""

    row: Row
    column: Column
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.column.name}-{self.row.name}-{self.seed}"


def list_cells(rows: Sequence[Row], columns: Sequence[Column], seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of models on data sets, one data set after the other."""
    return [Cell(row, column, seed) for column in columns for row in rows for seed in seeds]


Metrics = dict[str, Any]
Tell = Callable[[float, str], None]
"""Called with the share of all that is done, and what is being done."""


@dataclass(frozen=True)
class Reproduction:
    """A table on its way.

    Args:
        data: Where the folders of data sets are.
        out: Where everything goes.
        quick: Whether to take a few programs and epochs, to see that it works.
        frontend: Another front end than those of the paper.
        report: Makes the report of each training; none by default.
    """

    data: Path
    out: Path
    quick: bool = False
    frontend: str | None = None
    report: MakeReport | None = None

    def missing(self, columns: Sequence[Column]) -> dict[str, str]:
        """Return the data sets that are not there, and where to get them."""
        found = {}
        for column in columns:
            try:
                self._find(column, "train")
                self._find(column, "test")
            except DataError as error:
                found[column.name] = str(error)
        return found

    def run(
        self, cells: Sequence[Cell], tell: Tell
    ) -> Iterator[tuple[Cell, Metrics | TreeCapsError]]:
        """Yield the metrics of each cell, or what went wrong with it; the others go on.

        What was finished before is read, not trained again.
        """
        weights = [self._weight(cell) for cell in cells]
        warm = False
        for number, cell in enumerate(cells):
            before, weight = sum(weights[:number]) / sum(weights), weights[number] / sum(weights)
            try:
                metrics = self.kept(cell)
                if metrics is None:
                    if not warm:
                        _warm_up()
                        warm = True
                    tell(before, cell.name)

                    def on_step(
                        progress: TrainingProgress,
                        before: float = before,
                        weight: float = weight,
                        name: str = cell.name,
                    ) -> None:
                        done = before + weight * progress.share
                        tell(done, f"{name}, epoch {progress.epoch}/{progress.epochs}")

                    metrics = self._train(cell, on_step)
                    asked = self._asked(cell)
                    content = to_json_bytes({"asked": asked, **metrics})
                    write_files(self.out / "cells", {self._file(cell): content})
            except TreeCapsError as error:
                yield cell, error
            else:
                yield cell, metrics

    def kept(self, cell: Cell) -> Metrics | None:
        """Return the metrics of a cell that was finished before, for the very same."""
        try:
            metrics: Metrics = json.loads((self.out / "cells" / self._file(cell)).read_bytes())
        except (OSError, ValueError):
            return None
        return metrics if metrics.get("asked") == self._asked(cell) else None

    def _file(self, cell: Cell) -> str:
        return f"{cell.name}-{self._digest(cell)}.json"

    def _digest(self, cell: Cell) -> str:
        return digest(to_json_bytes(self._asked(cell)))[:8]

    def _asked(self, cell: Cell) -> dict[str, Any]:
        """Return all that metrics depend on."""
        row, preset = cell.row, self._preset(cell.row)
        return {
            "model": row.model,
            "network": to_json(preset.network),
            "training": to_json(preset.training),
            "ensemble": row.ensemble,
            "seed": cell.seed,
            "frontend": self.frontend_of(cell.row, cell.column),
            "quick": self.quick,
            "data": [_fingerprint(self._find(cell.column, part)) for part in ("train", "test")],
            "treecaps": __version__,
        }

    def frontend_of(self, row: Row, column: Column) -> str:
        """Return the front end whose trees a model gets."""
        return self.frontend or row.frontend or column.frontend

    def _preset(self, row: Row) -> Preset:
        settings = (*row.settings, *(_QUICK if self.quick else ()))
        return apply_settings(get_preset(row.preset, row.model), settings)

    def _weight(self, cell: Cell) -> float:
        """Return about how long a cell takes, against others."""
        size = 1.0 if self.quick else float(_size(self._find(cell.column, "train")))
        return max(size, 1.0) * cell.row.ensemble

    def _train(self, cell: Cell, on_step: Callable[[TrainingProgress], None]) -> dict[str, Any]:
        frontend = self.frontend_of(cell.row, cell.column)
        learn = self._load(cell.column, "train", frontend)
        # Trained otherwise, it is another model: nothing of that can be gone on with.
        folder = self.out / "models" / f"{cell.name}-{self._digest(cell)}"
        before = forget_peak()
        model = train(
            learn,
            preset=self._preset(cell.row),
            seed=1000 * cell.seed,
            ensemble=cell.row.ensemble,
            folder=folder,
            resume=folder.exists(),
            report=self.report,
            on_step=on_step,
        )
        memory = peak() - before if before else None  # not every system tells
        history = json.loads((folder / "history.json").read_bytes())["members"]
        metrics: dict[str, Any] = {
            "train_programs": len(learn),
            "train_failed": len(learn.failures),
            # All of it, also what was trained before it was cut off.
            "seconds": round(model.card["metrics"]["seconds"], 1),
            "memory_mb": None if memory is None else round(memory),
            "parameters": model.num_parameters,
            "loss": [epoch["loss"] for epoch in history[0]],
            "validation": [epoch["val_accuracy"] for epoch in history[0]],
        }
        for kind, blind in (("", False), ("_blind", True)):
            scored = evaluate(model, self._load(cell.column, "test", frontend, blind=blind))
            metrics |= {
                f"accuracy{kind}": scored.accuracy,
                f"programs{kind}": scored.programs,
                f"failed{kind}": scored.failed,
            }
            if not blind:
                metrics |= {"labels": scored.labels, "confusion": scored.confusion}
        return metrics

    def _load(self, column: Column, part: str, frontend: str, *, blind: bool = False) -> Corpus:
        place = self._find(column, part)
        if self.quick:
            place = self._sample(column, part, place)
        return Corpus.build(place, frontend=frontend, blind=blind)

    def _sample(self, column: Column, part: str, place: Path) -> Path:
        """Write the first few programs of some classes into a file of their own."""
        learn = self._find(column, "train")
        name = f"{column.name}-{part}-{_fingerprint(learn)}-{_fingerprint(place)}.jsonl"
        path = self.out / "samples" / name
        if path.exists():
            return path
        classes = sorted(_by_class(learn))[:QUICK_CLASSES]
        by_class = _by_class(place)
        chosen = [by_class[label] for label in classes if label in by_class]
        each = max(1, QUICK_PROGRAMS // max(len(chosen), 1))
        lines = [
            json.dumps(
                {
                    "id": program.id,
                    "label": program.label,
                    "language": program.language,
                    "code": program.text.decode("utf-8", "replace"),
                }
            )
            for members in chosen
            for program in members[:each]
        ]
        write_files(path.parent, {path.name: ("\n".join(lines) + "\n").encode()})
        return path

    def _find(self, column: Column, part: str) -> Path:
        home = self.data / column.name
        names = (part, "val") if part == "test" else (part,)
        for name in names:
            for ending in _ENDINGS:
                path = home / f"{name}{ending}"
                if path.exists():
                    return path
        what = f"no data set {column.name} in {self.data}"
        if home.is_dir():
            what = f"no {' or '.join(names)} of the data set {column.name} in {home}"
        raise DataError(
            f"there is {what}: {column.source}. It must be {_SHAPE.format(name=column.name)}"
        )


def _by_class(place: Path) -> dict[str, list[Program]]:
    found: dict[str, list[Program]] = {}
    for program in DataSet(place):
        if isinstance(program, Program) and program.label:
            found.setdefault(program.label, []).append(program)
    return found


def _fingerprint(place: Path) -> str:
    """Return what tells whether a data set is still the same."""
    if place.is_file():
        return _checksum(place, place.stat().st_size, place.stat().st_mtime_ns)[:8]
    files = [
        (str(path), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(place.rglob("*"))
    ]
    return digest(to_json_bytes(files))[:8]


@cache
def _checksum(path: Path, _size: int, _changed: int) -> str:
    return digest_file(path)


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in (place, *place.rglob("*")))


def _warm_up() -> None:
    """Load what trainings share, so that the first is not charged with it."""
    trees = [parse_code(f"x = {number}\n", "python") for number in range(4)]
    labels = ["one", "two"] * 2
    settings = ["epochs=1", "channels=1", "hidden=", "rename_probability=0"]
    preset = apply_settings(get_preset("default"), settings)
    train(trees, labels, val=(trees, labels), preset=preset)
