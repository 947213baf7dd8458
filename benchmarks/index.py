"""How fast a folder is indexed, and which kind of index should hold its vectors.

    python benchmarks/index.py --data atlas/train.jsonl.gz poj104/train.jsonl.gz --json

Writes the programs of data sets to files of their own and runs ``treecaps index`` on their folder,
then again with nothing changed. The vectors of its functions, cut or filled up to ``--vectors``,
go into every kind of index that is installed; 50 functions beside them are searched for, the kinds
taking turns. If there are too few real functions, more are made: the mean of two, and noise.
Each kind has one thread, but for ``graph``, which is built with all cores. Recall is the
share of the exact ten nearest that are found; another that is as near as the tenth counts too.

    python benchmarks/index.py --data atlas/train.jsonl.gz --vectors 1000000 --kinds treecaps graph

measures with a million vectors what a large index has of its graph. Memory is that of another
process that has opened the index; the files that are mapped into it are counted by themselves.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from folder import write_files
from numpy.typing import NDArray
from origin import origin

from treecaps.inference.embed import Embedder
from treecaps.models.bundled import DEFAULT
from treecaps.models.engine import set_num_threads
from treecaps.search import graph as graphs
from treecaps.search.file_graph import write_graph
from treecaps.search.index import Index
from treecaps.search.sqlite import FileStore, open_to_read, open_to_write
from treecaps.search.store import Content, File, Span

Vectors = NDArray[np.float32]
Search = Callable[[Vectors], Iterable[int]]

_QUERIES, _TOP, _MOVED = 50, 10, 1000
_ROWS = 1 << 14  # that are computed together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path, nargs="+")
    parser.add_argument("--programs", type=int, default=100_000, help="of each data set")
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        for data in options.data:
            (home / "programs" / data.parent.name).mkdir(parents=True)
            write_files(data, options.programs, home / "programs" / data.parent.name)
        indexing, vectors = index_folder(home / "programs", home / "index", options.model)
        base, queries, made = divide(vectors, options.vectors)
        kinds = compare(base, queries, home, options.kinds, options.rounds)
    result = {
        "data": [data.parent.name for data in options.data],
        "model": options.model,
        **indexing,
        "vectors": len(base),
        "made_of_others": made,
        "numbers_each": base.shape[1],
        "kinds": kinds,
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{indexing}")
        for name, figures in kinds.items():
            print(name, figures)


def index_folder(folder: Path, path: Path, model: str) -> tuple[dict[str, Any], Vectors]:
    """Run the command twice, and return its seconds and the vectors."""
    script = "from treecaps.cli.main import run; run()"
    words = ["index", str(folder), "--out", str(path), "--model", model, "--json"]
    seconds, said = [], []
    for _ in range(2):
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
        )
        if done.returncode > 1:  # 1: some programs could not be parsed
            raise SystemExit(done.stderr)
        seconds.append(round(time.perf_counter() - begun, 2))
        said.append(json.loads(done.stdout))
    begun = time.perf_counter()
    index = Index.open(path)
    figures = {
        "files": said[0]["files"],
        "functions": said[0]["vectors"],
        "seconds_to_index": seconds[0],
        "seconds_when_nothing_changed": seconds[1],
        "seconds_to_open": round(time.perf_counter() - begun, 2),
        "megabytes": round(path.stat().st_size / 1e6, 1),
    }
    return figures, index.vectors


def read_any(path: Path) -> Index:
    """Open an index, whichever model made it."""
    with open_to_read(path) as store:
        return Index.read(store, store.files(), Embedder())


_MEASURE = """
import sys, time
from pathlib import Path
from index import graphs, read_any
graphs.FROM = 0
begun = time.perf_counter()
index = read_any(Path(sys.argv[1]))
print(time.perf_counter() - begun)
print(Path("/proc/self/status").read_text())
"""


def memory(path: Path) -> dict[str, Any]:
    """Return how long an index takes to open, and the memory of a process that has opened it."""
    words = [sys.executable, "-c", _MEASURE, str(path)]
    here = Path(__file__).parent
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=here)
    seconds, *lines = done.stdout.splitlines()
    kilobytes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return {
        "seconds_to_open": round(float(seconds), 2),
        "memory_mb": round(int(kilobytes["RssAnon"]) * 1.024e-3),
        "mapped_mb": round(int(kilobytes["RssFile"]) * 1.024e-3),
    }


def divide(vectors: Vectors, wanted: int) -> tuple[Vectors, Vectors, int]:
    """Return vectors for an index, others to search for, and how many of the first were made."""
    generator = np.random.default_rng(0)
    vectors = vectors[generator.permutation(len(vectors))]
    queries, base = vectors[:_QUERIES], vectors[_QUERIES : _QUERIES + wanted]
    made = wanted - len(base)
    if made > 0:
        real, base = base, np.empty((wanted, base.shape[1]), np.float32)
        base[: len(real)] = real
        mixed = generator.integers(len(real), size=(made, 2))
        for begin in range(0, made, _ROWS):
            pairs = real[mixed[begin : begin + _ROWS]].mean(1)
            pairs += generator.normal(0, 0.1 / base.shape[1] ** 0.5, pairs.shape)
            pairs /= np.linalg.norm(pairs, axis=1, keepdims=True)
            place = len(real) + begin
            base[place : place + len(pairs)] = pairs
    return np.ascontiguousarray(base), queries, max(made, 0)


class _Kind:
    """A kind of index. ``search`` returns the numbers of the nearest vectors."""

    package = "numpy"

    def __init__(self, base: Vectors, home: Path) -> None:
        self.home = home
        self.build(base)

    def build(self, base: Vectors) -> None:
        raise NotImplementedError

    def search(self, query: Vectors) -> Iterable[int]:
        raise NotImplementedError

    def measure(self) -> dict[str, Any]:
        """Return more figures."""
        return {}

    def update(self, vectors: Vectors) -> bool:
        """Replace the first vectors, on disk too, and say whether that is possible."""
        return False


class _Treecaps(_Kind):
    """What ``treecaps index`` writes and ``treecaps search`` does."""

    def build(self, base: Vectors) -> None:
        self.facts: dict[str, Any] = {}
        self._write(base, 0)
        self.index = self._open()

    def measure(self) -> dict[str, Any]:
        return self.facts | memory(self.home / "index")

    def _write(self, vectors: Vectors, first: int) -> None:
        span = Span("f", 1, 9)
        about: dict[str, Any] = dict.fromkeys(("treecaps", "model", "fingerprint", "folder"), "")
        about["functions"] = True
        with open_to_write(self.home / "index", about) as store:
            files = store.files()
            for number in range(first, first + len(vectors)):
                files[str(number % 1_000_000)] = File("", str(number))
            store.add(
                Content(str(first + number), "c", [span], vector[None])
                for number, vector in enumerate(vectors)
            )
            store.finish(files, store.about | about)
            self._finish(store, files)

    def _finish(self, store: FileStore, files: dict[str, File]) -> None:
        """Do what is left when the vectors are written."""

    def _open(self) -> Index:
        return read_any(self.home / "index")

    def search(self, query: Vectors) -> Iterable[int]:
        return [int(match.path) for match in self.index.search(query, _TOP)]

    def update(self, vectors: Vectors) -> bool:
        self._write(vectors, 1_000_000)
        return True


class _TreecapsGraph(_Treecaps):
    """The same with the graph that a large index has."""

    package = "usearch"

    def _finish(self, store: FileStore, files: dict[str, File]) -> None:
        begun = time.perf_counter()
        record = write_graph(store, files)
        store.finish(files, store.about | {"graph": record.to_dict()})
        if "graph_seconds" not in self.facts:
            self.facts["graph_seconds"] = round(time.perf_counter() - begun, 2)
            self.facts["recall_told"] = record.recall
            size = graphs.graph_path(store.path).stat().st_size
            self.facts["graph_megabytes"] = round(size / 1e6, 1)


class _Torch16(_Kind):
    """Half of the digits in memory too."""

    package = "torch"

    def build(self, base: Vectors) -> None:
        import torch

        self.vectors = torch.from_numpy(base).half()
        np.save(self.home / "vectors.npy", self.vectors.numpy())

    def search(self, query: Vectors) -> Iterable[int]:
        import torch

        found: list[int] = (self.vectors @ torch.from_numpy(query).half()).topk(_TOP)[1].tolist()
        return found


class _FaissFlat(_Kind):
    """All vectors, with half of the digits."""

    package = "faiss"

    def make(self, size: int) -> Any:
        import faiss

        return faiss.IndexScalarQuantizer(
            size, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )

    def build(self, base: Vectors) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self.index = self.make(base.shape[1])
        self.index.train(base[:1000])
        self.index.add(base)
        faiss.write_index(self.index, str(self.home / "index.faiss"))

    def search(self, query: Vectors) -> Iterable[int]:
        found: list[int] = self.index.search(query[None], _TOP)[1][0].tolist()
        return found


class _FaissGraph(_FaissFlat):
    """A graph of neighbours, from which nothing can be removed."""

    def make(self, size: int) -> Any:
        import faiss

        index: Any = faiss.index_factory(size, "HNSW16,SQfp16", faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = 100, 64
        return index


class _Usearch(_Kind):
    """A graph of neighbours."""

    package = "usearch"

    def build(self, base: Vectors) -> None:
        from usearch.index import Index as Graph

        self.index = Graph(ndim=base.shape[1], metric="ip", dtype="f16", expansion_search=64)
        self.index.add(np.arange(len(base)), base, threads=1)
        self.index.save(str(self.home / "index.usearch"))

    def search(self, query: Vectors) -> Iterable[int]:
        found: list[int] = self.index.search(query, _TOP, threads=1).keys.tolist()
        return found

    def update(self, vectors: Vectors) -> bool:
        self.index.remove(np.arange(len(vectors)), threads=1)
        self.index.add(np.arange(len(vectors)) + 1_000_000, vectors, threads=1)
        self.index.save(str(self.home / "index.usearch"))
        return True


class _Hnswlib(_Kind):
    """A graph of neighbours."""

    package = "hnswlib"

    def build(self, base: Vectors) -> None:
        import hnswlib

        self.index = hnswlib.Index("ip", base.shape[1])
        self.index.init_index(
            len(base) + _MOVED, M=16, ef_construction=100, allow_replace_deleted=True
        )
        self.index.set_num_threads(1)
        self.index.add_items(base)
        self.index.set_ef(64)
        self.index.save_index(str(self.home / "index.hnsw"))

    def search(self, query: Vectors) -> Iterable[int]:
        found: list[int] = self.index.knn_query(query, _TOP)[0][0].tolist()
        return found

    def update(self, vectors: Vectors) -> bool:
        for number in range(len(vectors)):
            self.index.mark_deleted(number)
        self.index.add_items(vectors, np.arange(len(vectors)) + 1_000_000, replace_deleted=True)
        self.index.save_index(str(self.home / "index.hnsw"))
        return True


class _Lance(_Kind):
    """All vectors, in a table of LanceDB."""

    package = "lancedb"

    def build(self, base: Vectors) -> None:
        import lancedb

        self.table = lancedb.connect(self.home).create_table("v", self._rows(base, 0))

    def _rows(self, vectors: Vectors, first: int) -> Any:
        import pyarrow as pa

        flat = pa.array(vectors.astype(np.float16).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        return pa.table({"id": np.arange(len(vectors)) + first, "vector": column})

    def search(self, query: Vectors) -> Iterable[int]:
        found: Any = self.table.search(query.astype(np.float16))
        numbers: list[int] = found.metric("dot").limit(_TOP).to_arrow().column("id").to_pylist()
        return numbers

    def update(self, vectors: Vectors) -> bool:
        self.table.delete(f"id < {len(vectors)}")
        self.table.add(self._rows(vectors, 1_000_000))
        return True


KINDS: dict[str, type[_Kind]] = {
    "treecaps": _Treecaps,
    "graph": _TreecapsGraph,
    "torch float16": _Torch16,
    "faiss flat": _FaissFlat,
    "faiss hnsw": _FaissGraph,
    "usearch": _Usearch,
    "hnswlib": _Hnswlib,
    "lancedb": _Lance,
}


def compare(
    base: Vectors, queries: Vectors, home: Path, names: list[str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Return the figures of each kind that is installed."""
    import torch

    torch.set_num_threads(1)
    set_num_threads(1)
    graphs.FROM = 0
    likeness = np.concatenate(
        [
            queries.astype(np.float64) @ base[begin : begin + _ROWS].astype(np.float64).T
            for begin in range(0, len(base), _ROWS)
        ],
        axis=1,
    )
    # Vectors on disk are rounded to 16 bits, and products of equals with them.
    least = np.partition(likeness, -_TOP)[:, -_TOP] - 1e-4
    kinds: dict[str, _Kind] = {}
    figures: dict[str, dict[str, Any]] = {}
    for name in names:
        if not find_spec(KINDS[name].package):
            print(f"{name} is not installed: left out", file=sys.stderr)
            continue
        place = home / name.replace(" ", "-")
        place.mkdir()
        begun = time.perf_counter()
        kinds[name] = KINDS[name](base, place)
        seconds = round(time.perf_counter() - begun, 2)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        figures[name] = {"build_seconds": seconds, "megabytes": round(size / 1e6, 1)}
        figures[name] |= kinds[name].measure()
        print(name, figures[name], file=sys.stderr, flush=True)
    times: dict[str, list[float]] = {name: [] for name in kinds}
    hits = dict.fromkeys(kinds, 0)
    for turn in range(rounds):
        for name, kind in kinds.items():
            for number, query in enumerate(queries):
                begun = time.perf_counter()
                found = list(kind.search(query))
                times[name].append(1000 * (time.perf_counter() - begun))
                near = likeness[number, found[:_TOP]] >= least[number]
                hits[name] += int(near.sum()) if not turn else 0
    for name, kind in kinds.items():
        low, *_, high = quantiles(times[name], n=20)
        begun = time.perf_counter()
        possible = kind.update(base[-_MOVED:])
        figures[name] |= {
            "query_ms": round(median(times[name]), 2),
            "query_ms_5_to_95": [round(low, 2), round(high, 2)],
            "recall_at_10": round(hits[name] / (_TOP * len(queries)), 4),
            "replace_1000_seconds": round(time.perf_counter() - begun, 2) if possible else None,
        }
    return figures


if __name__ == "__main__":
    main()
