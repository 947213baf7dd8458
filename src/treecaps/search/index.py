"""``Index``: the vectors of the functions or files of a folder, and what is like a vector."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.errors import MissingExtraError, ProgramError, SearchError, UsageError
from treecaps.hashing import hash_64
from treecaps.inference.embed import Embedder
from treecaps.search import graph as graphs
from treecaps.search import smoothing
from treecaps.search.fingerprint import fingerprint, load_embedder
from treecaps.search.graph import AnyVectors, Graph, GraphError, GraphRecord
from treecaps.search.graph_file import Keys
from treecaps.search.store import Content, File, Span, Store, content_key, open_to_read
from treecaps.syntax.program import Program
from treecaps.text import html_table, short_repr

Vectors = NDArray[np.float32]
Step = Callable[[float], None]
"""Called now and then with the share done, from 0 to 1."""

_QUERIES = 64
"""How many queries are compared at a time: each has a number for every vector."""


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


class Index:
    """The vectors of a folder, in memory, as they were when the index was opened.

    Args:
        about: What made it.
        rows: What each vector is of.
        vectors: ``[len(rows), E]``; of 16 bits if there is a graph, because there are many.
        keys: The keys of the contents of files, by path.
        embedder: What made the vectors, and makes those of queries.
        graph: What finds near vectors in a large index; without it, each is looked at.
        note: Why a large index has none, in words for people.
    """

    def __init__(
        self,
        about: dict[str, Any],
        rows: list[Row],
        vectors: AnyVectors,
        keys: dict[str, str],
        embedder: Embedder,
        graph: Graph | None = None,
        note: str | None = None,
    ) -> None:
        self.model: str = about["model"]
        self.folder = Path(about["folder"])
        self.functions: bool = about["functions"]
        self.checksum: str = about["checksum"]
        self.rows = rows
        self.vectors = vectors
        self.embedder = embedder
        self.graph = graph
        self.note = note
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
        graph, note = _open_graph(store, keys, shape)
        contents = store.contents(shape)
        rows, vectors, numbers = _read(contents, paths, shape, half=graph is not None, step=step)
        try:
            if graph:
                graph.set_rows(numbers)
        except ValueError:
            graph, note = None, f"{graphs.graph_path(store.path)} is the graph of another index"
            vectors = vectors.astype(np.float32)
        return cls(store.about, rows, vectors, keys, embedder, graph, note)

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
        if not self.rows:
            return [[] for _ in vectors]
        if vectors.ndim != 2 or vectors.shape[1] != self.vectors.shape[1]:
            raise UsageError(
                f"vectors of this index have {self.vectors.shape[1]} numbers each,"
                f" not {'x'.join(map(str, vectors.shape[1:]))}"
            )
        if smooth:
            return [self._search_smoothly(vector, top) for vector in vectors]
        if self.graph and top <= graphs.MOST:
            return [self._search_graph(self.graph, vector, top) for vector in vectors]
        return self.search_exactly(vectors, top)

    def _search_smoothly(self, vector: Vectors, top: int) -> list[Match]:
        if self.embedder.probability(1.0) is None:
            raise UsageError(
                f"only a model that was trained for similarity can smooth, not {self.model}"
            )
        count = max(top, smoothing.CANDIDATES)
        if self.graph and count <= graphs.MOST:
            numbers = self.graph.nearest(vector, count)
        else:
            numbers = np.argsort(-self._compare(vector[None])[0], kind="stable")[:count]
        likeness = self._take(numbers) @ vector
        nearest = np.argsort(-likeness, kind="stable")[:count]
        numbers, likeness = numbers[nearest], likeness[nearest]
        candidates = self._take(numbers[: smoothing.CANDIDATES])
        ranked = smoothing.rank(vector, candidates, self.embedder.model.calibration.same)
        # Each is compared with each, so what is farther away keeps its place.
        order = np.concatenate([ranked, np.arange(len(ranked), len(numbers))])[:top]
        return self._every_match(numbers[order], likeness[order])[:top]

    def _take(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return some of the vectors, with 32 bits."""
        return self.vectors[numbers].astype(np.float32, copy=False)

    def _every_match(self, numbers: NDArray[np.int64], likeness: Vectors) -> list[Match]:
        """Return the matches of rows, in their order."""
        return [
            match
            for number, value in zip(numbers.tolist(), likeness.tolist(), strict=True)
            for match in self.matches(number, value)
        ]

    def search_exactly(self, vectors: Vectors, top: int) -> list[list[Match]]:
        """Return what ``search_many`` does, by comparing with every vector of the index."""
        everything = np.arange(len(self.rows))
        return [
            self._best(everything, likeness, top)
            for begin in range(0, len(vectors), _QUERIES)
            for likeness in self._compare(vectors[begin : begin + _QUERIES])
        ]

    def _search_graph(self, graph: Graph, vector: Vectors, top: int) -> list[Match]:
        numbers = graph.nearest(vector, top)
        if len(numbers) < min(top, len(self.rows)):  # parts of a graph may be out of reach
            return self.search_exactly(vector[None], top)[0]
        return self._best(numbers, self._take(numbers) @ vector, top)

    def _compare(self, vectors: Vectors) -> Vectors:
        if self.vectors.dtype != np.float32:
            return graphs.compare_all(vectors, self.vectors)
        # One vector at a time reads the matrix faster than BLAS does for a matrix of one row.
        likeness = (
            (self.vectors @ vectors[0])[None] if len(vectors) == 1 else vectors @ self.vectors.T
        )
        return likeness.astype(np.float32, copy=False)

    def _best(self, numbers: NDArray[np.int64], likeness: Vectors, top: int) -> list[Match]:
        if top < len(likeness):
            best = np.argpartition(-likeness, top - 1)[:top]
            numbers, likeness = numbers[best], likeness[best]
        return sorted(self._every_match(numbers, likeness), key=_order)[:top]

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


