"""A graph of neighbours, with which a large index is searched without looking at every vector.

It is a second file beside the index, made by usearch, and holds no truth of its own: the index
says which file belongs to it, and what is found is compared exactly with the vectors of the index.
A graph that is missing, damaged or of another state is not used: every vector is looked at then,
which takes longer and finds the same or more.
"""

import mmap
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treecaps.errors import SearchError, describe_os_error, naming_extra
from treecaps.files import atomic_path, check_regular
from treecaps.hashing import digest_fields, digest_file, digest_parts
from treecaps.search.graph_file import REMOVED, Keys, check_graph

if TYPE_CHECKING:
    from usearch.index import Index as Neighbours

FROM = 200_000
"""With more vectors than this, an index gets a graph: comparing with all of them takes long."""
MOST = 1000
"""The most nearest vectors that a graph is asked for."""

_CONNECTIVITY, _EXPANSION_ADD, _EXPANSION_SEARCH = 16, 64, 128
_CANDIDATES = 4
"""How many times as many as wanted a graph is asked for: its vectors have 8 bits a number."""
_ADDED = 1 << 13
"""How many vectors are added together."""
_CHANGED = 0.25
"""The share of vectors that may change without the graph being made anew."""
_WORSE = 0.02
"""How much recall a graph may lose by changes without being made anew."""
_SAMPLED, _NEAREST = 100, 10
_MAX_BYTES = 1 << 36
_BLOCK = 1 << 20
_STRIDE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the keys of one file differ

AnyVectors = NDArray[np.floating[Any]]
"""Of 32 bits a number, or of 16."""
Step = Callable[[float], None]


class GraphError(SearchError):
    """A graph that cannot be used or written; its index can."""


@dataclass(frozen=True)
class GraphRecord:
    """What an index knows of its graph.

    Args:
        state: Of which contents it is.
        digest: Of the whole file.
        usearch: Which version wrote it.
        recall: The share of the ten nearest of sampled vectors that it finds.
        recall_at_first: The same when it was last made anew.
    """

    state: str
    digest: str
    usearch: str
    recall: float
    recall_at_first: float

    @classmethod
    def of_index(cls, about: Mapping[str, Any]) -> "GraphRecord | None":
        """Return what an index says; nothing if it has no graph, or what it says is none."""
        try:
            record = cls(**about["graph"])
        except (KeyError, TypeError):
            return None
        kinds = tuple(map(type, vars(record).values()))
        return record if kinds == (str, str, str, float, float) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def graph_path(index: Path) -> Path:
    """Return where the graph of an index is: beside it, wherever links lead."""
    real = Path(os.path.realpath(index))
    return real.with_name(f"{real.name}.graph")


def state_of(keys: Iterable[str]) -> str:
    """Return what stands for contents with these keys, in whatever order and however often."""
    return digest_fields(*sorted(set(keys)))


def keys_of_rows(number: int, size: int) -> Keys:
    """Return the keys of the vectors of contents that have this number: any others hardly ever."""
    return np.uint64(number) + np.arange(size, dtype=np.uint64) * _STRIDE


def usearch_version() -> str:
    """Return the version of usearch, or raise ``MissingExtraError``."""
    with naming_extra(f"a fast search among more than {FROM:,} vectors"):
        import usearch
    return str(usearch.__version__)


def is_current(index: Path, record: GraphRecord, state: str) -> bool:
    """Whether there is a graph of this state, and whole."""
    if (record.state, record.usearch) != (state, usearch_version()):
        return False
    with suppress(OSError, ValueError):
        return _digest(_map(graph_path(index))) == record.digest
    return False


