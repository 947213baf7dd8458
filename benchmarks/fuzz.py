"""Throw broken programs at everything that reads programs.

    python benchmarks/fuzz.py --seconds 60 --seed 0
    python benchmarks/fuzz.py --seconds 1800 --data ../shared/data/atlas/val.jsonl.gz --json

Takes programs, the samples of the project by default, and changes them at random: bits flipped,
pieces deleted, repeated, or taken from another program. Each goes through every front end that
reads its language, is made blind, cut into functions, given edges, classified and embedded; some
are rewritten or explained as well. All of that happens in worker processes, as in the product.

A program that takes longer to parse than the limit is answered with a timeout, which is no
finding. These are, and end in exit status 1:

- crashes: a worker process died;
- hangs: a worker did not end by itself at the limit, or something else than a parser needed it;
- exceptions: an error that is not one of treecaps' own;
- invariants: an answer that cannot be right, such as a span outside the text.

What was found is kept in a folder with --keep.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from origin import origin

from treecaps.data.dataset import DataSet
from treecaps.data.parallel import parse_programs
from treecaps.errors import Failure, MissingExtraError, ProgramError
from treecaps.explanation.explanation import explain
from treecaps.inference.classify import classify_tree
from treecaps.inference.embed import Embedder
from treecaps.models.bundled import DEFAULT
from treecaps.models.trained import TrainedModel, load
from treecaps.syntax.blind import blind
from treecaps.syntax.edges import find_edges
from treecaps.syntax.frontends import FRONTENDS, base, get_frontend
from treecaps.syntax.frontends.base import Frontend, time_limit
from treecaps.syntax.functions import find_functions
from treecaps.syntax.guess import guess_language
from treecaps.syntax.program import Program
from treecaps.syntax.rewrite import rewrite
from treecaps.syntax.tree import Tree
from treecaps.workers import Timer, WorkerLostError, WorkerPool

ROOT = Path(__file__).parent.parent
MISTAKES = ("crashes", "hangs", "exceptions", "invariants")
CHUNK = 32
GRACE = 5.0
"""How many seconds later than its limit an answer may come on a busy machine."""
EXPLAINED = 0.005
REWRITTEN = 0.2
BITS = (
    *(b"(", b")", b"{", b"}", b"[", b"]", b"<", b">", b'"', b"'", b"`", b"\\", b"/*", b"*/", b"//"),
    *(b"#", b"\n", b"\r", b"\t", b"\0", b"\xff", b"\xc3\xa9", b"\xf0\x9f\x8c\xb3", b"=>", b"->"),
    *(b"::", b"?:", b"${", b"<<<", b"@", b";", b",", b"0x", b"1e999", b"\xe2\x80\xa8"),
)


class Finding(NamedTuple):
    """A timeout or a mistake, where it happened and to which program."""

    kind: str
    where: str
    program: Program


class Found(NamedTuple):
    """What came of some programs."""

    answers: Counter[str]
    findings: list[Finding]


def main() -> None:
    options = _options()
    base.SECONDS = options.limit
    torch.set_num_threads(1)
    programs = [
        program
        for place in options.data
        for program in DataSet(place)
        if isinstance(program, Program)
    ]
    model = load(options.model)
    result = fuzz(programs, model, options.seconds, options.seed, options.workers)
    for finding in result["found"]:
        print(f"{finding.kind}: {finding.where}: {finding.program.language}", file=sys.stderr)
        if options.keep:
            _keep(options.keep, finding)
    del result["found"]
    data = [place.parent.name if place.is_file() else place.name for place in options.data]
    result = {"data": data, "programs": len(programs), **result, **origin()}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print(", ".join(f"{result[kind]} {kind}" for kind in ("inputs", "timeouts", *MISTAKES)))
    sys.exit(1 if any(result[kind] for kind in MISTAKES) else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", nargs="+", type=Path, default=[ROOT / "examples" / "programs"])
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds a program has to parse")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for programs that show a mistake")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def fuzz(
    programs: list[Program], model: TrainedModel, seconds: float, seed: int, workers: int
) -> dict[str, Any]:
    """Try programs for some seconds; return how many there were and what came of them."""
    chance = random.Random(seed)
    answers: Counter[str] = Counter()
    findings: list[Finding] = []
    languages: Counter[str] = Counter()
    until = time.monotonic() + seconds
    pool = WorkerPool[tuple[list[Program], int], Found](workers, partial(_start_worker, model))
    waiting: deque[tuple[list[Program], Future[Found]]] = deque()

    def chunks() -> Iterator[list[Program]]:
        while time.monotonic() < until:
            yield [mutate(chance, programs) for _ in range(CHUNK)]

    def finish() -> None:
        chunk, future = waiting.popleft()
        found = _finish(chunk, future, pool, seed)
        languages.update(program.language for program in chunk)
        answers.update(found.answers)
        findings.extend(found.findings)

    with closing(pool):
        for chunk in chunks():
            waiting.append((chunk, pool.submit((chunk, seed))))
            if len(waiting) > 2 * workers:
                finish()
        while waiting:
            finish()
    counted = Counter(finding.kind for finding in findings)
    return {
        "inputs": languages.total(),
        "limit": base.SECONDS,
        **{kind: counted[kind] for kind in ("timeouts", *MISTAKES)},
        "languages": dict(sorted(languages.items())),
        "answers": dict(sorted(answers.items())),
        "found": findings,
    }


def _finish(
    chunk: list[Program],
    future: "Future[Found]",
    pool: WorkerPool[tuple[list[Program], int], Found],
    seed: int,
) -> Found:
    """Wait for a chunk; what cost a worker its life is looked at by itself, as the product does."""
    answers: Counter[str] = Counter()
    findings: list[Finding] = []
    while True:
        try:
            found = future.result()
            return Found(answers + found.answers, findings + found.findings)
        except WorkerLostError as lost:
            done, stage = divmod(lost.item, len(STAGES))
            program = chunk[done]
            if not lost.timed_out:
                findings.append(Finding("crashes", STAGES[stage], program))
            else:
                kind = "timeouts" if STAGES[stage] in PARSING else "hangs"
                findings.append(Finding(kind, STAGES[stage], program))
            begun = time.monotonic()
            (result,) = parse_programs([program], "tree-sitter")
            if time.monotonic() - begun > time_limit(program.text) + GRACE:
                findings.append(Finding("hangs", "parse_programs", program))
            code = result.code if isinstance(result, Failure) else "tree"
            answers[f"parse_programs: {code}"] += 1
            # Those before it went well, and go well again.
            chunk = chunk[:done] + chunk[done + 1 :]
            future = pool.submit((chunk, seed))


PARSING = ("parse", "blind", "rewrite", "guess")
"""What has the time limit of a parser."""
STAGES = (*PARSING, "functions", "edges", "model", "explain")
PATIENCE = 60.0
"""How many seconds anything else may take."""


class _Fuzzer:
    """Tries programs, in a worker process."""

    def __init__(self, model: TrainedModel) -> None:
        self._model, self._embedder = model, Embedder(model)
        self._frontends: dict[str, Frontend] = {}
        for name in FRONTENDS:
            try:
                self._frontends[name] = get_frontend(name)
            except MissingExtraError as error:
                print(error, file=sys.stderr)

    def __call__(self, task: tuple[list[Program], int], timer: Timer) -> Found:
        programs, seed = task
        self._answers: Counter[str] = Counter()
        self._findings: list[Finding] = []
        for number, program in enumerate(programs):
            self._stage = "parse"
            try:
                self._try(program, number, seed, timer)
            except ProgramError as error:
                self._refuse(program, self._stage, error)
            except AssertionError as error:
                self._findings.append(Finding("invariants", f"{self._stage}: {error}", program))
            except Exception as error:  # whatever it is, it is what is looked for
                where = f"{self._stage}: {type(error).__name__}: {error}"
                self._findings.append(Finding("exceptions", where, program))
        return Found(self._answers, self._findings)

    def _try(self, program: Program, number: int, seed: int, timer: Timer) -> None:
        def enter(stage: str) -> None:
            self._stage = stage
            item = number * len(STAGES) + STAGES.index(stage)
            timer.start(time_limit(program.text) + 1 if stage in PARSING else PATIENCE, item)

        chance = random.Random(repr((seed, program.text)))
        tree = None
        enter("parse")
        for name, frontend in self._frontends.items():
            if program.language in frontend.languages():
                found = self._parse(program, name)
                tree = found if name == self._model.frontend else tree
        if tree is None:
            return
        enter("blind")
        self._check_changed(blind(program))
        if chance.random() < REWRITTEN:
            enter("rewrite")
            self._check_changed(rewrite(program, seed))
        enter("guess")
        guess_language(program.text)
        enter("functions")
        for function in find_functions(tree):
            function.tree.check()
        enter("edges")
        for kind, pairs in find_edges(tree).items():
            assert not pairs.size or 0 <= pairs.min() <= pairs.max() < len(tree), kind
        enter("model")
        said = classify_tree(self._model, tree)
        assert np.isfinite([said.length, said.probability]).all(), said
        (vector,) = self._embedder.embed_trees([tree])
        assert np.linalg.norm(vector) <= 1.001, vector  # less where there is next to nothing
        if said.top and chance.random() < EXPLAINED:
            enter("explain")
            explained = explain(self._model, tree)
            assert np.isfinite(explained.nodes).all()
            assert len(explained.nodes) == len(tree)

    def _parse(self, program: Program, name: str) -> Tree | None:
        try:
            tree = self._frontends[name].parse(program)
        except ProgramError as error:
            self._refuse(program, name, error)
            return None
        self._answers[f"{name}: tree"] += 1
        tree.check()
        return tree

    def _refuse(self, program: Program, where: str, error: ProgramError) -> None:
        self._answers[f"{where}: {error.code}"] += 1
        if error.code == "timeout":
            self._findings.append(Finding("timeouts", where, program))

    def _check_changed(self, program: Program) -> None:
        program.text.decode()
        self._frontends["tree-sitter"].parse(program).check()


def _start_worker(model: TrainedModel) -> _Fuzzer:
    return _Fuzzer(model)


def mutate(chance: random.Random, programs: list[Program]) -> Program:
    """Return one of the programs with some changes that nobody would make on purpose."""
    while True:
        program = chance.choice(programs)
        text = bytearray(program.text)
        for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
            _change(chance, text, programs)
        try:
            return Program(bytes(text), program.language)
        except ProgramError:  # it looks like a binary file now
            continue


def _change(chance: random.Random, text: bytearray, programs: list[Program]) -> None:
    at = chance.randrange(len(text) + 1)
    end = min(len(text), at + int(2 ** chance.uniform(0, 10)))
    match chance.randrange(7):
        case 0 if at < len(text):
            text[at] ^= 1 << chance.randrange(8)
        case 1:
            del text[at:end]
        case 2:
            text[at:at] = chance.choice(BITS) * int(2 ** chance.uniform(0, 6))
        case 3:
            other = chance.choice(programs).text
            begin = chance.randrange(len(other) + 1)
            text[at:end] = other[begin : begin + end - at]
        case 4:
            text[at:at] = text[at:end] * chance.randrange(1, 4)
        case 5:
            piece = text[at : at + chance.randrange(1, 6)]
            text[at:at] = piece * int(2 ** chance.uniform(0, 11))
        case _:
            del text[chance.randrange(len(text) // 2 + 1) + len(text) // 2 :]


def _keep(folder: Path, finding: Finding) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.iterdir()))
    name = f"{finding.kind}-{number}.{finding.program.language}"
    (folder / name).write_bytes(finding.program.text)


if __name__ == "__main__":
    main()
