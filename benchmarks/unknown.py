"""How often a model gives a class: to programs of its classes, and to code that is of none.

    python benchmarks/unknown.py --data DIR --json

``DIR`` holds the data sets. Code of no class are the validation files of ``ordinary``, all their
functions and a few lines of each, the documentation of this project taken for programs, modules of
Python's standard library, and the validation programs of ``poj104``, which solve other tasks.
Programs of its classes are the validation programs of the others.

The files of ``ordinary`` and the programs of the classes set the threshold of the bundled model, so
its figures on them are slightly optimistic.
"""

import argparse
import json
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bundle import LABELS
from origin import origin
from sklearn.metrics import roc_auc_score

from treecaps.data.dataset import DataSet
from treecaps.inference.classify import Classification, classify
from treecaps.models.bundled import DEFAULT
from treecaps.models.trained import TrainedModel, load
from treecaps.nn.memory import tune_malloc
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program
from treecaps.training.background import cut_fragment

OWN = ("atlas", "java-sort", "python-algorithms", "cross-language")
DOCS = Path(__file__).parents[1] / "docs"
KEPT = 0.95
"""The share of right answers that are kept where rates of two measures are compared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    model = load(options.model)
    result = {
        "model": options.model,
        "threshold": model.calibration.threshold,
        **measure(model, options.data),
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, row in result["of no class"].items():
        print(f"{name}: {row['known']:.2%} of {row['programs']:,} get a class")
    for name, row in result["of its classes"].items():
        print(f"{name}: {row['kept']:.1%} of {row['right']:,} right answers are kept")
    for name, row in result["measures"].items():
        print(f"{name}: area {row['area']:.4f}, {row['rate']:.2%} pass where {KEPT:.0%} are kept")


def measure(model: TrainedModel, data: Path) -> dict[str, Any]:
    """Return how often a model gives a class, and how well its measures tell code of none."""
    files = list(programs_of(data / "ordinary" / "val.jsonl.gz"))
    prose = [
        Program.from_clean_text(page.read_bytes(), language, id=page.name)
        for page in sorted(DOCS.glob("*.md"))
        for language in sorted(LANGUAGES)
    ]
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    answers = {
        "ordinary files": ask(model, files),
        "their functions": ask(model, files, functions=True),
        "a few lines of them": ask(model, map(cut_fragment, files)),
        "documentation": ask(model, prose),
        "standard library": ask(model, library),
        "poj104": ask(model, programs_of(data / "poj104" / "val.jsonl.gz")),
    }
    none = {
        name: {"programs": len(found), "known": known(found)} for name, found in answers.items()
    }
    language = {program.id: program.language for program in files}
    by_language = {
        name: known([one for one in answers["ordinary files"] if language[one.id] == name])
        for name in sorted(set(language.values()))
    }
    own, right = {}, []
    for name in OWN:
        programs = list(programs_of(data / name / "val.jsonl.gz"))
        label = {one.id: LABELS.get(one.label or "", one.label) for one in programs}
        found = [one for one in ask(model, programs) if one.guess == label[one.id]]
        own[name] = {"programs": len(programs), "right": len(found), "kept": known(found)}
        right += found
    others = answers["ordinary files"] + answers["their functions"]
    return {
        "of no class": none,
        "ordinary files by language": by_language,
        "of its classes": own,
        "measures": {
            title: compare([score(one) for one in right], [score(one) for one in others])
            for title, score in (
                ("length of the longest capsule", lambda one: one.length),
                ("probability", lambda one: one.probability),
                ("softmax of the classes alone", softmax),
            )
        },
    }


def programs_of(path: Path) -> Iterable[Program]:
    return (program for program in DataSet(path) if isinstance(program, Program))


def ask(model: TrainedModel, programs: Iterable[Any], **options: Any) -> list[Classification]:
    found = classify(model, programs, top=len(model.labels), **options)
    return [one for one in found if isinstance(one, Classification)]


def known(answers: Sequence[Classification]) -> float:
    """Return the share of answers with a class."""
    return round(sum(one.known for one in answers) / max(len(answers), 1), 5)


def softmax(answer: Classification) -> float:
    """Return the probability of the guess if it must be one of the classes."""
    return answer.probability / sum(one.probability for one in answer.top) if answer.top else 0.0


def compare(right: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """Return how well a measure tells right answers from code of no class."""
    area = roc_auc_score([1] * len(right) + [0] * len(others), [*right, *others])
    least = np.quantile(right, 1 - KEPT, method="lower")
    return {
        "area": round(float(area), 5),
        "rate": round(float((np.array(others) >= least).mean()), 5),
    }


if __name__ == "__main__":
    main()
