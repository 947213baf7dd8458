"""``Index``: the vectors of an index file, in memory, and what is like a vector."""

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.inference.embed import Embedder
from treecaps.search import graph as graphs
from treecaps.search.file_graph import open_graph, read_rows
from treecaps.search.fingerprint import load_embedder
from treecaps.search.graph import AnyVectors, Graph
from treecaps.search.matches import AnyIndex, Match, Row, Vectors, check_made_by
from treecaps.search.sqlite import FileStore, open_to_read
from treecaps.search.store import File

Step = Callable[[float], None]
"""Called now and then with the share done, from 0 to 1."""

_QUERIES = 64
"""How many queries are compared at a time: each has a number for every vector."""


class Index(AnyIndex):
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
        super().__init__(about, embedder, note)
        self.checksum: str = about["checksum"]
        self.rows = rows
        self.vectors = vectors
        self.graph = graph
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
        store: FileStore,
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
        graph, note = open_graph(store, keys, shape)
        contents = store.contents(shape)
        rows, vectors, numbers = read_rows(
            contents, paths, shape, half=graph is not None, step=step
        )
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

    def __len__(self) -> int:
        return self._size

    @property
    def files(self) -> int:
        """How many files it knows."""
        return len(self._keys)

    @property
    def width(self) -> int:
        """How many numbers each vector has; 0 if there are none."""
        return self.vectors.shape[1] if self.rows else 0

    def refresh(self) -> None:
        """Do nothing: what is in memory stays what it was."""

    def _search(self, vectors: Vectors, top: int) -> list[list[Match]]:
        if not self.graph or top > graphs.MOST:
            return self.search_exactly(vectors, top)
        return [self._search_graph(self.graph, vector, top) for vector in vectors]

    def _near(self, vector: Vectors, count: int) -> tuple[list[Row], Vectors]:
        if self.graph and count <= graphs.MOST:
            numbers = self.graph.nearest(vector, count)
        else:
            numbers = np.argsort(-self._compare(vector[None])[0], kind="stable")[:count]
        return [self.rows[number] for number in numbers.tolist()], self._take(numbers)

    def _take(self, numbers: NDArray[np.int64]) -> Vectors:
        """Return some of the vectors, with 32 bits."""
        return self.vectors[numbers].astype(np.float32, copy=False)

    def search_exactly(self, vectors: Vectors, top: int) -> list[list[Match]]:
        """Return what ``search_many`` does, by comparing with every vector of the index."""
        return [
            self._best(self.rows, likeness, top)
            for begin in range(0, len(vectors), _QUERIES)
            for likeness in self._compare(vectors[begin : begin + _QUERIES])
        ]

    def _search_graph(self, graph: Graph, vector: Vectors, top: int) -> list[Match]:
        numbers = graph.nearest(vector, top)
        if len(numbers) < min(top, len(self.rows)):  # parts of a graph may be out of reach
            return self.search_exactly(vector[None], top)[0]
        rows = [self.rows[number] for number in numbers.tolist()]
        return self._best(rows, self._take(numbers) @ vector, top)

    def _compare(self, vectors: Vectors) -> Vectors:
        if self.vectors.dtype != np.float32:
            return graphs.compare_all(vectors, self.vectors)
        # One vector at a time reads the matrix faster than BLAS does for a matrix of one row.
        likeness = (
            (self.vectors @ vectors[0])[None] if len(vectors) == 1 else vectors @ self.vectors.T
        )
        return likeness.astype(np.float32, copy=False)

    def matches(self, number: int, similarity: float) -> list[Match]:
        """Return one of the rows as matches, one for each file that has it."""
        return self.matches_of(self.rows[number], similarity)

    def _key_of(self, path: str) -> str | None:
        return self._keys.get(path)
