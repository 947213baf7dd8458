"""How often a model says unknown: of programs of its classes, and of programs of none.

    python benchmarks/unknown.py --data DIR --json

``DIR`` holds the data sets. Programs of no class are the modules of Python's standard library and
the validation programs of ``poj104``, which solve other tasks; programs of its classes are the
validation programs of the others.
"""

import argparse
import json
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from origin import origin

from treecaps.data.dataset import DataSet
from treecaps.inference.classify import Classification, classify
from treecaps.models.bundled import DEFAULT
from treecaps.models.trained import load
from treecaps.nn.memory import tune_malloc

OWN = ("atlas", "java-sort", "python-algorithms", "cross-language")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    model = load(options.model)

    def share(programs: Iterable[Any]) -> dict[str, Any]:
        found = [one for one in classify(model, programs) if isinstance(one, Classification)]
        unknown = sum(not one.known for one in found)
        return {"programs": len(found), "unknown": round(unknown / len(found), 4)}

    library = Path(sysconfig.get_path("stdlib"))
    result: dict[str, Any] = {
        "model": options.model,
        "threshold": model.calibration.threshold,
        "of no class": {
            "standard library": share(sorted(library.glob("*.py"))),
            "poj104": share(DataSet(options.data / "poj104" / "val.jsonl.gz")),
        },
        "of its classes": {
            name: share(DataSet(options.data / name / "val.jsonl.gz")) for name in OWN
        },
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for kind in ("of no class", "of its classes"):
        for name, found in result[kind].items():
            print(f"{kind}, {name}: {found['unknown']:.1%} of {found['programs']:,} unknown")


if __name__ == "__main__":
    main()
