"""What a billion functions cost, from the figures of ``benchmarks/results``, and a simulation.

    python benchmarks/scale.py --sizes 10000 20000 40000 80000 --json

Synthetic vectors lie around random centres, about as near to each other as those of real functions.
For each size, 50 of their like are searched for: by comparing with all, with a graph, and in four
shards whose answers are merged. Times are processor time of one thread, so that other programs
on the machine hardly matter.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from origin import origin
from values import load

from treecaps.models.engine import set_num_threads
from treecaps.search import graph as graphs
from treecaps.search import sqlite

Vectors = NDArray[np.float32]
_BILLION = 1e9
_WIDTH, _QUERIES, _TOP, _SHARDS = 768, 50, 10, 4
_EACH = 20
"""How many vectors lie around a centre."""
_CORES = 2
"""Of the machine on which an index was made from a folder."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 20_000, 40_000, 80_000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    set_num_threads(1)
    result = {"billion": project(), "simulation": [simulate(size) for size in options.sizes]}
    result |= origin()
    print(json.dumps(result, indent=1) if options.json else result)


def project() -> dict[str, float]:
    """Return what a billion functions would take if every part went on as it was measured."""
    made, large = load("index-atlas-poj104"), load("index-large-atlas")
    exact, graph = large["kinds"]["treecaps"], large["kinds"]["graph"]
    vectors = large["vectors"]
    core_seconds = _CORES * made["seconds_to_index"] / made["functions"]
    bytes_each = exact["megabytes"] * 1e6 / vectors
    graph_memory = (graph["memory_mb"] + graph["mapped_mb"]) * 1e6 / vectors
    database = load("postgres")
    found = {
        "core_ms_each": 1000 * core_seconds,
        "core_days": core_seconds * _BILLION / 86_400,
        "file_terabytes": bytes_each * _BILLION / 1e12,
        "file_most_millions": sqlite._MAX_BYTES / bytes_each / 1e6,
        "memory_terabytes": exact["memory_mb"] * 1e6 / vectors * _BILLION / 1e12,
        "graph_memory_terabytes": graph_memory * _BILLION / 1e12,
        "graph_millions_in_64_gb": 64e9 / graph_memory / 1e6,
        "exact_seconds": exact["query_ms"] / 1000 / vectors * _BILLION,
        "graph_core_days": _CORES * graph["graph_seconds"] / vectors * _BILLION / 86_400,
    }
    if database:
        each = 1e6 / database["vectors"]
        found["database_terabytes"] = database["megabytes"] * each * _BILLION / 1e12
    return {name: round(value, 3) for name, value in found.items()}


def make(size: int, seed: int, generator: np.random.Generator | None = None) -> Vectors:
    """Return vectors around centres that depend on the seed."""
    centres = np.random.default_rng(seed).normal(size=(size // _EACH, _WIDTH)).astype(np.float32)
    generator = generator or np.random.default_rng(seed + 1)
    vectors = centres[generator.integers(len(centres), size=size)]
    vectors += generator.normal(0, 0.7, vectors.shape).astype(np.float32)
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def simulate(size: int) -> dict[str, Any]:
    """Return the times and the recall of searches among so many vectors."""
    base = make(size, 0)
    queries = make(size, 0, np.random.default_rng(2))[:_QUERIES]
    exact, exact_ms = timed(lambda query: nearest(base, query), queries)
    parts = np.array_split(np.arange(size), _SHARDS)
    merged, _ = timed(lambda query: merge(base, parts, query), queries)
    begun = time.process_time()
    neighbours = graphs._new(_WIDTH)
    graphs._add(neighbours, np.arange(size, dtype=np.uint64), base, np.arange(size), 1, None)
    built = time.process_time() - begun

    def search(query: Vectors) -> list[int]:
        found = neighbours.search(query, graphs._CANDIDATES * _TOP, threads=1).keys.astype(int)
        rows: list[int] = found[np.argsort(-(base[found] @ query), kind="stable")[:_TOP]].tolist()
        return rows

    approximate, graph_ms = timed(search, queries)
    hits = sum(len(set(a) & set(b)) for a, b in zip(exact, approximate, strict=True))
    return {
        "vectors": size,
        "exact_ms": exact_ms,
        "graph_ms": graph_ms,
        "recall": round(hits / (_TOP * len(queries)), 3),
        "graph_seconds": round(built, 1),
        "graph_bytes_each": round(neighbours.serialized_length / size),
        "shards": _SHARDS,
        "merged_answers_equal": merged == exact,
    }


def nearest(vectors: Vectors, query: Vectors) -> list[int]:
    likeness = vectors @ query
    best = np.argpartition(-likeness, _TOP)[:_TOP]
    rows: list[int] = best[np.argsort(-likeness[best], kind="stable")].tolist()
    return rows


def merge(vectors: Vectors, parts: list[NDArray[np.int64]], query: Vectors) -> list[int]:
    """Search each shard, and return the nearest of what all of them found."""
    found = np.concatenate([part[nearest(vectors[part], query)] for part in parts])
    rows: list[int] = found[np.argsort(-(vectors[found] @ query), kind="stable")[:_TOP]].tolist()
    return rows


def timed(
    search: Callable[[Vectors], list[int]], queries: Vectors
) -> tuple[list[list[int]], float]:
    """Return what is found, and the milliseconds of processor time that each search took."""
    search(queries[0])
    begun = time.process_time()
    found = [search(query) for query in queries]
    return found, round(1000 * (time.process_time() - begun) / len(queries), 2)


if __name__ == "__main__":
    main()
