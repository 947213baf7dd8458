"""``NumpyEngine``: runs trained TreeCaps models without PyTorch."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import Floats, Input
from treecaps.inputs.node_graphs import NodeGraphs
from treecaps.inputs.windows_and_bags import WindowsAndBags
from treecaps.models.config import ModelConfig
from treecaps.models.engine import Arrays, BugScores, check_array, counting, split_batches
from treecaps.models.light.network import Batch, LightTreeCaps, Weights
from treecaps.models.light.readout import FLOW, READ_EDGES, score_bugs
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.syntax.tree import Tree

_LEAST = 1e-12
"""Below this, a vector is not made longer."""


class NumpyEngine:
    """An engine in NumPy, for the architecture treecaps.

    Args:
        config: What each network is made of.
        weights: How much each counts: not negative, 1 in all.
        outputs: How many code capsules each has.
        arrays: The weights of all networks.
    """

    fork_safe = True

    def __init__(
        self, config: TreeCapsConfig, weights: Sequence[float], outputs: int, arrays: Arrays
    ) -> None:
        self.config, self.weights, self.outputs = config, tuple(weights), outputs
        self._arrays = arrays
        members: list[Weights] = [{} for _ in weights]
        for name, array in arrays.items():
            number, _, rest = name.partition(".")
            members[int(number)][rest] = array
        every = [LightTreeCaps(config, member, outputs) for member in members]
        self.networks = counting(self.weights, every)
        """The networks that count, with their weights."""

    @classmethod
    def build(
        cls,
        config: ModelConfig,
        weights: Sequence[float],
        vocabulary: Vocabulary,
        outputs: int,
        arrays: Arrays,
    ) -> "NumpyEngine":
        """Make an engine of the weights of trained models, as ``BuildEngine`` says."""
        # A subclass is another architecture, whatever it makes of these weights.
        if type(config) is not TreeCapsConfig:
            raise UsageError("only models of the architecture treecaps run without PyTorch")
        left, ordered = dict(arrays), {}
        for number in range(len(weights)):
            for name, shape in _shapes(config, len(vocabulary), outputs, len(vocabulary.tokens)):
                full = f"{number}.{name}"
                check_array(full, arrays.get(full), shape, np.dtype(_TYPES.get(name, np.float32)))
                ordered[full] = left.pop(full)
        if left:
            raise ValueError(f"{min(left)} does not belong there")
        return cls(config, weights, outputs, ordered)

    def read_trees(
        self, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> WindowsAndBags | NodeGraphs:
        """Return programs in the form that the networks read."""
        if self.config.readout:
            return NodeGraphs.from_trees(trees, vocabulary, len(self.config.depths))
        return WindowsAndBags.from_trees(trees, vocabulary, self.config.depths, self.config.feature)

    def scores(self, inputs: Input) -> Floats:
        """Return the weighted mean of the networks' scores, ``[B, classes]``."""

        def score(batch: Batch) -> Floats:
            found = [np.float32(weight) * one.scores(batch) for weight, one in self.networks]
            return sum(found[1:], found[0])

        return self._run(inputs, score, self.outputs)

    def embed(self, inputs: Input) -> Floats:
        """Return the networks' embeddings side by side, each as long as the root of its weight."""

        def embed(batch: Batch) -> Floats:
            found = []
            for weight, one in self.networks:
                static = one.static(batch)
                flat = static.reshape(len(static), -1)
                length = np.linalg.norm(flat, axis=1, keepdims=True)
                found.append(np.float32(math.sqrt(weight)) * (flat / np.maximum(length, _LEAST)))
            return np.concatenate(found, 1)

        return self._run(inputs, embed, 0)

    def score_bugs(self, inputs: Input) -> BugScores:
        """Return the networks' weighted mean of how suspicious nodes are."""
        if not self.config.readout:
            raise UsageError("this model has no read-out for nodes: use one that finds bugs")
        weights = [weight for weight, _ in self.networks]
        found = []
        for _, some in split_batches(inputs):
            batch: Any = some.to_tensors(np.asarray)
            found.append(
                BugScores.mean(weights, [score_bugs(one, batch) for _, one in self.networks])
            )
        return BugScores.join(found)

    def arrays(self) -> Arrays:
        """Return all weights."""
        return self._arrays

    def _run(self, inputs: Input, compute: Callable[[Batch], Floats], size: int) -> Floats:
        """Compute something for all programs; for none, ``[0, size]``."""
        found = [compute(some.to_tensors(np.asarray)) for _, some in split_batches(inputs)]
        return np.concatenate(found) if found else np.zeros((0, size), np.float32)


