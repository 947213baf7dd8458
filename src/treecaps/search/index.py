"""``Index``: the vectors of the functions or files of a folder, and what is like a vector."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.errors import ProgramError, SearchError, UsageError
from treecaps.inference.embed import Embedder
from treecaps.search.fingerprint import fingerprint, load_embedder
from treecaps.search.store import File, Span, Store, content_key, open_to_read
from treecaps.syntax.program import Program
from treecaps.text import short_repr

Vectors = NDArray[np.float32]
Step = Callable[[float], None]
"""Called now and then with the share done, from 0 to 1."""

_QUERIES = 64
"""How many queries are compared at a time: each has a number for every vector."""


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


class Index:
    """The vectors of a folder, in memory, as they were when the index was opened.

    Args:
        about: What made it.
        rows: What each vector is of.
        vectors: ``[len(rows), E]``.
        keys: The keys of the contents of files, by path.
        embedder: What made the vectors, and makes those of queries.
    """

    def __init__(
        self,
        about: dict[str, Any],
        rows: list[Row],
        vectors: Vectors,
        keys: dict[str, str],
        embedder: Embedder,
    ) -> None:
        self.model: str = about["model"]
        self.folder = Path(about["folder"])
        self.functions: bool = about["functions"]
        self.checksum: str = about["checksum"]
        self.rows = rows
        self.vectors = vectors
        self.embedder = embedder
        self._keys = keys

    @classmethod
    def open(
        cls, path: Path, embedder: Embedder | None = None, *, step: Step | None = None
    ) -> "Index":
        """Read an index and check all of it, or raise ``SearchError``.

        Args:
            path: What ``treecaps index`` wrote.
            embedder: The model that made it, if it is loaded already.
            step: Called with the share that is read.
        """
        path = Path(path)
        with open_to_read(path) as store:
            files = store.files()
            embedder = embedder or load_embedder(store.about["model"], path)
            check_made_by(store.about, embedder, path)
            return cls.read(store, files, embedder, step)

    @classmethod
    def read(
        cls,
        store: Store,
        files: dict[str, File],
        embedder: Embedder,
        step: Step | None = None,
    ) -> "Index":
        """Read what a store has of these files, whoever made it."""
        keys = {path: file.key for path, file in files.items()}
        paths = defaultdict(list)
        for path, key in keys.items():
            paths[key].append(path)
        shape = store.shape()
        vectors = np.zeros(shape, np.float32)
        rows: list[Row] = []
        for content in store.contents(shape):
            if step:
                step(len(rows) / max(len(vectors), 1))
            vectors[len(rows) : len(rows) + len(content.spans)] = content.vectors
            same = paths[content.key]
            rows.extend(Row(same, content.language, span) for span in content.spans)
        return cls(store.about, rows, vectors, keys, embedder)

    @cached_property
    def _size(self) -> int:
        return sum(len(row.paths) for row in self.rows)

    def __repr__(self) -> str:
        functions = {"functions": len(self)} if self.functions else {}
        facts = {"model": self.model, "files": self.files}
        return short_repr(self, str(self.folder), **facts, **functions)

    def __len__(self) -> int:
        return self._size

    @property
    def files(self) -> int:
        """How many files it knows."""
        return len(self._keys)

    def search(self, vector: Vectors, top: int = 10) -> list[Match]:
        """Return what is most like a vector, ``[E]``, best first."""
        return self.search_many(np.asarray(vector)[None], top)[0]

    def search_many(self, vectors: Vectors, top: int = 10) -> list[list[Match]]:
        """Return what is most like each of some vectors, ``[Q, E]``, best first."""
        if top < 1:
            raise UsageError(f"cannot find {top} matches; ask for one or more")
        vectors = np.asarray(vectors, np.float32)
        if not self.rows:
            return [[] for _ in vectors]
        if vectors.ndim != 2 or vectors.shape[1] != self.vectors.shape[1]:
            raise UsageError(
                f"vectors of this index have {self.vectors.shape[1]} numbers each,"
                f" not {'x'.join(map(str, vectors.shape[1:]))}"
            )
        return [
            self._best(likeness, top)
            for begin in range(0, len(vectors), _QUERIES)
            for likeness in self._compare(vectors[begin : begin + _QUERIES])
        ]

    def _compare(self, vectors: Vectors) -> Vectors:
        # One vector at a time reads the matrix faster than BLAS does for a matrix of one row.
        likeness: Vectors = (
            (self.vectors @ vectors[0])[None] if len(vectors) == 1 else vectors @ self.vectors.T
        )
        return likeness

    def _best(self, likeness: Vectors, top: int) -> list[Match]:
        numbers = np.arange(len(likeness))
        if top < len(likeness):
            numbers = np.argpartition(-likeness, top - 1)[:top]
        found = [
            match
            for number in numbers.tolist()
            for match in self.matches(number, float(likeness[number]))
        ]
        return sorted(found, key=_order)[:top]

    def matches(self, number: int, similarity: float) -> list[Match]:
        """Return one of the rows as matches, one for each file that has it."""
        row = self.rows[number]
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
        if content_key(program.text, program.language) != self._keys.get(match.path):
            return None
        lines = program.text.decode().split("\n")
        return "\n".join(lines[(match.line or 1) - 1 : match.last_line])


def _order(match: Match) -> tuple[float, str, int]:
    return -match.similarity, match.path, match.line or 0


def check_made_by(about: dict[str, Any], embedder: Embedder, path: Path) -> None:
    """Raise ``SearchError`` unless a model is the one that made an index."""
    if about["fingerprint"] != fingerprint(embedder):
        raise SearchError(
            f"{path} was made by another model or with other parsers than are used now"
            f" (its model was {about['model']}); choose that, or remove {path} and index again:"
            f" treecaps index {about['folder']} --out {path}"
        )
