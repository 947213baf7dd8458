"""How fast an index in PostgreSQL is, and whether it survives a kill.

    python benchmarks/postgres.py --data atlas/train.jsonl.gz --vectors 100000 --json

Starts a server of its own with default settings: what it has committed is on the disk. Vectors of
functions of the data are written into it, and into an index file; if there are too few, more are
made as ``benchmarks/index.py`` does. Then ``--clients`` search for other functions, each over a
connection of its own, by comparing with all, and with ``--graph`` at last with a graph. Answers are
compared with those of the file.

Then an update of a tenth of all files is begun, and the server is killed (``kill -9``) when half
of the new contents are committed. Started again, the index must be as it was, and the same update
must go on from there. The second time it is killed in the transaction that names the new files.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

import numpy as np
from folder import write_files
from index import divide, index_folder, read_any
from numpy.typing import NDArray
from origin import origin

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.postgres import Postgres, running

from treecaps.errors import SearchError
from treecaps.inference.embed import Embedder
from treecaps.models.engine import set_num_threads
from treecaps.search import AnyIndex, graph, open_index
from treecaps.search.fingerprint import fingerprint, model_name
from treecaps.search.opening import open_to_write
from treecaps.search.place import Place, to_place
from treecaps.search.postgres import DatabaseStore
from treecaps.search.store import Content, File, Span

_TOP, _SEARCHES = 10, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--model", default="similar")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--graph", action="store_true", help="at last, search with a graph too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    set_num_threads(1)
    embedder = Embedder(options.model)
    with tempfile.TemporaryDirectory() as temporary, running() as server:
        home = Path(temporary)
        (home / "programs").mkdir()
        write_files(options.data, options.programs, home / "programs")
        indexing, vectors = index_folder(home / "programs", home / "real", options.model)
        base, queries, made = divide(vectors, options.vectors)
        address = server.address(server.create())
        about = {
            "treecaps": "",
            "model": model_name(embedder.model),
            "fingerprint": fingerprint(embedder),
            "functions": True,
            "folder": str(home / "made"),
        }
        result: dict[str, Any] = {"data": options.data.parent.name, "model": options.model}
        result |= {"functions": indexing["functions"], "vectors": len(base)}
        result |= {"made_of_others": made, "numbers_each": base.shape[1]}
        result["write"] = {
            name: write(to_place(place), about, base)
            for name, place in (("file", home / "index"), ("database", address))
        }
        result["megabytes"] = megabytes(server, address)
        file, index = read_any(home / "index"), open_index(address, embedder)
        result["exact"] = search(index, address, embedder, queries, options.clients)
        result["same_answers"] = same(file, index, queries)
        result["kills"] = kill(server, address, about, base, file, queries, embedder)
        if options.graph:
            graph.FROM = 0
            begun = time.perf_counter()
            with open_to_write(to_place(address), about) as store:
                recall = store.update_graph({}, 0, None).recall
            result["graph"] = {
                "seconds": round(time.perf_counter() - begun, 1),
                "recall": recall,
                **search(
                    open_index(address, embedder), address, embedder, queries, options.clients
                ),
            }
            result["with_graph_megabytes"] = megabytes(server, address)
    result |= {"machine": "two cores, shared with other programs", **origin()}
    print(json.dumps(result, indent=1) if options.json else result)


def files_of(size: int, renewed: int = 0) -> dict[str, File]:
    """Return files with one function each, the first of which have new contents."""
    numbers = range(size)
    return {f"{one}": File("", f"new {one}" if one < renewed else f"{one}") for one in numbers}


def contents_of(
    files: dict[str, File], vectors: NDArray[np.float32], known: set[str]
) -> Iterator[Content]:
    span = Span("f", 1, 9)
    for (_, file), vector in zip(files.items(), vectors, strict=True):
        if file.key not in known:
            yield Content(file.key, "c", [span], vector[None])


def write(place: Place, about: dict[str, Any], vectors: NDArray[np.float32]) -> dict[str, float]:
    begun = time.perf_counter()
    with open_to_write(place, about) as store:
        files = files_of(len(vectors))
        store.add(contents_of(files, vectors, store.keys()))
        store.finish(files, store.about | about)
    seconds = time.perf_counter() - begun
    return {"seconds": round(seconds, 1), "per_second": round(len(vectors) / seconds)}


def megabytes(server: Postgres, address: str) -> float:
    with server.connect(address.rpartition("/")[2]) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return round(int(str(row[0])) / 1e6, 1)


def search(
    index: AnyIndex, address: str, embedder: Embedder, queries: NDArray[np.float32], clients: int
) -> dict[str, Any]:
    """Return the times of one client, and of several at once."""
    index.search(queries[0], _TOP)
    alone = [timed(index, query) for query in queries]
    opened = [open_index(address, embedder) for _ in range(clients)]

    def ask(client: int) -> list[float]:
        chosen = np.random.default_rng(client).integers(len(queries), size=_SEARCHES)
        return [timed(opened[client], queries[one]) for one in chosen]

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        times = [one for some in pool.map(ask, range(clients)) for one in some]
    seconds = time.perf_counter() - begun
    return {
        "one_client_ms": round(1000 * median(alone), 1),
        "clients": clients,
        "median_ms": round(1000 * median(times), 1),
        "p95_ms": round(1000 * quantiles(times, n=20)[-1], 1),
        "searches_per_second": round(len(times) / seconds, 1),
    }


def timed(index: AnyIndex, query: NDArray[np.float32]) -> float:
    begun = time.perf_counter()
    index.search(query, _TOP)
    return time.perf_counter() - begun


def answers(index: AnyIndex, queries: NDArray[np.float32]) -> list[list[tuple[str, float]]]:
    return [
        [(match.path, match.similarity) for match in some]
        for some in index.search_exactly(queries, _TOP)
    ]


def same(file: AnyIndex, index: AnyIndex, queries: NDArray[np.float32]) -> bool:
    """Whether two find the same, but for the last digits of sums in another order."""
    return all(
        one == other and abs(likeness - again) < 1e-5
        for some, others in zip(answers(file, queries), answers(index, queries), strict=True)
        for (one, likeness), (other, again) in zip(some, others, strict=True)
    )


@contextmanager
def killing(server: Postgres, when: str, after: int) -> Iterator[None]:
    """Kill the server when so many contents are committed, or as old ones are to be forgotten."""
    insert, forget = DatabaseStore._insert, DatabaseStore._forget_unused
    done = 0

    def insert_until(store: DatabaseStore, contents: list[Content]) -> None:
        nonlocal done
        if when == "contents" and done >= after:
            server.kill()
        insert(store, contents)
        done += len(contents)

    def forget_never(store: DatabaseStore) -> None:
        if when == "files":
            server.kill()
        forget(store)

    with (
        patch.object(DatabaseStore, "_insert", insert_until),
        patch.object(DatabaseStore, "_forget_unused", forget_never),
    ):
        yield


def kill(
    server: Postgres,
    address: str,
    about: dict[str, Any],
    base: NDArray[np.float32],
    file: AnyIndex,
    queries: NDArray[np.float32],
    embedder: Embedder,
) -> list[dict[str, Any]]:
    """Kill the server in an update, twice; say what was there afterwards."""
    renewed = len(base) // 10
    files = files_of(len(base), renewed)
    # What changes gets the vectors of others, so that answers would differ.
    vectors = np.concatenate([base[renewed : 2 * renewed], base[renewed:]])
    place, found = to_place(address), []
    for when in ("contents", "files"):
        said = ""
        with killing(server, when, renewed // 2):
            try:
                with open_to_write(place, about) as store:
                    store.add(contents_of(files, vectors, store.keys()))
                    store.finish(files, store.about | about)
            except SearchError as error:
                said = str(error).replace(address.rpartition("@")[2], "HOST/NAME")
        begun = time.perf_counter()
        server.start()
        started = time.perf_counter() - begun
        index = open_index(address, embedder)
        with open_to_write(place, about) as store:
            kept = len(store.keys()) - len(base)
            old_files = store.files() == files_of(len(base))
        found.append(
            {
                "when": when,
                "said": said,
                "seconds_to_start": round(started, 1),
                "contents_kept": kept,
                "files_as_before": old_files,
                "answers_as_before": same(file, index, queries),
                "vectors": len(index),
            }
        )
    with open_to_write(place, about) as store:
        store.add(contents_of(files, vectors, store.keys()))
        store.finish(files, store.about | about)
        done = store.files() == files and len(store.keys()) == len(base)
    expected = sorted((vectors[:] @ queries[0]).tolist(), reverse=True)[:_TOP]
    now = [
        match.similarity
        for match in open_index(address, embedder).search_exactly(queries[:1], _TOP)[0]
    ]
    found.append(
        {
            "when": "not",
            "complete": done,
            "answers_of_the_new": bool(np.allclose(now, expected, atol=1e-3)),
        }
    )
    return found


if __name__ == "__main__":
    main()
