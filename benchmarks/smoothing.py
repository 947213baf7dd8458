"""How much smoothing by neighbours helps a search, by how many programs of a kind there are.

    python benchmarks/smoothing.py --data problems/val.jsonl.gz --json

Embeds programs as they are and blind. Each is searched for among the others, as ``treecaps search``
does and with ``--smooth``: all of them, and collections in which each problem has only a few
solutions, drawn at random. The metric is MAP@R, with the largest that a search for 200 can have.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from origin import origin

from treecaps.data.corpus import Corpus
from treecaps.inference.embed import Embedder
from treecaps.models.bundled import SIMILAR
from treecaps.models.engine import set_num_threads
from treecaps.search.smoothing import CANDIDATES, rank

Longs = NDArray[np.int64]
_BATCH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--model", default=SIMILAR)
    parser.add_argument("--each", type=int, nargs="+", default=[2, 4, 8], metavar="PROGRAMS")
    parser.add_argument("--queries", type=int, default=2000, help="of each collection, at most")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    set_num_threads(1)
    embedder = Embedder(options.model)
    rows: dict[str, dict[str, Any]] = {}
    for view, blind in (("as is", False), ("blind", True)):
        corpus = Corpus.build(options.data, blind=blind)
        vectors = embed(embedder, corpus)
        _, label = np.unique([str(one) for one in corpus.labels], return_inverse=True)
        for title, chosen in collections(label, options.each):
            found = compare(embedder, vectors[chosen], label[chosen], options.queries)
            row = rows.setdefault(title, {"programs": len(chosen)})
            row |= {f"{kind}, {view}": value for kind, value in found.items()}
    result = {"data": options.data.parent.name, "model": options.model, "rows": rows, **origin()}
    print(json.dumps(result, indent=1) if options.json else rows)


def embed(embedder: Embedder, corpus: Corpus) -> NDArray[np.float32]:
    parts = [
        range(begin, min(begin + _BATCH, len(corpus))) for begin in range(0, len(corpus), _BATCH)
    ]
    return np.concatenate([embedder.embed_trees([corpus[row] for row in part]) for part in parts])


def collections(label: Longs, each: list[int]) -> list[tuple[str, Longs]]:
    """Return all programs, and collections with so many of each problem."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(label))
    found = [("all", np.arange(len(label)))]
    for size in each:
        chosen = [order[label[order] == one][:size] for one in range(int(label.max()) + 1)]
        found.append((f"{size} each", np.concatenate(chosen)))
    return found


def compare(
    embedder: Embedder, vectors: NDArray[np.float32], label: Longs, queries: int
) -> dict[str, float]:
    """Return MAP@R in per cent of a plain search and of a smooth one."""
    others = np.bincount(label)[label] - 1
    asked = np.random.default_rng(0).permutation(np.flatnonzero(others > 0))[:queries]
    plain, smooth = [], []
    for query in asked.tolist():
        similarity = vectors @ vectors[query]
        similarity[query] = -np.inf
        nearest = np.argsort(-similarity, kind="stable")[: min(CANDIDATES, len(label) - 1)]
        right = label[nearest] == label[query]
        order = rank(vectors[query], vectors[nearest], embedder.model.calibration.same)
        plain.append(average_precision(right, int(others[query])))
        smooth.append(average_precision(right[order], int(others[query])))
    return {
        "plain": round(100 * float(np.mean(plain)), 1),
        "smooth": round(100 * float(np.mean(smooth)), 1),
    }


def average_precision(right: NDArray[np.bool_], size: int) -> float:
    """Return the mean of the precision at each right one of the first R, of R that there are."""
    first = right[:size]
    precision = first.cumsum() / np.arange(1, len(first) + 1)
    return float((precision * first).sum() / size)


if __name__ == "__main__":
    main()
