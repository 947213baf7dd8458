"""What can be searched, wherever its vectors are: ``AnyIndex``, and what it finds."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.errors import ProgramError, SearchError, UsageError
from treecaps.inference.embed import Embedder
from treecaps.search import smoothing
from treecaps.search.fingerprint import fingerprint
from treecaps.search.place import Place
from treecaps.search.store import Span, content_key
from treecaps.syntax.program import Program
from treecaps.text import html_table, short_repr

Vectors = NDArray[np.float32]

_SAME = 1e-6
"""Sums of the same numbers in another order differ by less."""

MATCH_COLUMNS = ("file", "function", "language", "alike", "copied")
"""What the cells of a match are."""


@dataclass(frozen=True)
class Match:
    """Something in an index that is like what was searched for.

    Args:
        path: Its file, from the indexed folder on.
        function: The name of the function; ``None`` for a whole file.
        line: Its first line, from 1.
        last_line: Its last line.
        language: Its language.
        similarity: The product of both vectors: 1 for the same code, about 0 for unlike.
        probability: How probable it is that both solve the same problem; ``None`` if the model of
            the index was not trained for similarity.
        copied: The share of the smaller one that both have; ``None`` if it was not looked at.
    """

    path: str
    function: str | None
    line: int | None
    last_line: int | None
    language: str
    similarity: float
    probability: float | None = None
    copied: float | None = None

    def cells(self) -> tuple[str, ...]:
        """Return what it is and how alike, in words, for a row of a table."""
        lines = "" if self.line is None else f":{self.line}-{self.last_line}"
        known = self.probability
        alike = f"{self.similarity:.2f}" if known is None else f"{known:.0%}"
        copied = "" if self.copied is None else f"{self.copied:.0%}"
        return f"{self.path}{lines}", self.function or "", self.language, alike, copied

    def _repr_html_(self) -> str:
        return html_table("match", MATCH_COLUMNS, [self.cells()])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rounded = {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in vars(self).items()
        }
        return {name: value for name, value in rounded.items() if value is not None}


class Row(NamedTuple):
    """What a vector is of: as many files as have the same contents.

    Args:
        paths: The files.
        language: Their language.
        span: Which part of them.
    """

    paths: list[str]
    language: str
    span: Span


class AnyIndex(ABC):
    """The vectors of the functions or files of a folder, and what is like a vector.

    Args:
        about: What made it.
        embedder: What made the vectors, and makes those of queries.
        note: Why a large index looks at each vector, in words for people.
    """

    def __init__(self, about: dict[str, Any], embedder: Embedder, note: str | None = None) -> None:
        self.model: str = about["model"]
        self.folder = Path(about["folder"])
        self.functions: bool = about["functions"]
        self.embedder = embedder
        self.note = note

    def __repr__(self) -> str:
        functions = {"functions": len(self)} if self.functions else {}
        facts = {"model": self.model, "files": self.files}
        return short_repr(self, str(self.folder), **facts, **functions)

    @abstractmethod
    def __len__(self) -> int:
        """Return how many functions or files can be found, those with the same contents each."""

    @property
    @abstractmethod
    def files(self) -> int:
        """How many files it knows."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers each vector has; 0 if there are none."""

    def search(self, vector: Vectors, top: int = 10, *, smooth: bool = False) -> list[Match]:
        """Return what is most like a vector, ``[E]``, best first."""
        return self.search_many(np.asarray(vector)[None], top, smooth=smooth)[0]

    def search_many(
        self, vectors: Vectors, top: int = 10, *, smooth: bool = False
    ) -> list[list[Match]]:
        """Return what is most like each of some vectors, ``[Q, E]``, best first.

        Args:
            vectors: Embeddings of what is searched for.
            top: How many matches to return of each.
            smooth: Rank the nearest by their neighbours too, as ``search.smoothing`` does.
        """
        if top < 1:
            raise UsageError(f"cannot find {top} matches; ask for one or more")
        vectors = np.asarray(vectors, np.float32)
        if not self.width:
            return [[] for _ in vectors]
        if vectors.ndim != 2 or vectors.shape[1] != self.width:
            raise UsageError(
                f"vectors of this index have {self.width} numbers each,"
                f" not {'x'.join(map(str, vectors.shape[1:]))}"
            )
        if smooth:
            return [self._search_smoothly(vector, top) for vector in vectors]
        return self._search(vectors, top)

    def folder_of(self, path: str) -> Path:
        """Return the indexed folder that a match is from."""
        return self.folder

    @abstractmethod
    def refresh(self) -> None:
        """Find out what it holds now, or raise ``SearchError``."""

    @abstractmethod
    def search_exactly(self, vectors: Vectors, top: int) -> list[list[Match]]:
        """Return what ``search_many`` does, by comparing with every vector of the index."""

    @abstractmethod
    def _search(self, vectors: Vectors, top: int) -> list[list[Match]]:
        """Return what is most like each vector; these have the width of the index."""

    @abstractmethod
    def _near(self, vector: Vectors, count: int) -> tuple[Sequence[Row], Vectors]:
        """Return at least so many of the rows nearest to a vector, with theirs, in any order."""

    @abstractmethod
    def _key_of(self, path: str) -> str | None:
        """Return the key of the contents that a file had when it was indexed."""

    def _search_smoothly(self, vector: Vectors, top: int) -> list[Match]:
        if self.embedder.probability(1.0) is None:
            raise UsageError(
                f"only a model that was trained for similarity can smooth, not {self.model}"
            )
        count = max(top, smoothing.CANDIDATES)
        rows, near = self._near(vector, count)
        likeness = near @ vector
        nearest = np.argsort(-likeness, kind="stable")[:count]
        candidates = near[nearest[: smoothing.CANDIDATES]]
        ranked = smoothing.rank(vector, candidates, self.embedder.model.calibration.same)
        # Each is compared with each, so what is farther away keeps its place.
        rest = np.arange(len(ranked), len(nearest))
        order = nearest[np.concatenate([ranked, rest])][:top]
        chosen = [rows[number] for number in order.tolist()]
        return self._every_match(chosen, likeness[order])[:top]

    def _every_match(self, rows: Iterable[Row], likeness: Vectors) -> list[Match]:
        """Return the matches of rows, in their order."""
        pairs = zip(rows, likeness.tolist(), strict=True)
        return [match for row, value in pairs for match in self.matches_of(row, value)]

    def _best(self, rows: Sequence[Row], likeness: Vectors, top: int) -> list[Match]:
        """Return the matches of the most alike rows; those that are as like go by their names."""
        numbers = np.arange(len(rows))
        if top < len(likeness):
            least = np.partition(likeness, -top)[-top] - _SAME
            numbers = np.flatnonzero(likeness >= least)
        chosen = [rows[number] for number in numbers.tolist()]
        return sorted(self._every_match(chosen, likeness[numbers]), key=_order)[:top]

    def matches_of(self, row: Row, similarity: float) -> list[Match]:
        """Return a row as matches, one for each file that has it."""
        similarity = min(similarity, 1.0)
        found = similarity, self.embedder.probability(similarity)
        return [Match(path, *row.span, row.language, *found) for path in row.paths]

    def code(self, match: Match) -> str | None:
        """Return the lines of a match, if its file is still what was indexed.

        Nothing outside the indexed folder is read, wherever links lead.
        """
        try:
            root = self.folder.resolve(strict=True)
            path = (root / match.path).resolve(strict=True)
            if not path.is_relative_to(root):
                return None
            program = Program.read(path, match.language, max_bytes=path.stat().st_size)
        except (OSError, RuntimeError, ValueError, ProgramError):
            return None
        if content_key(program.text, program.language) != self._key_of(match.path):
            return None
        lines = program.text.decode().split("\n")
        return "\n".join(lines[(match.line or 1) - 1 : match.last_line])


def _order(match: Match) -> tuple[float, str, int]:
    return -round(match.similarity / _SAME), match.path, match.line or 0


def check_made_by(about: dict[str, Any], embedder: Embedder, place: Place) -> None:
    """Raise ``SearchError`` unless a model is the one that made an index."""
    if about["fingerprint"] != fingerprint(embedder):
        raise SearchError(
            f"{place} was made by another model or with other parsers than are used now"
            f" (its model was {about['model']}); choose that, or remove {place} and index again:"
            f" treecaps index {about['folder']} --out {place}"
        )
