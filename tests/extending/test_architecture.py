"""A new architecture: the mean of the vectors of all nodes, and a linear layer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from torch import Tensor, nn

from tests.training.examples import example_labels, example_trees
from treecaps import TreeCapsClassifier, load, train
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.windows import Windows, WindowTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.registry import REGISTERED, Recommended, register_architecture
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class MeanConfig(NetworkConfig):
    """Hyperparameters of a mean of node vectors."""


class Mean(Network):
    """The mean of the vectors of all nodes, and a linear layer."""

    @classmethod
    def read_trees(
        cls, config: MeanConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Windows:
        """Return what nodes show, with counts."""
        return Windows.from_trees(trees, vocabulary, depths=())

    def __init__(self, config: MeanConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        self.output = nn.Linear(config.vector_size, classes)

    def forward(self, batch: WindowTensors[Tensor]) -> Logits:
        """Sum the vectors of programs, divide by their sizes, classify."""
        weighted = self.symbol_vectors(batch.symbols)[batch.window] * batch.count.unsqueeze(1)
        sums = weighted.new_zeros(len(batch), weighted.shape[1])
        sums = sums.index_add(0, batch.program, weighted)
        sizes = batch.count.new_zeros(len(batch)).index_add(0, batch.program, batch.count)
        return Logits.of(self.output(sums / sizes.unsqueeze(1)))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    settings = {"epochs": 60, "learning_rate": 0.05, "vectors": "random", "val_share": 0.0}
    register_architecture("mean", default=Recommended(MeanConfig(), settings))(Mean)
    yield
    del REGISTERED["mean"]


def test_a_new_architecture_is_trained_kept_and_loaded(tmp_path: Path) -> None:
    trees, labels = example_trees(), example_labels()
    model = train(trees, labels, model="mean", folder=tmp_path / "model")
    guesses = model.scores(model.read_trees(trees)).argmax(1).tolist()
    right = [model.labels[guess] == label for guess, label in zip(guesses, labels, strict=True)]
    assert sum(right) > 0.6 * len(right)
    again = load(tmp_path / "model")
    assert isinstance(again.members[0], Mean)
    assert again.fingerprint() == model.fingerprint()


def test_the_estimator_takes_it() -> None:
    trees, labels = example_trees(), example_labels()
    found = TreeCapsClassifier(model="mean", epochs=2).fit(trees, labels).predict(trees[:3])
    assert set(found) <= set(labels)


def test_a_configuration_stands_for_one_architecture() -> None:
    with pytest.raises(UsageError, match="MeanConfig is the configuration of mean; other needs"):
        register_architecture("other", default=Recommended(MeanConfig(), {}))
    with pytest.raises(UsageError, match="other needs a preset called default"):
        register_architecture("other", small=Recommended(MeanConfig(), {}))
