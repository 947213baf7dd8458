"""How well copies in disguise are told from other solutions of the same problem.

    python benchmarks/copies.py --data problems/val.jsonl.gz --half report --dolos FOLDER --json

Takes problems with several solutions in one language, changes some solutions step by step
(``disguise.py``), and compares all with all. Copies are pairs of a changed program and its
original; honest are all other pairs. The figure is the area under the ROC curve over the pairs of
all problems. Half of the problems are to choose how programs are compared, half to report.

FOLDER is where Dolos was installed: npm install @dodona/dolos-lib. Without it, it is left out.
"""

import argparse
import gzip
import json
import random
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from disguise import LANGUAGES, STEPS, disguise
from numpy.typing import NDArray
from origin import origin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score

from treecaps.errors import ProgramError
from treecaps.inference.embed import Embedder
from treecaps.models.bundled import SIMILAR
from treecaps.models.engine import set_num_threads
from treecaps.search.copies import Copies, Work
from treecaps.syntax.languages import LANGUAGES as KNOWN
from treecaps.syntax.parse import parse_code
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree

FEWEST, MOST, CHANGED, NODES = 6, 12, 4, 60
THRESHOLDS = (0.6, 0.7, 0.8, 0.9)
ALL = "all"

Shares = NDArray[np.float64]
"""``[n, n]``, how alike each is with each."""
_DOLOS = """
import { Dolos } from "@dodona/dolos-lib";
import { readFileSync } from "fs";
for (const { language, paths } of JSON.parse(readFileSync(process.argv[2]))) {
  const report = await new Dolos({ language }).analyzePaths(paths);
  const pairs = report.allPairs().map((p) => [p.leftFile.path, p.rightFile.path, p.similarity]);
  console.log(JSON.stringify(pairs));
}
"""


