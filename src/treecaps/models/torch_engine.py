"""``TorchEngine``: runs trained models on PyTorch. It is the definition of what is right."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import Input
from treecaps.models.architectures import new_model
from treecaps.models.config import ModelConfig
from treecaps.models.engine import (
    CHOSEN,
    Arrays,
    BugScores,
    Floats,
    check_array,
    counting,
    split_batches,
)
from treecaps.models.network import Model
from treecaps.nn.tensors import to_numpy, to_tensors
from treecaps.syntax.tree import Tree

if CHOSEN:
    torch.set_num_threads(CHOSEN["threads"])


class HasOutputs(Protocol):
    """A task, as far as an engine is concerned."""

    def outputs(self, model: Model, batch: Any) -> Tensor:
        """Return what the model is for."""


class TorchEngine:
    """An engine on PyTorch, on the device that the models are on.

    Args:
        members: The models of an ensemble, all of one configuration.
        weights: How much each counts: not negative, 1 in all.
        outputs: How many outputs the head of each has.
    """

    fork_safe = False  # threads of PyTorch do not survive it

    def __init__(self, members: Sequence[Model], weights: Sequence[float], outputs: int) -> None:
        self.members, self.weights = tuple(members), tuple(weights)
        self.outputs = outputs
        self._counting = counting(self.weights, self.members)
        for member in self.members:
            member.eval()

    @property
    def config(self) -> ModelConfig:
        """What each of the models is made of."""
        return self.members[0].config

    @property
    def strongest(self) -> Model:
        """The model that counts most."""
        return self.members[self.weights.index(max(self.weights))]

    def read_trees(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Input:
        """Return programs in the form that the models read."""
        return self.members[0].read_trees(self.config, trees, vocabulary)

    def scores(self, inputs: Input) -> Floats:
        """Return the weighted mean of the members' scores, ``[B, classes]``."""

        def score(batch: Any) -> Tensor:
            found: list[Tensor] = [
                weight * member(batch).scores for weight, member in self._counting
            ]
            return sum(found[1:], found[0])

        return self._run(inputs, score, self.outputs)

    def member_scores(self, inputs: Input) -> Floats:
        """Return the scores of each member by itself, ``[members, B, classes]``."""
        alone = [TorchEngine([member], [1.0], self.outputs) for member in self.members]
        return np.stack([one.scores(inputs) for one in alone])

    def embed(self, inputs: Input) -> Floats:
        """Return the members' embeddings side by side, each as long as the root of its weight."""

        def embed(batch: Any) -> Tensor:
            found = (
                math.sqrt(weight) * functional.normalize(member.embed(batch))
                for weight, member in self._counting
            )
            return torch.cat(list(found), 1)

        return self._run(inputs, embed, 0)

    def represent(self, inputs: Input) -> Floats:
        """Return what the strongest member's head makes of programs, ``[B, E]``."""
        return self._run(inputs, self.strongest.represent, 0)

    def score_bugs(self, inputs: Input) -> BugScores:
        """Return the members' weighted mean of how suspicious nodes are."""
        return BugScores.join([self._score_bugs(some) for _, some in split_batches(inputs)])

    @torch.no_grad()
    def _score_bugs(self, inputs: Input) -> BugScores:
        batch = to_tensors(inputs, next(self.members[0].parameters()))
        offsets = np.concatenate([[0], np.cumsum(inputs.sizes)])
        found = [
            BugScores(offsets, *map(to_numpy, member.score_bugs(batch)))
            for _, member in self._counting
        ]
        return BugScores.mean([weight for weight, _ in self._counting], found)

    def predict(self, inputs: Input, task: HasOutputs) -> Floats:
        """Return what a task asks of the models: the members' weighted mean of its outputs."""

        def predict(batch: Any) -> Tensor:
            found = [weight * task.outputs(member, batch) for weight, member in self._counting]
            return sum(found[1:], found[0])

        return self._run(inputs, predict, 0)

    def arrays(self) -> Arrays:
        """Return all weights."""
        return {
            f"{number}.{name}": np.ascontiguousarray(to_numpy(tensor))
            for number, member in enumerate(self.members)
            for name, tensor in member.state_dict().items()
        }

    @classmethod
    def build(
        cls,
        config: ModelConfig,
        weights: Sequence[float],
        vocabulary: Vocabulary,
        outputs: int,
        arrays: Arrays,
    ) -> "TorchEngine":
        """Make an engine of the weights of trained models, as ``BuildEngine`` says."""
        left = dict(arrays)
        members = []
        for number in range(len(weights)):
            # On the meta device a model has shapes but no numbers: a wrong size costs nothing.
            try:
                with torch.device("meta"):
                    member = new_model(config, len(vocabulary), outputs, len(vocabulary.tokens))
            except (ArithmeticError, RuntimeError, ValueError, TypeError) as error:
                raise UsageError(f"its network cannot be built: {error}") from None
            state = {
                name: _to_tensor(f"{number}.{name}", left.pop(f"{number}.{name}", None), wanted)
                for name, wanted in member.state_dict().items()
            }
            member.load_state_dict(state, assign=True)
            members.append(member)
        if left:
            raise ValueError(f"{next(iter(left))} does not belong there")
        return cls(members, weights, outputs)

    @torch.no_grad()
    def _run(self, inputs: Input, compute: Callable[[Any], Tensor], size: int) -> Floats:
        """Compute something for all programs; for none, ``[0, size]``."""
        found = [to_numpy(compute(batch)) for _, batch in batches(inputs, self.members[0])]
        return np.concatenate(found) if found else np.zeros((0, size), np.float32)


def batches(inputs: Input, model: Model) -> Iterator[tuple[int, Any]]:
    """Yield programs in batches of bounded size for a model, each with its first's number."""
    weight = next(model.parameters())
    for begin, some in split_batches(inputs):
        yield begin, to_tensors(some, weight)


def _to_tensor(name: str, array: Any, wanted: Tensor) -> Tensor:
    """Return an array as a tensor, or raise ``ValueError`` if it is not what is wanted."""
    dtype = torch.empty(0, dtype=wanted.dtype, device="cpu").numpy().dtype
    check_array(name, array, tuple(wanted.shape), dtype)
    return torch.from_numpy(array)