def _open_graph(
    store: Store, keys: dict[str, str], shape: tuple[int, int]
) -> tuple[Graph | None, str | None]:
    """Return the graph of a large index, or why it has none."""
    rows, width = shape
    if rows <= graphs.FROM:
        return None, None
    try:
        state = graphs.state_of(keys.values())
        return Graph.open(store.path, store.about, state, width), None
    except (MissingExtraError, GraphError) as error:
        return None, str(error)


def _read(
    contents: Iterable[Content],
    paths: Mapping[str, list[str]],
    shape: tuple[int, int],
    *,
    half: bool,
    step: Step | None,
) -> tuple[list[Row], AnyVectors, Keys]:
    """Read what each vector is of, the vectors, and their keys in a graph.

    Args:
        contents: Those that files have.
        paths: These files, by key.
        shape: How many vectors there are, and how many numbers each has.
        half: Whether to keep vectors of 16 bits.
        step: Called with the share that is read.
    """
    vectors: AnyVectors = np.zeros(shape, np.float16 if half else np.float32)
    numbers = np.zeros(len(vectors), np.uint64)
    rows: list[Row] = []
    for content in contents:
        if step:
            step(len(rows) / max(len(vectors), 1))
        place = slice(len(rows), len(rows) + len(content.spans))
        vectors[place] = content.vectors
        number = hash_64(content.key.encode("utf-8", "surrogatepass") + content.vectors.tobytes())
        numbers[place] = graphs.keys_of_rows(number, len(content.spans))
        same = paths[content.key]
        rows.extend(Row(same, content.language, span) for span in content.spans)
    return rows, vectors, numbers


def write_graph(
    store: Store,
    files: Mapping[str, File],
    *,
    threads: int = 0,
    step: Step | None = None,
) -> GraphRecord:
    """Write the graph of an index whose files are these, and return what is to be known of it."""
    shape = store.shape()
    _, vectors, keys = _read(store.contents(shape), defaultdict(list), shape, half=True, step=None)
    state = graphs.state_of(file.key for file in files.values())
    record = GraphRecord.of_index(store.about)
    return graphs.write_graph(store.path, record, state, keys, vectors, threads=threads, step=step)


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
