"""A new task: which nodes of a program are names? A score for each node, not for the program."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from tests.training.examples import example_trees
from treecaps import load, train
from treecaps.cli.train import command
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inference.classify import classify
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.graphs import Graphs, GraphTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Model, Network
from treecaps.models.registry import REGISTERED, Recommended, register_architecture
from treecaps.models.torch_engine import TorchEngine
from treecaps.syntax.tree import Tree
from treecaps.tasks import TASKS, Task, register_task
from treecaps.tasks.base import Batches
from treecaps.tasks.examples import Examples
from treecaps.training.prepare import prepare
from treecaps.training.presets import apply_settings, get_preset


@dataclass(frozen=True)
class NodesConfig(NetworkConfig):
    """Hyperparameters of a network that scores nodes."""


class Nodes(Network):
    """A linear layer on the vector of each node."""

    @classmethod
    def read_trees(
        cls, config: NodesConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Graphs:
        """Return all nodes."""
        return Graphs.from_trees(trees, vocabulary)

    def __init__(self, config: NodesConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        self.output = nn.Linear(config.vector_size, classes)

    def score_nodes(self, graphs: GraphTensors[Tensor]) -> Tensor:
        """Return ``[N]``, the scores of all nodes of the programs, one program after another."""
        vectors = self.symbol_vectors(graphs.symbols)[graphs.symbol]
        scores: Tensor = self.output(vectors).squeeze(1)
        return scores


@dataclass(frozen=True)
class NodeTargets:
    """For each program ``[n]``, what is to be predicted of its nodes."""

    values: Sequence[Floats]

    def __getitem__(self, rows: Any) -> Floats:
        return np.concatenate([self.values[row] for row in np.asarray(rows).tolist()])


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

    def targets(
        self, trees: Sequence[Tree], label: Longs, names: Sequence[str] = ()
    ) -> NodeTargets:
        return NodeTargets(
            [
                np.array(["identifier" in kind for kind in tree.kind_names()], np.float32)
                for tree in trees
            ]
        )

    def training_step(
        self, model: Model, batch: Any, target: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss = binary_cross_entropy_with_logits(self.outputs(model, batch), target)
        return loss, {"loss": loss.detach()}

    def outputs(self, model: Model, batch: Any) -> Tensor:
        assert isinstance(model, Nodes)
        return model.score_nodes(batch)

    def validate(self, model: Model, batches: Batches, examples: Examples) -> dict[str, Any]:
        scores = torch.cat([self.outputs(model, batch) for _, batch in batches])
        target = torch.from_numpy(examples.target[range(len(examples.inputs))])
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
    del REGISTERED["nodes"], TASKS["find-names"]


def test_a_task_that_scores_nodes_is_learned_kept_and_asked(tmp_path: Path) -> None:
    trees = example_trees()
    model = train(trees, model="nodes", task="find-names", folder=tmp_path / "model")
    best = model.card["members"][0]["validation_node_accuracy"]
    assert best > 0.95
    again = load(tmp_path / "model")
    assert isinstance(again.engine, TorchEngine)
    scores = again.engine.predict(again.read_trees(trees[:3]), FindNames())
    kinds = [kind for tree in trees[:3] for kind in tree.kind_names()]
    right = [
        (score > 0) == ("identifier" in kind) for score, kind in zip(scores, kinds, strict=True)
    ]
    assert sum(right) > 0.95 * len(right)
    with pytest.raises(UsageError, match="knows no classes: train another with"):
        classify(model, [])


@pytest.mark.parametrize("setting", ["rename_probability=0.5", "rewrite_probability=0.5"])
def test_its_targets_are_those_of_the_view_that_a_step_sees(setting: str) -> None:
    preset = get_preset(model="nodes", task="find-names")
    preset = apply_settings(preset, ["epochs=2", "nodes=kinds+tokens", setting])
    model = train(example_trees(), preset=preset)
    assert model.card["metrics"]["epochs"] == 2


def test_the_help_works_without_options_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["--help"], prog_name="train")
    assert "Names for --set with --task similarity" in capsys.readouterr().out


def test_other_targets_are_other_data() -> None:
    preset = get_preset(model="nodes", task="find-names")
    trees: list[Tree] = example_trees()[:6]

    def fingerprint(task: FindNames) -> str:
        return prepare(
            trees, [None] * 6, None, read_trees=preset.read_trees, val_share=0.5, seed=0, task=task
        ).fingerprint()

    class FindNothing(FindNames):
        def targets(
            self, trees: Sequence[Tree], label: Longs, names: Sequence[str] = ()
        ) -> NodeTargets:
            return NodeTargets([np.zeros(len(tree), np.float32) for tree in trees])

    assert fingerprint(FindNames()) == fingerprint(FindNames()) != fingerprint(FindNothing())
