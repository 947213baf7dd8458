"""How well programs find others that solve the same problem, of problems that nobody has seen.

    python benchmarks/retrieval.py --data DIR --on problems --models similar --json

``DIR`` holds the data sets. ``problems``: what has to be fitted learns from its training part, and
the programs of its validation part look for each other. ``poj104``: problems 1-64 and 81-104 (with
``--validation``, 65-80), of both of its parts; score the last rarely, and never to choose by.

Each program is a query among all others, as they are and all of them blind; among all, among those
of its language, and among those of other languages. What is told is MAP@R in per cent, for

- the cosine of the TF-IDF of tokens, and of tokens with pairs of neighbours;
- a linear discriminant: TF-IDF of tree n-grams (nodes with their children, runs of leaves), the
  largest singular vectors of that, and the linear discriminant of problems, fitted to programs as
  they are and blind;
- a network that has learned nothing;
- trained models: the mean of all that are named, and their sample deviation.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray
from origin import origin

from treecaps.data.corpus import Corpus
from treecaps.data.sequences import Joined, Selection
from treecaps.inputs.bags import Bags, Feature
from treecaps.models.trained import TrainedModel
from treecaps.models.trained import load as load_model
from treecaps.syntax.blind import blind as make_blind
from treecaps.syntax.tree import Tree
from treecaps.tasks.retrieval import maps_at_r
from treecaps.training.prepare import change_trees

Rows = NDArray[np.int64]
Scores = dict[str, float]

POJ = {"learn": range(1, 65), "choose": range(65, 81), "score": range(81, 105)}
FEATURES: tuple[Feature, ...] = ("windows", "leaves")
HASHES = 1 << 18
"""How many columns the features of programs are hashed to."""
SINGULAR = 512
SAMPLE = 20_000
"""How many programs the baselines learn from at most."""


class Programs:
    """Programs with labels, as they are and blind."""

    def __init__(self, parts: Sequence[Path], labels: Callable[[str], bool]) -> None:
        seen = [Corpus.build(part) for part in parts]
        # A program that cannot be made blind stays as it is.
        blind = [
            change_trees(
                Selection(part, np.arange(len(part))), "blind", make_blind, "tree-sitter", False
            )
            for part in seen
        ]
        label = [name or "" for part in seen for name in part.labels]
        rows = np.flatnonzero([labels(one) for one in label])
        self.views = {
            "as is": Selection(Joined(seen), rows),
            "blind": Selection(Joined(blind), rows),
        }
        self.label = np.unique(np.array(label)[rows], return_inverse=True)[1]
        language = [name for part in seen for name in part.languages]
        self.language = np.unique(np.array(language)[rows], return_inverse=True)[1]

    def __len__(self) -> int:
        return len(self.label)


class Sparse:
    """A sparse matrix whose products are dense, for ``maps_at_r``."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __getitem__(self, rows: Rows) -> "Sparse":
        return Sparse(self.matrix[rows])

    @property
    def T(self) -> "Sparse":  # noqa: N802
        """The transposed matrix, by NumPy's name."""
        return Sparse(self.matrix.T)

    def __matmul__(self, other: "Sparse") -> NDArray[np.float32]:
        found: NDArray[np.float32] = (self.matrix @ other.matrix).toarray()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--on", choices=("problems", "poj104"), default="problems")
    parser.add_argument("--models", nargs="*", default=[], help="trained models")
    parser.add_argument("--validation", action="store_true", help="score problems 65-80 of poj104")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    learn, asked = load(options.data, options.on, options.validation)

    def score(name: str, vectors: Callable[[Sequence[Tree]], Any]) -> Scores:
        found = {}
        for view, trees in asked.views.items():
            for kind, value in maps_at_r(vectors(trees), asked.label, asked.language).items():
                if value is not None:
                    place = kind.removeprefix("map_at_r").removeprefix("_") or "all"
                    found[f"{place}, {view}"] = round(100 * value, 2)
        print(name, found, file=sys.stderr, flush=True)
        return found

    rows: dict[str, Scores] = {}
    for name, most in (("TF-IDF of tokens", 1), ("TF-IDF of tokens and pairs", 2)):
        rows[name] = score(name, fit_tokens(learn, most))
    rows["linear discriminant"] = score("linear discriminant", fit_discriminant(learn))
    trained = []
    for number, name in enumerate(options.models):
        model = load_model(name)
        if not number:
            rows["untrained"] = score("untrained", embed(forget(model)))
        trained.append(score(name, embed(model)))
    if trained:
        rows["trained for similarity"] = {
            place: round(mean(one[place] for one in trained), 2) for place in trained[0]
        }
    result = {
        "data": options.on,
        "programs": {"learned": len(learn), "scored": len(asked)},
        "problems": int(asked.label.max()) + 1,
        "languages": int(asked.language.max()) + 1,
        "map_at_r": rows,
        "models": trained,
        **({"deviation": deviations(trained)} if len(trained) > 1 else {}),
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, row in rows.items():
        print(name, row)


def load(data: Path, name: str, validation: bool) -> tuple[Programs, Programs]:
    """Return the programs to learn from, and those that are scored."""
    parts = [data / name / f"{part}.jsonl.gz" for part in ("train", "val")]
    if name == "problems":
        first, second = (Programs([part], bool) for part in parts)
        return first, second

    def among(problems: range) -> Programs:
        return Programs(parts, lambda label: label.isdigit() and int(label) in problems)

    return among(POJ["learn"]), among(POJ["choose" if validation else "score"])


def sample(programs: Programs) -> Rows:
    """Return some programs, the same each time."""
    rows = np.random.default_rng(0).permutation(len(programs))[:SAMPLE]
    return np.sort(rows)


def fit_tokens(learn: Programs, most: int) -> Callable[[Sequence[Tree]], Any]:
    """Return the TF-IDF of tokens and of so many of them in a row, weighed by some programs."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def texts(trees: Sequence[Tree]) -> list[str]:
        return [tree.text.decode("utf-8", "replace") for tree in trees]

    weigh = TfidfVectorizer(
        token_pattern=r"\w+|[^\w\s]", ngram_range=(1, most), sublinear_tf=True, lowercase=False
    ).fit(texts(Selection(learn.views["as is"], sample(learn))))
    return lambda trees: Sparse(weigh.transform(texts(trees)).astype(np.float32))


def fit_discriminant(learn: Programs) -> Callable[[Sequence[Tree]], Any]:
    """Return the linear discriminant of problems, of the TF-IDF of tree n-grams."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import normalize

    chosen = sample(learn)
    counts = [count(Selection(view, chosen)) for view in learn.views.values()]
    weigh = TfidfTransformer(sublinear_tf=True).fit(stack(counts))
    reduce = TruncatedSVD(SINGULAR, random_state=0, n_iter=3)
    reduce.fit(stack([weigh.transform(one) for one in counts]))

    def project(trees: Sequence[Tree]) -> NDArray[np.float32]:
        rows = np.array_split(np.arange(len(trees)), len(trees) // 4096 + 1)
        parts = [reduce.transform(weigh.transform(count(Selection(trees, one)))) for one in rows]
        found: NDArray[np.float32] = normalize(np.concatenate(parts)).astype(np.float32)
        return found

    known = np.concatenate([project(Selection(view, chosen)) for view in learn.views.values()])
    separate = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1)
    separate.fit(known, np.tile(learn.label[chosen], len(learn.views)))
    return lambda trees: normalize(separate.transform(project(trees))).astype(np.float32)


def stack(matrices: Sequence[Any]) -> Any:
    from scipy.sparse import vstack

    return vstack(matrices, format="csr")


def count(trees: Sequence[Tree]) -> Any:
    """Return how often each program has each feature, ``[B, HASHES]``, sparse."""
    from scipy.sparse import csr_matrix

    found = None
    for feature in FEATURES:
        bags = Bags.from_trees(trees, feature)
        columns = (bags.feature % HASHES).astype(np.int32)
        shape = (len(bags), HASHES)
        one = csr_matrix((bags.count.astype(np.float32), columns, bags.offsets), shape=shape)
        one.sum_duplicates()
        found = one if found is None else found + one
    return found


def embed(model: TrainedModel) -> Callable[[Sequence[Tree]], Any]:
    """Return the embeddings of a model."""

    def vectors(trees: Sequence[Tree]) -> NDArray[np.float32]:
        rows = np.array_split(np.arange(len(trees)), len(trees) // 2048 + 1)
        return np.concatenate(
            [model.embeddings(model.read_trees(Selection(trees, one))) for one in rows]
        )

    return vectors


def forget(model: TrainedModel) -> TrainedModel:
    """Return a model with a network like another's first, that has learned nothing but features."""
    import torch

    from treecaps.models.architectures import new_model
    from treecaps.models.torch_engine import TorchEngine
    from treecaps.models.treecaps import TreeCaps

    known, learned = model.vocabulary, model.members[0]
    torch.manual_seed(0)
    network = new_model(model.config, len(known), 0, len(known.tokens))
    assert isinstance(network, TreeCaps)
    assert isinstance(learned, TreeCaps)
    if network.tokens and learned.tokens:
        network.tokens.known.copy_(learned.tokens.known)
    return TrainedModel(TorchEngine([network], [1.0], 0), known, ())


def deviations(trained: list[Scores]) -> Scores:
    """Return the sample deviation of models."""
    return {place: round(stdev(one[place] for one in trained), 2) for place in trained[0]}


if __name__ == "__main__":
    main()
