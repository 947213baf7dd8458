"""A new task: which nodes of a program are names? A score for each node, not for the program."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from tests.training.examples import example_trees
from treecaps import train
from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inference.classify import classify
from treecaps.models.architectures import ARCHITECTURES
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Network
from treecaps.models.registry import Recommended, register_architecture
from treecaps.nn.batch import Batch
from treecaps.syntax.tree import Tree
from treecaps.tasks import TASKS, Task, register_task
from treecaps.tasks.base import Batches
from treecaps.tasks.examples import Examples


@dataclass(frozen=True)
class NodesConfig(NetworkConfig):
    """Hyperparameters of a network that scores nodes."""

    def forest(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Forest:
        """Keep all nodes."""
        return Forest.of(trees, vocabulary, (), graphs=True)


class Nodes(Network):
    """A linear layer on the vector of each node."""

    def __init__(self, config: NodesConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        self.output = nn.Linear(config.vector_size, 1)

    def score_nodes(self, batch: Batch) -> Tensor:
        """Return ``[N]``, the scores of all nodes of the programs, one program after another."""
        assert batch.graphs is not None
        vectors = self.symbol_vectors(batch.symbols)[batch.graphs.symbol]
        scores: Tensor = self.output(vectors).squeeze(1)
        return scores


@dataclass(frozen=True)
class NodeTargets:
    """For each program ``[n]``, what is to be predicted of its nodes."""

    values: Sequence[Tensor]

    def __getitem__(self, rows: Any) -> Tensor:
        return torch.cat([self.values[row] for row in np.asarray(rows).tolist()])


@dataclass(frozen=True)
class FindNames(Task):
    """Learn which nodes are names."""

    name: ClassVar = "find-names"
    metric: ClassVar = "node_accuracy"
    title: ClassVar = "accuracy of nodes"
    needs_labels: ClassVar = False

    def head_size(self, labels: Sequence[str]) -> int:
        return 1

    def labels(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def targets(self, trees: Sequence[Tree], label: Tensor) -> NodeTargets:
        return NodeTargets(
            [
                torch.tensor([float("identifier" in kind) for kind in tree.kind_names()])
                for tree in trees
            ]
        )

    def training_step(
        self, network: Network, batch: Batch, target: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss = binary_cross_entropy_with_logits(self.outputs(network, batch), target)
        return loss, {"loss": loss.detach()}

    def outputs(self, network: Network, batch: Batch) -> Tensor:
        assert isinstance(network, Nodes)
        return network.score_nodes(batch)

    def validate(self, network: Network, batches: Batches, examples: Examples) -> dict[str, Any]:
        network.eval()
        with torch.no_grad():
            scores = torch.cat([self.outputs(network, batch) for _, batch in batches])
        target = examples.target[range(len(examples))]
        return {
            "val_node_accuracy": ((scores > 0) == (target > 0)).double().mean().item(),
            "val_loss": binary_cross_entropy_with_logits(scores, target).item(),
        }

    def summary(self, labels: Sequence[str]) -> str:
        return "It finds names."


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    settings = {"epochs": 60, "learning_rate": 0.05, "vectors": "random"}
    register_architecture("nodes", default=Recommended(NodesConfig(), settings))(Nodes)
    register_task(FindNames)
    yield
    del ARCHITECTURES["nodes"], TASKS["find-names"]


def test_a_task_that_scores_nodes_is_learned() -> None:
    trees = example_trees()
    model = train(trees, [None] * len(trees), model="nodes", task="find-names")
    best = model.card["members"][0]["validation_node_accuracy"]
    assert best > 0.95
    with pytest.raises(UsageError, match="trained for find-names and knows no classes"):
        classify(model, [])
