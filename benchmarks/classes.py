"""Which classes of a model are confused, and which labels of its training programs look wrong.

    python benchmarks/classes.py --data DIR --json

``DIR`` holds the data sets that ``algorithms`` was trained on. The validation programs of ``atlas``
say which two classes are taken for each other, and how well a class is known in a language in which
it has few training programs. Of a training program whose label is another than what the model says
with a high probability, although it has learned that label, the label may be wrong.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from bundle import LABELS, MODELS
from origin import origin
from unknown import ask, programs_of

from treecaps.models.bundled import DEFAULT
from treecaps.models.trained import TrainedModel, load
from treecaps.nn.memory import tune_malloc

FEW = 5
"""A class with fewer training programs in a language has few."""
SURE = 0.9
PAIRS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    model = load(DEFAULT)
    learned = [
        row for name in MODELS[DEFAULT] for row in answers(model, options.data / name, "train")
    ]
    found = answers(model, options.data / "atlas", "val")
    result = {
        "model": DEFAULT,
        "pairs": pairs(found),
        "cells": cells(found, Counter(row["cell"] for row in learned)),
        "training": suspects(learned),
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for row in pairs(found):
        print(f"{row['one']} and {row['other']}: {row['confused']} of {row['programs']}")


def answers(model: TrainedModel, home: Path, part: str) -> list[dict[str, Any]]:
    """Return what a model says of the programs of a data set, beside their labels."""
    programs = list(programs_of(home / f"{part}.jsonl.gz"))
    label = {one.id: LABELS.get(one.label or "", one.label) for one in programs}
    language = {one.id: one.language for one in programs}
    return [
        {
            "id": f"{home.name}/{one.id}",
            "label": label[one.id],
            "cell": (label[one.id], language[one.id]),
            "guess": one.guess,
            "probability": one.probability,
        }
        for one in ask(model, programs)
    ]


def pairs(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pairs of classes that are taken for each other most often."""
    programs = Counter(row["label"] for row in found)
    confused = Counter(
        tuple(sorted((row["label"], row["guess"])))
        for row in found
        if row["guess"] and row["guess"] != row["label"]
    )
    return [
        {"one": one, "other": other, "confused": count, "programs": programs[one] + programs[other]}
        for (one, other), count in sorted(confused.items(), key=lambda item: (-item[1], item[0]))
    ][:PAIRS]


def cells(found: list[dict[str, Any]], learned: Counter[Any]) -> dict[str, dict[str, Any]]:
    """Return the accuracy where a class has few training programs in a language, and elsewhere."""
    few = {cell for cell, count in learned.items() if count < FEW}
    parts = {
        "few": [row for row in found if learned[row["cell"]] < FEW],
        "more": [row for row in found if learned[row["cell"]] >= FEW],
    }
    sizes = {"few": len(few), "more": len(learned) - len(few)}
    return {
        name: {
            "cells": sizes[name],
            "programs": len(rows),
            "accuracy": round(sum(row["guess"] == row["label"] for row in rows) / len(rows), 4),
        }
        for name, rows in parts.items()
    }


def suspects(learned: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many labels of training programs look wrong, and of which classes."""
    doubted = [
        row for row in learned if row["guess"] != row["label"] and row["probability"] >= SURE
    ]
    by_pair = Counter((row["label"], row["guess"]) for row in doubted)
    return {
        "programs": len(learned),
        "doubted": len(doubted),
        "most": [
            {"label": label, "guess": guess, "programs": count}
            for (label, guess), count in by_pair.most_common(PAIRS)
        ],
        "ids": sorted(row["id"] for row in doubted),
    }


if __name__ == "__main__":
    main()