class Graph:
    """The graph of an index, opened to search. Several threads may do so.

    Args:
        neighbours: The graph of usearch.
        content: The file that it reads from.
        keys: The keys of the vectors in it.
    """

    def __init__(self, neighbours: "Neighbours", content: mmap.mmap, keys: Keys) -> None:
        self._neighbours = neighbours
        self._content = content  # usearch does not keep it
        self._keys = np.sort(keys)
        self._rows = np.empty(0, np.int64)
        self._lock = Lock()

    @classmethod
    def open(cls, index: Path, about: Mapping[str, Any], state: str, width: int) -> "Graph":
        """Open the graph of an index, or raise an error that says why it cannot be used.

        ``set_rows`` comes next, when the index is read.

        Args:
            index: The file of the index.
            about: What the index says of itself.
            state: Of which contents the graph must be.
            width: How many numbers each vector has.
        """
        version = usearch_version()
        record = GraphRecord.of_index(about)
        path = graph_path(index)
        if not record:
            raise _unusable(index, about, "does not exist yet")
        if record.state != state:
            raise _unusable(index, about, "is of an older state")
        if record.usearch != version:
            raise _unusable(index, about, f"was made by another usearch than {version}")
        try:
            content, keys = _check(path, record, width)
            neighbours = _new(width, lookups=False)
            neighbours.view(memoryview(content))
        except OSError as error:
            raise _unusable(index, about, f"cannot be read: {describe_os_error(error)}") from None
        except (ValueError, RuntimeError):
            raise _unusable(index, about, "is damaged") from None
        return cls(neighbours, content, keys)

    def set_rows(self, keys: Keys) -> None:
        """Say which vector of the index has which key; raise ``ValueError`` if they do not fit."""
        self._rows = np.argsort(keys)
        if not np.array_equal(keys[self._rows], self._keys):
            raise ValueError("keys")

    def nearest(self, vector: AnyVectors, count: int) -> NDArray[np.int64]:
        """Return the rows of vectors near to one, more than wanted, in no order."""
        wanted = min(_CANDIDATES * count, len(self._keys))
        with self._lock:  # usearch has one memory for all searches of one thread
            found = self._neighbours.search(vector, wanted, threads=1).keys
        return self._rows[np.searchsorted(self._keys, np.asarray(found, np.uint64))]


def _unusable(index: Path, about: Mapping[str, Any], why: str) -> GraphError:
    return GraphError(
        f"{graph_path(index)} {why}; make it: treecaps index {about['folder']} --out {index}"
    )


def write_graph(
    index: Path,
    record: GraphRecord | None,
    state: str,
    keys: Keys,
    vectors: AnyVectors,
    *,
    threads: int = 0,
    step: Step | None = None,
) -> GraphRecord:
    """Write the graph of an index, and return what the index should know of it.

    A graph that is there is changed if most of it stays as it is.

    Args:
        index: The file of the index. Nobody else may write it meanwhile.
        record: What the index knows of the graph that is there.
        state: Of which contents the new one is.
        keys: The key of each vector.
        vectors: ``[len(keys), E]``.
        threads: How many to use; as many as there are cores by default.
        step: Called with the share done.
    """
    if len(np.unique(keys)) != len(keys) or keys.max() == REMOVED:
        raise GraphError(f"two vectors of {index} have the same key: no graph can be made")
    version = usearch_version()
    old = _load(index, record, vectors.shape[1]) if record and record.usearch == version else None
    if old and record:
        graph, known = old
        gone = known[~np.isin(known, keys)]
        new = np.flatnonzero(~np.isin(keys, known))
        if len(gone) + len(new) <= _CHANGED * len(keys):
            graph.remove(gone, threads=threads)
            _add(graph, keys, vectors, new, threads, step)
            recall = measure_recall(graph, keys, vectors)
            if recall >= record.recall_at_first - _WORSE:
                first = record.recall_at_first
                return GraphRecord(state, _save(index, graph), version, recall, first)
        del graph, old
    graph = _new(vectors.shape[1])
    _add(graph, keys, vectors, np.arange(len(keys)), threads, step)
    recall = measure_recall(graph, keys, vectors)
    return GraphRecord(state, _save(index, graph), version, recall, recall)


def remove_graph(index: Path) -> None:
    """Remove the graph of an index that needs none any more."""
    with suppress(OSError):
        graph_path(index).unlink()


