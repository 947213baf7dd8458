"""The data sets of the tables: where they are, and which programs train, validate and test."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treecaps.data.corpus import Corpus
from treecaps.data.dataset import DataSet
from treecaps.data.sequences import Selection
from treecaps.errors import DataError, ModelError, describe_os_error
from treecaps.files import open_atomic
from treecaps.hashing import digest, digest_file
from treecaps.models.files import to_json_bytes
from treecaps.reproduction.plan import Column
from treecaps.syntax.program import Program

_ENDINGS = (".jsonl.gz", ".jsonl", ".parquet", "")
_SHAPE = (
    "one folder {name} with train.jsonl.gz and test.jsonl.gz (or val.jsonl.gz), each line with"
    " 'code', 'language' and 'label'; .jsonl, .parquet and folders of classes do as well"
)
QUICK_PROGRAMS = 240
"""How many programs of each part a quick run takes."""
QUICK_CLASSES = 12
"""Of how many classes they are at most."""


class Labelled(NamedTuple):
    """Programs with their classes."""

    trees: Selection
    labels: list[str]


@dataclass(frozen=True)
class Places:
    """Where the data sets are.

    Args:
        data: The folder with a folder for each data set.
        out: Where samples go.
        quick: Whether to take a few programs.
    """

    data: Path
    out: Path
    quick: bool = False

    def missing(self, columns: Sequence[Column]) -> dict[str, str]:
        """Return the data sets that are not there, and where to get them."""
        found = {}
        for column in columns:
            try:
                self.find(column, "train")
                self.find(column, "test")
            except DataError as error:
                found[column.name] = str(error)
        return found

    def fingerprints(self, column: Column) -> list[str]:
        """Return what tells whether a data set is still the same; it is looked at once."""
        if column.name not in self._fingerprints:
            parts = [self.find(column, part) for part in ("train", "test")]
            self._fingerprints[column.name] = [_fingerprint(part) for part in parts]
        return self._fingerprints[column.name]

    @cached_property
    def _fingerprints(self) -> dict[str, list[str]]:
        return {}

    def size(self, column: Column) -> int:
        """Return the bytes of the training programs; in a quick run all data sets are alike."""
        place = self.find(column, "train")
        if self.quick:
            return 1
        return max(sum(path.stat().st_size for path in (place, *place.rglob("*"))), 1)

    def load(self, column: Column, part: str, frontend: str, *, blind: bool = False) -> Corpus:
        """Return the trees of a part of a data set."""
        place = self.find(column, part)
        if self.quick:
            place = self._sample(column, part, place)
        return Corpus.build(place, frontend=frontend, blind=blind)

    def _sample(self, column: Column, part: str, place: Path) -> Path:
        """Write the first few programs of some classes into a file of their own."""
        name = f"{column.name}-{part}-{'-'.join(self.fingerprints(column))}.jsonl"
        path = self.out / "samples" / name
        if path.exists():
            return path
        classes = sorted(_by_class(self.find(column, "train")))[:QUICK_CLASSES]
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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_atomic(path) as file:  # another process may write the same
                file.write(("\n".join(lines) + "\n").encode())
        except OSError as error:
            raise ModelError(f"cannot write {path}: {describe_os_error(error)}") from None
        return path

    def find(self, column: Column, part: str) -> Path:
        """Return where a part of a data set is, or raise ``DataError``."""
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


def split(corpus: Corpus, share: float) -> tuple[Labelled, Labelled]:
    """Divide programs into those to learn from and those to validate with, by class.

    The division is always the same: networks of several seeds then know the same kinds, so that
    they can be an ensemble, and none of them has seen the programs that weigh them.

    Args:
        corpus: The programs; those without a label are left out.
        share: The share of each class for validation; one program at least, and not all.
    """
    rng = np.random.default_rng(0)
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(corpus.labels):
        if label is not None:
            rows.setdefault(label, []).append(row)
    held_out: set[int] = set()
    for label in sorted(rows):
        count = min(max(1, round(share * len(rows[label]))), len(rows[label]) - 1)
        held_out.update(rng.permutation(rows[label])[:count].tolist())
    every = sorted(row for found in rows.values() for row in found)
    return (
        _select(corpus, [row for row in every if row not in held_out]),
        _select(corpus, [row for row in every if row in held_out]),
    )


def take_part(programs: Labelled, share: float) -> Labelled:
    """Return a share of the programs of each class, one of each at least; always the same ones."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(programs.labels):
        rows.setdefault(label, []).append(row)
    kept = sorted(
        row
        for label in sorted(rows)
        for row in rng.permutation(rows[label])[: max(1, round(share * len(rows[label])))].tolist()
    )
    trees = Selection(programs.trees, np.array(kept, np.int64))
    return Labelled(trees, [programs.labels[row] for row in kept])


def _select(corpus: Corpus, rows: list[int]) -> Labelled:
    labels = [corpus.labels[row] or "" for row in rows]
    return Labelled(Selection(corpus, np.array(rows, np.int64)), labels)


def _by_class(place: Path) -> dict[str, list[Program]]:
    found: dict[str, list[Program]] = {}
    for program in DataSet(place):
        if isinstance(program, Program) and program.label:
            found.setdefault(program.label, []).append(program)
    return found


def _fingerprint(place: Path) -> str:
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
