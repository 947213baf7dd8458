"""How fast a folder of source files is classified from disk, cold, parsing included.

    python benchmarks/folder.py --data atlas/train.jsonl.gz --json

Writes programs of a data set to files of their own, then runs ``treecaps classify --verbose`` on
their folder, several times, each in a process of its own: imports, loading and all. One file is
classified in the same way.
"""

import argparse
import gzip
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from origin import origin

from treecaps.models.bundled import DEFAULT
from treecaps.syntax.languages import language_named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_files(options.data, options.programs, folder)
        rounds = [measure(folder, options.model) for _ in range(options.rounds)]
        one = [measure(next(iter(files)), options.model) for _ in range(options.rounds)]
    seconds = median(taken["seconds"] for taken in rounds)
    result = {
        "data": options.data.parent.name,
        "model": options.model,
        "files": len(files),
        "seconds": round(seconds, 2),
        "files_per_second": round(len(files) / seconds, 1),
        "rounds": rounds,
        "one_file": one,
        "one_file_seconds": round(median(taken["seconds"] for taken in one), 2),
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{result['files']:,} files: {result['files_per_second']:,} files/s")
        print(f"one file: {result['one_file_seconds']} s")


def write_files(data: Path, most: int, folder: Path) -> dict[Path, str]:
    """Write programs to files named as their languages ask for, and return these with labels."""
    files = {}
    with gzip.open(data, "rt", encoding="utf-8") as file:
        lines = list(file)
    chosen = random.Random(0).sample(lines, min(most, len(lines)))
    for number, line in enumerate(chosen):
        program = json.loads(line)
        ending = language_named(program["language"]).endings[0]
        path = folder / f"{number % 100:02}" / f"{number}{ending}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(program["code"], encoding="utf-8", errors="replace")
        files[path] = program["label"]
    return files


def measure(path: Path, model: str) -> dict[str, Any]:
    """Return the seconds that one run took, and what it says they went into."""
    command = Path(sys.executable).with_name("treecaps")
    words = [str(command), "classify", "--model", model, "--verbose", str(path)]
    begun = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    if done.returncode > 1:  # 1: some programs could not be parsed
        raise SystemExit(done.stderr)
    parts = re.findall(r"(\w+) ([0-9.]+) s", done.stderr.splitlines()[-1])
    return {"seconds": round(seconds, 2), **{name: float(value) for name, value in parts}}


if __name__ == "__main__":
    main()