@dataclass
class Case:
    """Solutions of a problem, and changed copies of some: which they are copies of."""

    step: str
    language: str
    trees: list[Tree]
    originals: list[int]
    scores: dict[str, Shares] = field(default_factory=dict)

    def split(self, system: str) -> tuple[list[float], list[float]]:
        """Return the scores of copies and of honest pairs; two copies are no pair."""
        scores = self.scores[system]
        first = len(self.trees) - len(self.originals)
        copies, honest = [], list(scores[np.triu_indices(first, 1)])
        for number, original in enumerate(self.originals, first):
            copies.append(scores[number, original])
            honest += list(np.delete(scores[number, :first], original))
        return copies, honest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--half", choices=("choose", "report"), default="report")
    parser.add_argument("--dolos", type=Path)
    parser.add_argument("--model", default=SIMILAR)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    set_num_threads(1)
    cases = make_cases(options.data, options.half)
    systems: dict[str, Callable[[list[Tree]], Shares]] = {
        "copied": copied,
        "copied_two": copied_two,
        "tfidf": tfidf,
        "vectors": Vectors(options.model),
    }
    for name, compare in systems.items():
        for case in cases:
            case.scores[name] = compare(case.trees)
    if options.dolos:
        ask_dolos(options.dolos, cases)
    result = {
        "data": options.data.parent.name,
        "half": options.half,
        "model": options.model,
        "groups": len({id(case.trees[0]) for case in cases}),
        "steps": [summarise(name, cases) for name in (*STEPS, ALL)],
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for row in result["steps"]:
        print(row)


def make_cases(path: Path, half: str) -> list[Case]:
    """Read the solutions of one half of the problems, and make copies of some."""
    groups = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            in_half = crc32(row["label"].encode()) % 2 == (half == "report")
            if in_half and row["language"] in LANGUAGES:
                groups[row["label"], row["language"]].append(row["code"])
    cases = []
    for (label, language), codes in sorted(groups.items()):
        random.Random(label + language).shuffle(codes)
        solutions = [found for code in codes if (found := parse(code, language))][:MOST]
        if len(solutions) < FEWEST:
            continue
        for step in (*STEPS, ALL):
            trees, originals = [tree for _, tree in solutions], []
            for number, (program, _) in enumerate(solutions[:CHANGED]):
                chance = random.Random(f"{label} {number}")
                copy, taken = disguise(program, list(STEPS) if step == ALL else [step], chance)
                if taken:
                    trees.append(parse_code(copy.text, language))
                    originals.append(number)
            cases.append(Case(step, language, trees, originals))
    return cases


def parse(code: str, language: str) -> tuple[Program, Tree] | None:
    """Parse a solution; those that are tiny are alike by chance."""
    try:
        tree = parse_code(code, language)
    except ProgramError:
        return None
    return (Program(code, language), tree) if len(tree) >= NODES else None


def copied(trees: list[Tree]) -> Shares:
    """Compare by shared pieces; the others say what is common."""
    copies = Copies([Work.from_tree(tree) for tree in trees])
    scores = np.eye(len(trees))
    for left, right, share in copies.pairs():
        scores[left, right] = scores[right, left] = share
    return scores


def copied_two(trees: list[Tree]) -> Shares:
    """Compare by shared pieces, as if there were no others."""
    works = [Work.from_tree(tree) for tree in trees]
    scores = np.eye(len(works))
    for left, one in enumerate(works):
        for right, other in enumerate(works[:left]):
            scores[left, right] = scores[right, left] = Copies([one, other]).compare(0, 1)
    return scores


def tfidf(trees: list[Tree]) -> Shares:
    """Compare by the cosine of TF-IDF of tokens."""
    tokens = [[token for token in tree.tokens() if token] for tree in trees]
    vectors = TfidfVectorizer(analyzer=lambda words: words, sublinear_tf=True).fit_transform(tokens)
    scores: Shares = (vectors @ vectors.T).toarray()
    return scores


class Vectors:
    """Compares by the embeddings of a model."""

    def __init__(self, model: str) -> None:
        self._embedder = Embedder(model)

    def __call__(self, trees: list[Tree]) -> Shares:
        """Return the products of all vectors."""
        vectors = self._embedder.embed_trees(trees).astype(np.float64)
        scores: Shares = vectors @ vectors.T
        return scores


def ask_dolos(folder: Path, cases: list[Case]) -> None:
    """Compare by Dolos with its defaults."""
    script = folder / "compare.mjs"
    script.write_text(_DOLOS)
    with tempfile.TemporaryDirectory() as temporary:
        jobs = []
        for number, case in enumerate(cases):
            ending = KNOWN[case.language].endings[0]
            paths = [f"{temporary}/{number}-{one}{ending}" for one in range(len(case.trees))]
            for path, tree in zip(paths, case.trees, strict=True):
                Path(path).write_bytes(tree.text)
            language = {"c_sharp": "c-sharp"}.get(case.language, case.language)
            jobs.append({"language": language, "paths": paths})
        request = Path(temporary) / "jobs.json"
        request.write_text(json.dumps(jobs))
        answer = subprocess.run(
            ["node", str(script), str(request)], stdout=subprocess.PIPE, text=True, check=True
        )
    for case, job, line in zip(cases, jobs, answer.stdout.splitlines(), strict=True):
        place = {path: number for number, path in enumerate(job["paths"])}
        case.scores["dolos"] = np.eye(len(place))
        for left, right, similarity in json.loads(line):
            one, other = place[left], place[right]
            case.scores["dolos"][[one, other], [other, one]] = similarity


def summarise(step: str, cases: list[Case]) -> dict[str, Any]:
    """Return the area of each system, and how many pairs ours has above thresholds."""
    cases = [case for case in cases if case.step == step]
    row: dict[str, Any] = {"step": step}
    for system in cases[0].scores:
        both = zip(*(case.split(system) for case in cases), strict=True)
        copies, honest = map(np.concatenate, both)
        labels = np.repeat([1, 0], [len(copies), len(honest)])
        area = roc_auc_score(labels, np.concatenate([copies, honest]))
        row |= {"copies": len(copies), "honest": len(honest)}
        row.setdefault("area", {})[system] = round(100 * float(area), 2)
        if system == "copied":
            row["found"] = {str(one): round(float(np.mean(copies >= one)), 4) for one in THRESHOLDS}
            row["wrong"] = {str(one): round(float(np.mean(honest >= one)), 4) for one in THRESHOLDS}
    return row


if __name__ == "__main__":
    main()
