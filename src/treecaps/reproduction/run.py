"""Running a reproduction: every cell of a table is trained and scored once, and kept."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import treecaps
from treecaps.data.corpus import Corpus
from treecaps.errors import DataError
from treecaps.inference.evaluate import evaluate
from treecaps.models.files import checksum, to_json_bytes, write_files
from treecaps.reproduction.memory import forget_peak, peak
from treecaps.reproduction.plan import Column, Row
from treecaps.training.presets import apply_settings, get_preset
from treecaps.training.trainer import Moment, train

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
    """

    data: Path
    out: Path
    quick: bool = False
    frontend: str | None = None

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

    def run(self, cells: Sequence[Cell], tell: Tell) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Yield the figures of each cell; what was finished before is read, not trained again."""
        for number, cell in enumerate(cells):
            figures = self._kept(cell)
            if figures is None:

                def on_step(moment: Moment, number: int = number, name: str = cell.name) -> None:
                    share = (number + moment.share) / len(cells)
                    tell(share, f"{name}, epoch {moment.epoch}/{moment.epochs}")

                tell(number / len(cells), cell.name)
                figures = self._train(cell, on_step)
                content = to_json_bytes({"asked": self._asked(cell), **figures})
                write_files(self.out / "cells", {f"{cell.name}.json": content})
            yield cell, figures

    def _kept(self, cell: Cell) -> dict[str, Any] | None:
        path = self.out / "cells" / f"{cell.name}.json"
        try:
            figures: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        return figures if figures.get("asked") == self._asked(cell) else None

    def _asked(self, cell: Cell) -> dict[str, Any]:
        row = cell.row
        return {
            "model": row.model,
            "preset": row.preset,
            "settings": list(self._settings(row)),
            "ensemble": row.ensemble,
            "seed": cell.seed,
            "frontend": self._frontend(cell.column),
            "quick": self.quick,
            "treecaps": treecaps.__version__,
        }

    def _frontend(self, column: Column) -> str:
        return self.frontend or column.frontend

    def _settings(self, row: Row) -> tuple[str, ...]:
        return (*row.settings, *(_QUICK if self.quick else ()))

    def _train(self, cell: Cell, on_step: Callable[[Moment], None]) -> dict[str, Any]:
        frontend = self._frontend(cell.column)
        learn = self._load(cell.column, "train", frontend)
        # Trained otherwise, it is another model: nothing of that can be gone on with.
        asked = checksum(to_json_bytes(self._asked(cell)))[:8]
        folder = self.out / "models" / f"{cell.name}-{asked}"
        before = forget_peak()
        begun = time.perf_counter()
        model = train(
            learn,
            preset=apply_settings(
                get_preset(cell.row.preset, cell.row.model), self._settings(cell.row)
            ),
            seed=1000 * cell.seed,
            ensemble=cell.row.ensemble,
            folder=folder,
            resume=folder.exists(),
            on_step=on_step,
        )
        seconds = time.perf_counter() - begun
        memory = peak() - before
        history = json.loads((folder / "history.json").read_bytes())["members"]
        figures: dict[str, Any] = {
            "train_programs": len(learn),
            "seconds": round(seconds, 1),
            "memory_mb": round(memory),
            "parameters": sum(
                weight.numel() for member in model.members for weight in member.parameters()
            ),
            "loss": [epoch["loss"] for epoch in history[0]],
            "validation": [epoch["val_accuracy"] for epoch in history[0]],
        }
        for kind, blind in (("", False), ("_blind", True)):
            scored = evaluate(model, self._load(cell.column, "test", frontend, blind=blind))
            figures |= {
                f"accuracy{kind}": scored.accuracy,
                f"programs{kind}": scored.programs,
            }
            if not blind:
                figures |= {"labels": scored.labels, "confusion": scored.confusion}
        return figures

    def _load(self, column: Column, part: str, frontend: str, *, blind: bool = False) -> Corpus:
        place = self._find(column, part)
        if self.quick:
            place = self._sample(column, part, place)
        return Corpus.build(place, frontend=frontend, blind=blind)

    def _sample(self, column: Column, part: str, place: Path) -> Path:
        """Write the first few programs of some classes into a file of their own."""
        from treecaps.data.dataset import DataSet
        from treecaps.syntax.program import Program

        path = self.out / "samples" / f"{column.name}-{part}.jsonl"
        if path.exists():
            return path
        programs = [one for one in DataSet(place) if isinstance(one, Program) and one.label]
        by_class: dict[str, list[Program]] = {}
        for program in programs:
            by_class.setdefault(program.label or "", []).append(program)
        chosen = [by_class[label] for label in sorted(by_class)[:QUICK_CLASSES]]
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
        for name in (part, "val") if part == "test" else (part,):
            for ending in _ENDINGS:
                path = home / f"{name}{ending}"
                if path.exists():
                    return path
        raise DataError(
            f"there is no data set {column.name} in {self.data}: {column.source}."
            f" It must be {_SHAPE.format(name=column.name)}"
        )
