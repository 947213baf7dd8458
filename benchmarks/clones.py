"""How often functions that are said to be alike do the same.

    python benchmarks/clones.py --data atlas/val.jsonl.gz --json

Writes programs to files, indexes their functions and counts the pairs, of two files, that the model
says solve the same problem with so much probability: how many there are, and in which share of them
both functions have the same name but for underscores and capitals, or both programs one label; the
same for pairs across languages. Programs that are near copies of each other count as well.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from folder import write_files
from numpy.typing import NDArray
from origin import origin

from treecaps.models.bundled import SIMILAR
from treecaps.search.build import update_index
from treecaps.search.clones import MIN_LINES
from treecaps.search.index import Index
from treecaps.search.matches import Match

PROBABILITIES = (0.5, 0.7, 0.8, 0.9, 0.95)
BLOCK = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--model", default=SIMILAR)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder, path = Path(temporary) / "programs", Path(temporary) / "index"
        folder.mkdir()
        files = write_files(options.data, 1_000_000, folder)
        labels = {str(file.relative_to(folder)): label for file, label in files.items()}
        update_index(folder, path, model=options.model)
        index = Index.open(path)
    least = list(map(index.embedder.model.calibration.similarity, PROBABILITIES))
    functions, likeness, pairs = alike_pairs(index, min(least))
    same = np.array([judge(functions[one], functions[two], labels) for one, two in pairs.tolist()])
    rows = [
        {"probability": one, "similarity": round(value, 4), **count(same[likeness >= value])}
        for one, value in zip(PROBABILITIES, least, strict=True)
    ]
    result = {
        "data": options.data.parent.name,
        "model": options.model,
        "functions": len(functions),
        "thresholds": rows,
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for row in rows:
        print(row)


def alike_pairs(
    index: Index, least: float
) -> tuple[list[Match], NDArray[np.float32], NDArray[np.int64]]:
    """Return the functions of an index that are not too short, and the pairs that are alike."""
    numbers = [
        number
        for number, row in enumerate(index.rows)
        if row.span.last_line - row.span.line + 1 >= MIN_LINES
    ]
    functions = [index.matches(number, 1.0)[0] for number in numbers]
    vectors = index.vectors[numbers].astype(np.float32, copy=False)

    def blocks() -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        for begin in range(0, len(vectors), BLOCK):
            found = vectors[begin : begin + BLOCK] @ vectors.T
            later = np.arange(len(vectors)) > np.arange(begin, begin + len(found))[:, None]
            pairs = np.argwhere((found >= least) & later)
            yield found[tuple(pairs.T)], pairs + np.array([begin, 0])

    likeness, pairs = map(np.concatenate, zip(*blocks(), strict=True))
    apart = np.array([functions[one].path != functions[two].path for one, two in pairs.tolist()])
    return functions, likeness[apart], pairs[apart]


def judge(one: Match, other: Match, labels: dict[str, str]) -> tuple[bool, bool, bool]:
    """Say whether two functions are of two languages, have one name, and one label."""
    names = [(match.function or "").replace("_", "").lower() for match in (one, other)]
    return (
        one.language != other.language,
        names[0] == names[1],
        labels[one.path] == labels[other.path],
    )


def count(same: NDArray[np.bool_]) -> dict[str, Any]:
    """Return how many pairs there are, and in which share names and labels agree."""

    def share(values: NDArray[np.bool_]) -> float | None:
        return round(float(values.mean()), 4) if len(values) else None

    across = same[same[:, 0]]
    return {
        "pairs": len(same),
        "same_name": share(same[:, 1]),
        "same_label": share(same[:, 2]),
        "pairs_across_languages": len(across),
        "same_name_across_languages": share(across[:, 1]),
        "same_label_across_languages": share(across[:, 2]),
    }


if __name__ == "__main__":
    main()
