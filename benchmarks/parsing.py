"""How fast source becomes trees: each front end beside its bare parser, on one core and on two.

    python benchmarks/parsing.py --data train.jsonl.gz --json

In every round, for every front end that reads the data's languages, on a sample of the programs:
the bare parser alone, source to ``Tree`` in this process, and from a data set on disk to a corpus
on disk with one worker on one core and with two workers on two. All sides take turns in one run,
because machines are noisy; the ratios are medians over rounds, with the quartiles beside them.
Peak memory and the time to load again come from building the corpus of all the data in a process
of its own.
"""

import argparse
import ast
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import tree_sitter

from treecaps.data.corpus import Corpus
from treecaps.data.dataset import DataSet
from treecaps.errors import MissingExtraError, ProgramError
from treecaps.syntax.frontends import FRONTENDS, get_frontend
from treecaps.syntax.languages import LANGUAGES
from treecaps.syntax.program import Program

SIDES = ("bare", "tree", "one_core", "two_cores")


def main() -> None:
    options = _options()
    if options.build:
        _build(options.data, options.frontends[0], options.build)
        return
    sample = _sample(options.data, options.programs)
    report: dict[str, Any] = {
        "data": os.path.basename(os.path.dirname(os.path.abspath(options.data))),
        "programs": len(sample),
        "rounds": options.rounds,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "frontends": {},
    }
    for name in options.frontends:
        try:
            frontend = get_frontend(name)
        except MissingExtraError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        readable = [program for program in sample if program.language in frontend.languages()]
        if readable:
            print(f"{name}: {len(readable)} programs", file=sys.stderr)
            figures = _measure(name, readable, options.rounds)
            report["frontends"][name] = {**figures, **_measure_corpus(options.data, name)}
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        _print(report)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True, help="a data set")
    parser.add_argument("--programs", type=int, default=8000, help="how many programs a round")
    parser.add_argument("--rounds", type=int, default=7, choices=range(2, 100), metavar="N")
    parser.add_argument("--frontends", nargs="+", default=FRONTENDS, choices=FRONTENDS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    return parser.parse_args()


def _sample(data: str, count: int) -> list[Program]:
    programs = [program for program in DataSet(data) if isinstance(program, Program)]
    count = min(count, len(programs))
    return [programs[number * len(programs) // count] for number in range(count)]


def _measure(name: str, programs: list[Program], rounds: int) -> dict[str, Any]:
    frontend = get_frontend(name)
    bare = bare_parser(name)
    nodes = 0

    def parse_bare() -> None:
        for program in programs:
            bare(program)

    def parse_trees() -> None:
        nonlocal nodes
        nodes = 0
        for program in programs:
            try:
                nodes += len(frontend.parse(program))
            except ProgramError:
                continue

    def build_corpus(cores: int) -> None:
        # The process that reads and writes shares the cores with its workers.
        all_cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(all_cores)[:cores])
        try:
            with tempfile.TemporaryDirectory() as cache:
                Corpus.build(data, frontend=name, workers=cores, cache=cache)
        finally:
            os.sched_setaffinity(0, all_cores)

    sides: dict[str, Callable[[], None]] = {
        "bare": parse_bare,
        "tree": parse_trees,
        "one_core": lambda: build_corpus(1),
        "two_cores": lambda: build_corpus(2),
    }
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        data = _write(programs, folder)
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            for side, run in sides.items():
                begun = time.perf_counter()
                run()
                seconds[side].append(time.perf_counter() - begun)
    return {
        "nodes_per_program": round(nodes / len(programs), 1),
        **{
            side: {
                "programs_per_s": round(len(programs) / statistics.median(times)),
                "nodes_per_s": round(nodes / statistics.median(times)),
            }
            for side, times in seconds.items()
        },
        "tree_over_bare": _ratio(seconds["tree"], seconds["bare"]),
        "two_cores_over_one": _ratio(seconds["one_core"], seconds["two_cores"]),
    }


def _write(programs: list[Program], folder: str) -> str:
    path = os.path.join(folder, "sample.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for program in programs:
            record = {"code": program.text.decode(), "language": program.language}
            file.write(json.dumps(record) + "\n")
    return path


def _ratio(longer: list[float], shorter: list[float]) -> dict[str, float]:
    ratios = [a / b for a, b in zip(longer, shorter, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"median": round(middle, 2), "low": round(low, 2), "high": round(high, 2)}


def bare_parser(name: str) -> Callable[[Program], object]:
    if name == "tree-sitter":
        parsers = {}
        for language in LANGUAGES.values():
            entry = getattr(import_module(language.grammar_module), language.entry)
            parsers[language.name] = tree_sitter.Parser(tree_sitter.Language(entry()))
        return lambda program: parsers[program.language].parse(program.text)
    if name == "ast":
        warnings.simplefilter("ignore")
        return _parse_ast
    srcml = import_module("srcml_caller")
    known = {
        language.name: getattr(srcml.CodeLanguage, language.srcml)
        for language in LANGUAGES.values()
        if language.srcml
    }
    return lambda program: srcml.to_srcml(program.text.decode(), known[program.language], False)


def _parse_ast(program: Program) -> None:
    with suppress(SyntaxError):
        ast.parse(program.text.decode())


def _measure_corpus(data: str, name: str) -> dict[str, Any]:
    """Build the corpus of all the data in a new process, then load it again."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--data", data, "--frontends", name, "--build", cache]
        figures: dict[str, Any] = json.loads(subprocess.check_output(command))
        times = []
        for _ in range(3):
            begun = time.perf_counter()
            Corpus.build(data, frontend=name, cache=cache)
            times.append(time.perf_counter() - begun)
    return {**figures, "load_s": round(statistics.median(times), 3)}


def _build(data: str, name: str, cache: str) -> None:
    begun = time.perf_counter()
    corpus = Corpus.build(data, frontend=name, cache=cache)
    seconds = time.perf_counter() - begun
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(
        json.dumps(
            {
                "corpus_programs": corpus.about["programs"],
                "corpus_failed": corpus.about["failed"],
                "build_s": round(seconds, 1),
                # As if every worker were as large as the largest and shared nothing.
                "peak_mb": round((own + largest_child * (os.cpu_count() or 1)) / 1024),
            }
        )
    )


def _print(report: dict[str, Any]) -> None:
    for name, figures in report["frontends"].items():
        print(f"\n{name} on {report['programs']} programs of {report['data']}")
        for side in SIDES:
            speed = figures[side]
            print(
                f"  {side:10} {speed['programs_per_s']:>9,} programs/s"
                f" {speed['nodes_per_s']:>12,} nodes/s"
            )
        for key in ("tree_over_bare", "two_cores_over_one"):
            ratio = figures[key]
            print(f"  {key:20} {ratio['median']} ({ratio['low']} to {ratio['high']})")
        print(
            f"  corpus of {figures['corpus_programs']:,} programs: built in {figures['build_s']} s,"
            f" {figures['peak_mb']} MB at most, loaded again in {figures['load_s']} s"
        )


if __name__ == "__main__":
    main()
