"""A new engine: linear models computed with NumPy, without PyTorch."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import EXAMPLES
from tests.training.examples import example_labels, example_trees
from treecaps import Classification, load, train
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.bags import Bags
from treecaps.inputs.base import Floats, Input
from treecaps.models.config import ModelConfig
from treecaps.models.engine import Arrays
from treecaps.models.linear import LinearConfig
from treecaps.syntax.tree import Tree


class NumPyLinear:
    """Runs one linear model."""

    weights = (1.0,)
    fork_safe = True

    def __init__(self, config: LinearConfig, outputs: int, arrays: Arrays) -> None:
        self.config, self.outputs, self._arrays = config, outputs, arrays

    @classmethod
    def build(
        cls,
        config: ModelConfig,
        weights: Sequence[float],
        vocabulary: Vocabulary,
        outputs: int,
        arrays: Arrays,
    ) -> "NumPyLinear":
        """Make an engine of what a model's folder holds."""
        if not isinstance(config, LinearConfig) or len(weights) > 1:
            raise UsageError("this engine runs one linear model")
        return cls(config, outputs, arrays)

    def read_trees(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Bags:
        """Return the counts of features."""
        return Bags.from_trees(trees, self.config.FEATURE)

    def scores(self, inputs: Input) -> Floats:
        """Return the softmax of the distances to the planes."""
        assert isinstance(inputs, Bags)
        feature, rarity, weight, bias = (
            self._arrays[f"0.{name}"] for name in ("feature", "rarity", "weight", "bias")
        )
        rows = []
        for begin, end in zip(inputs.offsets[:-1], inputs.offsets[1:], strict=True):
            _, mine, known = np.intersect1d(inputs.feature[begin:end], feature, return_indices=True)
            values = (1 + np.log(inputs.count[begin:end][mine])) * rarity[known]
            distances = values @ weight[known] / np.linalg.norm(values) + bias
            rows.append(np.exp(distances) / np.exp(distances).sum())
        return np.array(rows, np.float32)

    def embed(self, inputs: Input) -> Floats:
        """Refuse: a linear model has no embeddings."""
        raise UsageError("a linear model has no vectors of programs")

    def arrays(self) -> Arrays:
        """Return all weights."""
        return self._arrays


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("svm") / "model"
    train(example_trees(), example_labels(), model="svm-tokens", folder=folder)
    return folder


def test_another_engine_gives_the_same_scores(folder: Path) -> None:
    ours, theirs = load(folder, engine=NumPyLinear.build), load(folder)
    trees = example_trees()
    np.testing.assert_allclose(
        ours.scores(ours.read_trees(trees)), theirs.scores(theirs.read_trees(trees)), atol=1e-5
    )


def test_it_classifies_and_is_kept(folder: Path, tmp_path: Path) -> None:
    model = load(folder, engine=NumPyLinear.build)
    files = EXAMPLES[:2]
    answers = list(model.classify(files))
    assert all(isinstance(answer, Classification) for answer in answers)
    model.save(tmp_path)
    assert load(tmp_path).fingerprint() == load(folder).fingerprint()


def test_what_it_cannot_run_is_refused() -> None:
    with pytest.raises(UsageError, match="this engine runs one linear model"):
        NumPyLinear.build(ModelConfig(), (1.0,), Vocabulary([]), 2, {})
