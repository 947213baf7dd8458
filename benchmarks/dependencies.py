"""How well routing together tells which pieces of a program depend on each other.

    python benchmarks/dependencies.py --data DIR --json

``DIR`` holds data sets with validation programs. Subtrees are statements. Two depend on each other
if one reads what the other may have written last, or calls what the other defines. They route
together to the extent to which their windows have like parts in the static capsules (the cosine of
the parts). How often do those that route together most, a tenth of the pairs of a program, depend?
And how well does it tell the pairs that depend from those that do not: the area under the ROC
curve, 0.5 by chance, of each program that has both kinds? Beside it the same for networks with
weights drawn by chance, and for how near two statements are in the tree (the number of steps from
one to the other).

    python benchmarks/dependencies.py --draw RESULT.json --out picture.svg

draws what the first wrote.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from origin import origin
from sklearn.metrics import roc_auc_score

from treecaps.data.corpus import Corpus
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.architectures import new_model
from treecaps.models.network import Network
from treecaps.models.trained import TrainedModel, load
from treecaps.models.treecaps import TreeCaps
from treecaps.nn.memory import tune_malloc
from treecaps.nn.tensors import to_numpy, to_tensors
from treecaps.rendering.pictures import check_picture, write_picture
from treecaps.syntax.edges import find_edges
from treecaps.syntax.functions import find_functions
from treecaps.syntax.statements import begin_statements
from treecaps.syntax.tree import Tree

DATA = {"python": "python-algorithms", "java": "java-sort", "c": "poj104"}
_CALLS = frozenset(("call", "call_expression", "method_invocation"))
_MIN_NODES, _MAX_NODES = 5, 60

Matrix = NDArray[np.float64]


def statements_of(tree: Tree) -> NDArray[np.int64]:
    """Return of each node the number of the statement that it is in."""
    begins = np.asarray(begin_statements(tree), bool)
    number = np.cumsum(begins) - 1
    found = number.copy()
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0 and not begins[node]:
            found[node] = found[parent]
    return found


def dependent(tree: Tree, statement: NDArray[np.int64]) -> Matrix:
    """Return which statements read what others wrote, or call what they define."""
    count = int(statement.max()) + 1
    found = np.zeros((count, count))
    for one, other in find_edges(tree)["LastWrite"].tolist():
        found[statement[one], statement[other]] = 1
    names: dict[str, int] = {}
    kinds, tokens = tree.kind_names(), tree.tokens()
    for function in find_functions(tree):
        names[function.name] = int(statement[function.node])
    for node, kind in enumerate(kinds):
        for child in tree.children(node).tolist() if kind in _CALLS else ():
            # What stands before the arguments, at last, is the name: f(x), self.f(x), a.b().f(x).
            if "argument" in kinds[child] and tokens[child - 1] in names:
                found[statement[node], names[tokens[child - 1]]] = 1
    found = np.maximum(found, found.T)
    np.fill_diagonal(found, 0)
    return found


def alike(network: TreeCaps, model: TrainedModel, tree: Tree, statement: Any) -> Matrix:
    """Return the cosines of what statements have to do with the static capsules."""
    config = network.config
    program, rows = WindowsAndBags.with_rows(tree, model.vocabulary, config.depths, config.feature)
    (found,), _ = network.routes(to_tensors(program, network.vectors))
    shares = to_numpy(found).astype(np.float64)
    each = shares[rows] / program.windows.count[rows, None]
    parts = np.zeros((int(statement.max()) + 1, each.shape[1]))
    np.add.at(parts, statement, each)
    parts /= np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1e-12)
    cosines: Matrix = parts @ parts.T
    return cosines


def near(tree: Tree, statement: NDArray[np.int64]) -> Matrix:
    """Return how near statements are in the tree: minus the steps from one to the other."""
    count = int(statement.max()) + 1
    first = [int(np.flatnonzero(statement == number)[0]) for number in range(count)]
    lines = []
    for node in first:
        above = [node]
        while tree.parent[above[-1]] >= 0:
            above.append(int(tree.parent[above[-1]]))
        lines.append({one: steps for steps, one in enumerate(above)})
    found = np.zeros((count, count))
    for one in range(count):
        for other in range(one):
            shared = min(
                lines[one][node] + lines[other][node] for node in lines[one].keys() & lines[other]
            )
            found[one, other] = found[other, one] = -shared
    return found


def judge(truth: Matrix, score: Matrix) -> tuple[float, float]:
    """Return the area under the ROC curve, and how many of the highest tenth are true."""
    chance = np.random.default_rng(0).random(len(score))
    highest = np.lexsort((chance, -score))[: max(len(score) // 10, 1)]
    return float(roc_auc_score(truth, score)), float(truth[highest].mean())


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the areas of each language side by side, with the deviations of programs."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    languages = result["languages"]
    kinds = [what for what, one in next(iter(languages.values())).items() if isinstance(one, dict)]
    for number, what in enumerate(kinds):
        places = [place + 0.25 * (number - 1) for place in range(len(languages))]
        areas, deviations = (
            [found[what][name] for found in languages.values()]
            for name in ("area", "deviation_of_programs")
        )
        axes.bar(places, areas, 0.22, yerr=deviations, label=what, error_kw={"linewidth": 1})
    axes.axhline(0.5, color="#555", linewidth=1, linestyle="--", label="chance")
    axes.set_xticks(range(len(languages)), [name.capitalize() for name in languages])
    axes.set_ylim(0.4, 1)
    axes.set_ylabel("area under the ROC curve", fontsize=9)
    axes.set_title("Telling statements that depend on each other", fontsize=10)
    axes.legend(fontsize=8, ncols=2)
    write_picture(figure, path)


def parse_options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--draw", type=Path, metavar="RESULT", help="draw a result, measure nothing"
    )
    parser.add_argument("--out", type=Path, metavar="PICTURE")
    parser.add_argument("--model", default="algorithms")
    parser.add_argument("--programs", type=int, default=150)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of chance")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if bool(options.draw) != bool(options.out) or bool(options.draw) == bool(options.data):
        parser.error("give --data, or --draw and --out")
    return options


def judge_language(
    language: str, data: Path, model: TrainedModel, untrained: list[Network], most: int
) -> dict[str, Any]:
    """Return how well each measure tells dependent statements, in some programs of a language."""
    (network,) = model.members
    assert isinstance(network, TreeCaps)
    corpus = Corpus.build(data / "val.jsonl.gz")
    judged: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    pairs = depend = 0
    for row in np.random.default_rng(0).permutation(len(corpus)).tolist():
        if len(judged["route together"]) == most:
            break
        tree = corpus[row]
        statement = statements_of(tree)
        count = int(statement.max()) + 1
        if corpus.languages[row] != language or not _MIN_NODES <= count <= _MAX_NODES:
            continue
        upper = np.triu_indices(count, 1)
        truth = dependent(tree, statement)[upper]
        if truth.min() == truth.max():
            continue
        pairs, depend = pairs + len(truth), depend + int(truth.sum())
        judged["route together"].append(judge(truth, alike(network, model, tree, statement)[upper]))
        chance = [
            judge(truth, alike(other, model, tree, statement)[upper])
            for other in untrained
            if isinstance(other, TreeCaps)
        ]
        judged["route together, untrained"].append(tuple(np.mean(chance, 0).tolist()))
        judged["near in the tree"].append(judge(truth, near(tree, statement)[upper]))
    return {
        "data": data.name,
        "programs": len(judged["route together"]),
        "pairs": pairs,
        "share_that_depends": round(depend / max(pairs, 1), 4),
        **{
            what: {
                "area": round(float(np.mean(values, 0)[0]), 4),
                "deviation_of_programs": round(float(np.std(values, 0)[0]), 4),
                "highest_tenth_that_depends": round(float(np.mean(values, 0)[1]), 4),
            }
            for what, values in judged.items()
        },
    }


def main() -> None:
    options = parse_options()
    if options.draw:
        check_picture(options.out)
        draw(json.loads(options.draw.read_text(encoding="utf-8")), options.out)
        return
    tune_malloc()
    torch.set_num_threads(1)
    model = load(options.model)
    sizes = (len(model.vocabulary), len(model.labels), len(model.vocabulary.tokens))
    untrained = []
    for seed in options.seeds:
        torch.manual_seed(seed)
        network = new_model(model.config, *sizes).eval()
        assert isinstance(network, Network)
        untrained.append(network)
    result: dict[str, Any] = {"model": options.model, "languages": {}}
    for language, name in DATA.items():
        result["languages"][language] = judge_language(
            language, options.data / name, model, untrained, options.programs
        )
    result |= origin()
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for language, found in result["languages"].items():
        print(language, {what: one["area"] for what, one in found.items() if isinstance(one, dict)})


if __name__ == "__main__":
    main()