def measure_recall(graph: "Neighbours", keys: Keys, vectors: AnyVectors) -> float:
    """Return the share of the ten nearest of sampled vectors, themselves left out, that are found.

    Of vectors that are equally near, each is as good as the others.
    """
    order = np.argsort(keys)
    chosen = np.random.default_rng(0).permutation(len(keys))[:_SAMPLED]
    queries = vectors[chosen].astype(np.float32)
    count = min(_NEAREST, len(keys) - 1)
    if not count:
        return 1.0
    exact = compare_all(queries, vectors)
    exact[np.arange(len(chosen)), chosen] = -np.inf
    hits = 0
    for query, itself, likeness in zip(queries, chosen, exact, strict=True):
        least = np.partition(likeness, -count)[-count] - 1e-6
        wanted = min(_CANDIDATES * count + 1, len(keys))
        found = graph.search(query, wanted, threads=1).keys
        rows = order[np.searchsorted(keys, np.asarray(found, np.uint64), sorter=order)]
        hits += min(int((likeness[rows[rows != itself]] >= least).sum()), count)
    return round(hits / (count * len(chosen)), 4)


def compare_all(queries: NDArray[np.float32], vectors: AnyVectors) -> NDArray[np.float32]:
    """Return the products of some vectors with all, ``[Q, N]``; those of 16 bits some at a time."""
    likeness = np.empty((len(queries), len(vectors)), np.float32)
    for begin in range(0, len(vectors), _ADDED):
        some = slice(begin, begin + _ADDED)
        likeness[:, some] = queries @ vectors[some].astype(np.float32).T
    return likeness


def _new(width: int, *, lookups: bool = True) -> "Neighbours":
    from usearch.index import Index as Neighbours

    return Neighbours(
        ndim=width,
        metric="ip",
        dtype="i8",
        connectivity=_CONNECTIVITY,
        expansion_add=_EXPANSION_ADD,
        expansion_search=_EXPANSION_SEARCH,
        enable_key_lookups=lookups,
    )


def _add(
    graph: "Neighbours",
    keys: Keys,
    vectors: AnyVectors,
    rows: NDArray[np.int64],
    threads: int,
    step: Step | None,
) -> None:
    for begin in range(0, len(rows), _ADDED):
        if step:
            step(begin / len(rows))
        some = rows[begin : begin + _ADDED]
        graph.add(keys[some], vectors[some].astype(np.float32), threads=threads)


def _load(index: Path, record: GraphRecord, width: int) -> "tuple[Neighbours, Keys] | None":
    """Return the graph that is there, to be changed, and its keys; nothing if it is damaged."""
    try:
        content, keys = _check(graph_path(index), record, width)
        graph = _new(width)
        graph.load(memoryview(content))
    except (OSError, ValueError, RuntimeError):
        return None
    return graph, keys


def _check(path: Path, record: GraphRecord, width: int) -> tuple[mmap.mmap, Keys]:
    """Return a file that usearch can read and the keys in it, or raise ``ValueError``."""
    content = _map(path)
    if _digest(content) != record.digest:
        raise ValueError("digest")
    return content, check_graph(np.frombuffer(content, np.uint8), record.usearch, width)


def _save(index: Path, graph: "Neighbours") -> str:
    """Write the file whole or not at all, and return its digest."""
    path = graph_path(index)
    try:
        with atomic_path(path, alone=True) as building:
            graph.save(building)
            descriptor = os.open(building, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            found = digest_file(building)
    except OSError as error:
        raise GraphError(f"cannot write {path}: {describe_os_error(error)}") from None
    except RuntimeError as error:  # so says usearch of a full disk
        raise GraphError(f"cannot write {path}: {error}") from None
    return found


def _map(path: Path) -> mmap.mmap:
    """Map a file into memory; raise ``OSError`` if it is no file, ``ValueError`` if it is empty."""
    # Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_regular(os.fstat(descriptor), _MAX_BYTES)
        return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)


def _digest(content: mmap.mmap) -> str:
    """Return what ``digest_file`` does, of a file in memory."""
    return digest_parts(content[begin : begin + _BLOCK] for begin in range(0, len(content), _BLOCK))
