"""Compare this checkout with another one, an older commit say.

    git worktree add ../before COMMIT
    python benchmarks/against.py ../before --data train.jsonl.gz --json

Both take turns in one run, each time in a new process, in an order that is drawn anew each round.
What is timed, after imports and a first run that does not count:

- parse: source to ``Tree`` in one process;
- corpus: from a data set on disk to a corpus on disk, with two workers;
- classify: from programs in memory to answers of the bundled model, with workers that parse;
- train-default, train-paper: from trees to a model, one epoch of a preset, one thread.

The ratio of a round is the seconds of the other checkout over those of this one, so that above 1
this one is faster; reported are the median over rounds and the quartiles.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def main() -> None:
    options = _options()
    if options.run:
        print(_time(JOBS[options.run], options.data, options.programs))
        return
    from origin import origin

    places = {"before": options.other.resolve(), "now": HERE}
    seconds: dict[str, dict[str, list[float]]] = {
        job: {side: [] for side in places} for job in options.jobs
    }
    rng = random.Random(0)
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        for job in options.jobs:
            for side in rng.sample(sorted(places), 2):
                seconds[job][side].append(_run(places[side], job, options))
    result = {
        "data": options.data.parent.name,
        "programs": options.programs,
        "rounds": options.rounds,
        "before": _commit(places["before"]),
        "jobs": {job: _compare(times) for job, times in seconds.items()},
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for job, row in result["jobs"].items():
        low, high = row["quartiles"]
        print(f"{job}: {row['now']} s, ratio {row['ratio']} ({low} to {high})")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("--data", required=True, type=Path, help="a data set")
    parser.add_argument("--programs", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--jobs", nargs="+", default=["parse", "corpus"], choices=sorted(JOBS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(place: Path, job: str, options: argparse.Namespace) -> float:
    words = [sys.executable, __file__, ".", "--run", job]
    words += ["--data", str(options.data.resolve()), "--programs", str(options.programs)]
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return float(done.stdout)


def _compare(times: dict[str, list[float]]) -> dict[str, object]:
    ratios = [before / now for before, now in zip(times["before"], times["now"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "ratio": round(middle, 3),
        "quartiles": [round(low, 3), round(high, 3)],
        **{side: round(statistics.median(found), 3) for side, found in times.items()},
    }


def _commit(place: Path) -> str:
    words = ["git", "-C", str(place), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _time(job: Callable[[Path, int], Callable[[], None]], data: Path, programs: int) -> float:
    run = job(data, programs)
    run()
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def _programs(data: Path, count: int) -> list[dict[str, str | None]]:
    from treecaps.data.dataset import DataSet
    from treecaps.syntax.program import Program

    found = [program for program in DataSet(data) if isinstance(program, Program)]
    step = max(1, len(found) // count)
    return [
        {"id": one.id, "language": one.language, "code": one.text.decode(), "label": one.label}
        for one in found[::step][:count]
    ]


def _write(data: Path, count: int, folder: str) -> Path:
    """Write programs as a data set of their own: one that both checkouts read."""
    path = Path(folder) / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _programs(data, count)))
    return path


def _parse(data: Path, count: int) -> Callable[[], None]:
    from treecaps.data.dataset import DataSet
    from treecaps.syntax.frontends import get_frontend
    from treecaps.syntax.program import Program

    frontend = get_frontend()
    with tempfile.TemporaryDirectory() as folder:
        found = DataSet(_write(data, count, folder))
        programs = [program for program in found if isinstance(program, Program)]

    def run() -> None:
        for program in programs:
            frontend.parse(program)

    return run


def _corpus(data: Path, count: int) -> Callable[[], None]:
    from treecaps.data.corpus import Corpus

    rows = _programs(data, count)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            Corpus.build(path, workers=2, cache=folder)

    return run


def _classify(data: Path, count: int) -> Callable[[], None]:
    import torch

    from treecaps.data.dataset import DataSet
    from treecaps.inference.classify import classify
    from treecaps.models.trained import load
    from treecaps.syntax.program import Program

    torch.set_num_threads(1)
    model = load("algorithms")
    with tempfile.TemporaryDirectory() as folder:
        found = DataSet(_write(data, count, folder))
        programs = [program for program in found if isinstance(program, Program)]

    def run() -> None:
        for _ in classify(model, programs):
            continue

    return run


def _train(preset: str, data: Path, count: int) -> Callable[[], None]:
    import torch

    import treecaps
    from treecaps.data.corpus import Corpus
    from treecaps.training.presets import apply_settings, get_preset

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.build(_write(data, count, folder), cache=folder)
        trees, labels = [corpus[row] for row in range(len(corpus))], list(corpus.labels)
    chosen = apply_settings(
        get_preset(preset), ["epochs=1", "vectors=random", "ordinary_background=false"]
    )

    def run() -> None:
        treecaps.train(trees, labels, preset=chosen)

    return run


JOBS: dict[str, Callable[[Path, int], Callable[[], None]]] = {
    "parse": _parse,
    "corpus": _corpus,
    "classify": _classify,
    "train-default": partial(_train, "default"),
    "train-paper": partial(_train, "paper"),
}


if __name__ == "__main__":
    main()
