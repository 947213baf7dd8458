"""How fast a folder of source files is classified from disk, cold, parsing included.

    python benchmarks/folder.py --data atlas/train.jsonl.gz --json

Writes programs of a data set to files of their own, then runs over their folder in turns, several
times, each in a process of its own, imports and loading and all: ``treecaps classify`` with the
engine in NumPy; the same without the loops that are compiled; the same with the engine on PyTorch;
``treecaps index``, which embeds each function; and the bare parser, which reads and parses the
files and does nothing with the trees. Each runs on one core and on two. One file is classified in
the same way.
"""

import argparse
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from statistics import median
from typing import Any

from origin import origin
from parsing import bare_parser

from treecaps.models.bundled import DEFAULT
from treecaps.syntax.languages import language_named
from treecaps.syntax.program import Program

SIDES = ("numpy", "interpreted", "torch", "index", "bare")
COMMAND = "from treecaps.cli.main import run; run()"
INTERPRETED = """
import treecaps.compiled
treecaps.compiled.loops = None
"""
ON_PYTORCH = """
import treecaps.models.trained as trained
from treecaps.models.torch_engine import TorchEngine
load = trained.load
trained.load = lambda folder: load(folder, engine=TorchEngine.build)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        parse_bare(options.bare, options.cores)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_files(options.data, options.programs, folder)
        rounds: list[dict[str, Any]] = []
        for _ in range(options.rounds):
            for side in SIDES:
                for cores in (1, 2):
                    taken = measure(side, folder, options.model, cores)
                    rounds.append({"side": side, "cores": cores, **taken})
        one = [measure("numpy", next(iter(files)), options.model, 1) for _ in rounds]
    sides = {
        side: {cores: summarize(rounds, side, cores, len(files)) for cores in (1, 2)}
        for side in SIDES
    }
    result = {
        "data": options.data.parent.name,
        "model": options.model,
        "files": len(files),
        "files_per_second": sides,
        "two_cores_over_one": {
            side: round(found[2] / found[1], 2) for side, found in sides.items()
        },
        "rounds": rounds,
        "one_file": one,
        "one_file_seconds": round(median(taken["seconds"] for taken in one), 2),
        **origin(),
    }
    print(json.dumps(result, indent=1) if options.json else result)


def summarize(rounds: list[dict[str, Any]], side: str, cores: int, files: int) -> float:
    """Return the median of files a second."""
    found: list[float] = [
        one["seconds"] for one in rounds if (one["side"], one["cores"]) == (side, cores)
    ]
    return round(files / median(found), 1)


def parse_bare(folder: Path, cores: int) -> None:
    """Read and parse files with nothing but the parser."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with Pool(cores) as pool:
        assert sum(pool.imap_unordered(parse_file, files, chunksize=64)) == len(files)


def parse_file(path: Path) -> bool:
    return bare()(Program.read(path)) is not None


@cache
def bare() -> Callable[[Program], object]:
    return bare_parser("tree-sitter")


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


def measure(side: str, path: Path, model: str, cores: int) -> dict[str, Any]:
    """Return the seconds that one run took, and what it says they went into."""
    words = [sys.executable, __file__, "--data", "", "--bare", str(path), "--cores", str(cores)]
    script = {"interpreted": INTERPRETED, "torch": ON_PYTORCH}.get(side, "") + COMMAND
    with tempfile.TemporaryDirectory() as temporary:
        if side == "index":
            words = [sys.executable, "-c", script, "index", "--out", f"{temporary}/index"]
            words += ["--workers", str(cores), str(path)]
        elif side != "bare":
            words = [sys.executable, "-c", script, "classify", "--model", model, "--verbose"]
            words += ["--workers", str(cores), str(path)]
        begun = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
        seconds = time.perf_counter() - begun
    if done.returncode > 1:  # 1: some programs could not be parsed
        raise SystemExit(done.stderr)
    last = done.stderr.splitlines()[-1] if done.stderr else ""
    parts = re.findall(r"(\w+) ([0-9.]+) s", last)
    return {"seconds": round(seconds, 2), **{name: float(value) for name, value in parts}}


def environment() -> dict[str, str]:
    """Return the environment of a command that is installed: with bytecode."""
    return {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}


if __name__ == "__main__":
    main()