def _shapes(
    config: TreeCapsConfig, kinds: int, classes: int, tokens: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and shapes of the weights of a network, in the order of its state."""
    yield "vectors", (kinds, config.vector_size)
    if tokens:
        yield "token_vectors", (tokens, config.vector_size)
    sizes = (config.vector_size, *config.hidden, config.channels * config.slices)
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        last = number == len(config.hidden)
        name = "primary" if last else f"hidden.{number}"
        yield f"{name}.weight", (3 * inputs, outputs)
        yield f"{name}.bias", (outputs,)
    if config.gated:
        yield "gate.weight", (1, sizes[-1])
        yield "gate.bias", (1,)
    size, statics = config.primary_size, config.static_capsules
    if config.feature:
        yield "tokens.vectors", (config.token_features, config.vector_size)
        yield "tokens.known", (config.token_features,)
        yield "tokens.linear.weight", (config.token_channels * size, config.vector_size)
        yield "tokens.linear.bias", (config.token_channels * size,)
    layers = [("code", 0 if config.readout else classes, config.code_size)]
    if config.secondary:
        layers.insert(0, ("secondary", config.secondary, config.secondary_size))
    for number, (name, outputs, output_size) in enumerate(layers):
        yield f"{name}.weight", (statics, size, outputs * output_size)
        if config.code_bias:
            yield f"{name}.bias", (outputs, output_size)
        if config.whiten_static and not number:
            yield f"{name}.whitening", (statics, size, size)
        statics, size = outputs, output_size
    if config.windows and classes and not config.readout:
        yield from _decoder_shapes(config, classes)
    if config.readout:
        yield from _readout_shapes(config, classes)


def _readout_shapes(config: TreeCapsConfig, kinds: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the weights of the read-out for nodes."""
    size, inputs, both = config.readout, config.vector_size, config.readout
    inputs += config.channels * config.slices
    if config.readout_static:
        inputs, both = inputs + config.static_capsules, 2 * size
    ways = 2 * sum(config.readout_flow or name != FLOW for name in READ_EDGES)
    linear = {"inputs": (size, inputs)}
    for number in range(config.readout_rounds):
        linear[f"rounds.{number}"] = size, (1 + ways) * size
        yield f"readout.norms.{number}.weight", (size,)
        yield f"readout.norms.{number}.bias", (size,)
    if config.readout_static:
        linear["program"] = size, config.embedding_size
    for name in ("bug", "none"):
        linear |= {f"{name}.0": (size, both), f"{name}.2": (1, size)}
    for name, shape in {**linear, "kinds": (kinds, size)}.items():
        yield f"readout.{name}.weight", shape
        yield f"readout.{name}.bias", shape[:1]


def _decoder_shapes(config: TreeCapsConfig, classes: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the weights of the decoder, which answers do not depend on."""
    hidden, longest = 64, 16
    yield "decoder.first", (classes, config.code_size, hidden)
    yield "decoder.bias", (hidden,)
    yield "decoder.known", (config.windows, longest)
    yield "decoder.second.weight", (config.windows + 1, hidden)
    yield "decoder.second.bias", (config.windows + 1,)


_TYPES: dict[str, Any] = {"tokens.known": np.int64, "decoder.known": np.int32}
