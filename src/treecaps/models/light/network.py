"""The forward pass of a TreeCaps network in NumPy, and the functions of its backward pass."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.bags import BagTensors
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.node_windows import LayerTensors
from treecaps.inputs.symbols import SymbolTensors
from treecaps.inputs.windows import WindowTensors
from treecaps.inputs.windows_and_bags import WindowsAndBagsTensors
from treecaps.models.light.arrays import (
    lengths,
    softmax,
    spread_flat_windows,
    spread_runs,
    squash,
    squash_gradient,
    sum_runs,
)
from treecaps.models.light.routing import make_static, normalize
from treecaps.models.treecaps_config import TreeCapsConfig

Weights = dict[str, NDArray[Any]]
Batch = WindowsAndBagsTensors[NDArray[Any]]
_BLOCK = 512
_PART = 8
"""If programs have more than this part of the features that are known, all are computed at once."""
Backward = list[Callable[[Floats], Floats]]
"""The functions of a backward pass, in the order of the forward pass: each returns the gradient of
a step's inputs, from that of its outputs. A step that is given such a list adds its own function.
There must be one window for each node, in order."""


class Coupled(NamedTuple):
    """The outputs of a capsule layer, and how they came about.

    Args:
        values: ``[B, M, D]``.
        predictions: ``[J, B, M, D]``, what each capsule below predicts.
        iterations: From first to last: the sum of the outputs before it ``[B, M, D]``, how much of
            each prediction counts ``[J, B, M]``, and the outputs before they are squashed.
        weight: ``[J, size, M D]``, what makes predictions of capsules.
        whitening: ``[J, size, size]``, what is done to capsules before that, if anything.
    """

    values: Floats
    predictions: Floats
    iterations: list[tuple[Floats, Floats, Floats]]
    weight: Floats
    whitening: Floats | None

    def gradient(self, gradient: Floats, form: str) -> Floats:
        """Return the gradient of the capsules below, ``[B, J, size]``."""
        of_values, of_totals = gradient, np.zeros_like(gradient)
        parts = np.zeros_like(self.predictions)
        for total, coupling, sums in reversed(self.iterations):
            of_sums = squash_gradient(sums, of_values, form)
            of_coupling = (self.predictions * of_sums).sum(3)
            agreement = coupling * (of_coupling - (coupling * of_coupling).sum(2, keepdims=True))
            parts += coupling[..., None] * of_sums + agreement[..., None] * total
            # An output is part of the totals of all iterations after it.
            of_totals = of_values = of_totals + (agreement[..., None] * self.predictions).sum(0)
        flat = parts.reshape(*parts.shape[:2], -1)
        below: Floats = np.matmul(flat, self.weight.swapaxes(1, 2))
        if self.whitening is not None:
            below = np.matmul(below, self.whitening.swapaxes(1, 2))
        return below.swapaxes(0, 1)

    def due(self) -> Floats:
        """Return for the first program ``[J, M]``, how much of each output is due to each capsule.

        That is 1 in all, or 0 where the output is nothing.
        """
        coupling = self.iterations[-1][1][:, 0]
        return normalize((self.predictions[:, 0] * self.values[0]).sum(2) * coupling)


class LightTreeCaps:
    """A TreeCaps network, as ``models.treecaps`` defines it.

    Args:
        config: What the network is made of.
        weights: Its weights by their names there.
        classes: How many code capsules there are.
    """

    def __init__(self, config: TreeCapsConfig, weights: Weights, classes: int) -> None:
        self.config, self.weights, self.classes = config, weights, classes
        self.has_tokens = "tokens.vectors" in weights

    def scores(self, batch: Batch) -> Floats:
        """Return the lengths of the code capsules, ``[B, classes]``."""
        return lengths(self.code(self.static(batch)))

    def static(self, batch: Batch) -> Floats:
        """Return the static capsules ``[B, S, D_pvc]``."""
        windows = batch.windows
        capsules, count, weight = self.primary(windows)
        offsets = np.array(windows.bounds)
        found = make_static(self.config, capsules, windows.window, count, weight, offsets)
        if not self.has_tokens or batch.bags is None:
            return found
        return np.concatenate([found, self.tokens(batch.bags)], 1)

    def code(self, static: Floats) -> Floats:
        """Return the code capsules ``[B, classes, D_cc]``."""
        if self.config.secondary:
            static = self.capsules("secondary", static, self.config.secondary)
        return self.capsules("code", static, self.classes)

    def primary(
        self,
        windows: WindowTensors[NDArray[Any]],
        vectors: Floats | None = None,
        backward: Backward | None = None,
        gates: Backward | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Return the capsules ``[W, D, C]`` of windows, their counts, and how much they weigh.

        Args:
            windows: The windows of programs.
            vectors: ``[N, V]``, other vectors for their symbols than those that it has learned.
            backward: Gets the backward functions from the capsules to the vectors.
            gates: Gets the backward function from the weights to the outputs of the last
                convolution, if there are gates.
        """
        config = self.config
        if vectors is None:
            vectors = self.symbol_vectors(windows.symbols)
        sizes = (config.vector_size, *config.hidden)
        for number, layer in enumerate(windows.layers[:-1]):
            residual = config.residual and sizes[number] == sizes[number + 1]
            vectors = self._convolve(f"hidden.{number}", vectors, layer, residual, backward)
        outputs = self._convolve("primary", vectors, windows.layers[-1], False, backward)
        count = weight = windows.count
        if config.counts == "log":
            weight = 1 + np.log(weight)
        if windows.share is not None:
            count, weight = (count * windows.share).round(), weight * windows.share
        if config.gated and not config.gate_capsules:
            weight = self._gate(outputs, weight, windows.window, gates)
        return self._capsules(outputs, backward), count, weight

    def _gate(
        self, outputs: Floats, weight: Floats, window: Longs, backward: Backward | None
    ) -> Floats:
        """Return how much windows weigh, each by a gate of its own."""
        gate = self._gates(outputs)
        if backward is not None:

            def back(gradient: Floats) -> Floats:
                return self._gates_gradient(gradient * weight, gate)

            backward.append(back)
        weighted: Floats = weight * gate[window]
        return weighted

    def _gates(self, outputs: Floats) -> Floats:
        """Return the gates ``[W]`` of windows, a softplus."""
        gate = (outputs @ self.weights["gate.weight"].T + self.weights["gate.bias"])[:, 0]
        found: Floats = np.logaddexp(0, gate)
        return found

    def _gates_gradient(self, gradient: Floats, gate: Floats) -> Floats:
        """Return the gradient of outputs ``[W, outputs]`` from that of their gates."""
        slope = -np.expm1(-gate)
        return np.outer(gradient * slope, self.weights["gate.weight"])

    def symbol_vectors(self, symbols: SymbolTensors[NDArray[Any]]) -> Floats:
        """Return for each symbol the vector of its kind, plus the mean of its sub-tokens'."""
        vectors: Floats = self.weights["vectors"][symbols.kind]
        if "token_vectors" not in self.weights:
            return vectors
        sizes = np.diff(symbols.offsets)
        share = np.repeat(1 / np.maximum(sizes, 1), sizes).astype(vectors.dtype)
        words = sum_runs(self.weights["token_vectors"], symbols.token, symbols.offsets, share)
        return vectors + words

    def _convolve(
        self,
        name: str,
        vectors: Floats,
        windows: LayerTensors[NDArray[Any]],
        residual: bool,
        backward: Backward | None,
    ) -> Floats:
        """Convolve every window once, ``[W, outputs]``."""
        member, offsets, *weights = windows.member, windows.offsets, *windows[2:]
        weight, bias = (self.weights[f"{name}.{one}"] for one in ("weight", "bias"))
        outputs = np.empty((len(offsets) - 1, len(bias)), vectors.dtype)
        slopes: list[Floats] = []  # of tanh
        # Some windows at a time, so that what is computed of them stays near the processor.
        for begin in range(0, len(outputs), _BLOCK):
            part, ends = outputs[begin : begin + _BLOCK], offsets[begin : begin + _BLOCK + 1]
            sums = sum_runs(vectors, member, ends, *weights)
            np.matmul(sums, weight, out=part)
            part += bias
            np.tanh(part, out=part)
            if backward is not None:
                slopes.append(1 - np.square(part))
            if residual:
                part += sums[:, : len(bias)]
        if backward is not None:

            def back(gradient: Floats) -> Floats:
                of_sums = (gradient * np.concatenate(slopes)) @ weight.T
                if residual:
                    of_sums[:, : gradient.shape[1]] += gradient
                if self.config.window_depth == 2:
                    return spread_flat_windows(of_sums, member, offsets, *weights[1:])
                return spread_runs(of_sums, len(vectors), member, offsets, *weights)

            backward.append(back)
        return outputs

    def _capsules(self, outputs: Floats, backward: Backward | None) -> Floats:
        """Return the capsules ``[W, D, C]`` that outputs are, squashed and gated if that is asked.

        Without a backward pass they take the place of the outputs.
        """
        form, config = self.config.squash, self.config
        capsules = outputs.reshape(len(outputs), config.primary_size, -1)
        gate = self._gates(outputs) if config.gate_capsules else None
        squashed = capsules
        if config.squash_primary:
            squashed = squash(capsules, form, 1, out=capsules if backward is None else None)
        if backward is not None:

            def back(gradient: Floats) -> Floats:
                inner = gradient if gate is None else gradient * gate[:, None, None]
                if config.squash_primary:
                    inner = squash_gradient(capsules, inner, form, 1)
                found: Floats = inner.reshape(len(gradient), -1)
                if gate is not None:
                    along = np.einsum("wdc,wdc->w", gradient, squashed)
                    found = found + self._gates_gradient(along, gate)
                return found

            backward.append(back)
        return squashed if gate is None else squashed * gate[:, None, None]

    def find_tokens(self, bags: BagTensors[NDArray[Any]]) -> tuple[Longs, NDArray[np.bool_]]:
        """Return which features of the network those of programs are, and which it knows at all."""
        known = self.weights["tokens.known"]
        place = np.minimum(np.searchsorted(known, bags.feature), len(known) - 1)
        there = known[place] == bags.feature
        return place[there], there

    def tokens(
        self,
        bags: BagTensors[NDArray[Any]],
        vectors: Floats | None = None,
        backward: Backward | None = None,
    ) -> Floats:
        """Return the static capsules of tokens, ``[B, C, D_pvc]``.

        Args:
            bags: The features of programs.
            vectors: ``[F, V]``, other vectors for the distinct ones that are known, in order.
            backward: Gets the backward function from the static capsules to the vectors.
        """
        place, there = self.find_tokens(bags)
        linear = self.weights["tokens.linear.weight"]
        many = len(place) > len(self.weights["tokens.known"]) // _PART
        if many and vectors is None and backward is None:
            number, units = place, self._every_token_unit
            outputs = units  # for the backward pass, which there is none of
        else:  # each distinct feature is computed once
            features, number = np.unique(place, return_inverse=True)
            if vectors is None:
                vectors = self.weights["tokens.vectors"][features]
            units, outputs = self.token_units(vectors)
        shape = (-1, *units.shape[1:])
        flat = units.reshape(len(units), len(linear))
        weight = self.weigh_tokens(bags.count[there])
        ends: Longs = np.concatenate([[0], np.cumsum(there)])[bags.offsets]
        sums = sum_runs(flat, number, ends, weight).reshape(shape)
        if backward is not None:
            form = self.config.squash

            def back(gradient: Floats) -> Floats:
                of_sums = squash_gradient(sums, gradient.swapaxes(1, 2), form, 1)
                of_sums = of_sums.reshape(len(sums), -1)
                found = spread_runs(of_sums, len(units), number, ends, weight).reshape(shape)
                found = squash_gradient(outputs, found, form, 1) * (1 - np.square(outputs))
                of_vectors: Floats = np.matmul(found.reshape(flat.shape), linear)
                return of_vectors

            backward.append(back)
        return squash(sums, self.config.squash, 1).swapaxes(1, 2)

    @cached_property
    def _every_token_unit(self) -> Floats:
        """The capsules of all features, for many programs: 20 MB or so, computed once."""
        return self.token_units(self.weights["tokens.vectors"])[0]

    def token_units(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return the capsules ``[F, D_pvc, C]`` of features, and the same before the squash."""
        linear, bias = (self.weights[f"tokens.linear.{name}"] for name in ("weight", "bias"))
        outputs = np.tanh(vectors @ linear.T + bias)
        outputs = outputs.reshape(-1, self.config.primary_size, self.config.token_channels)
        return squash(outputs, self.config.squash, 1), outputs

    @staticmethod
    def weigh_tokens(count: NDArray[Any]) -> Floats:
        """Return how much features weigh that occur so often."""
        found: Floats = 1 + np.log(count.astype(np.float32))
        return found

    def capsules(self, name: str, capsules: Floats, outputs: int) -> Floats:
        """Return the ``[B, M, D]`` outputs of a capsule layer for capsules ``[B, J, size]``."""
        config, weight = self.config, self.weights[f"{name}.weight"]  # [J, size, M D]
        if config.code_iterations > 1 or f"{name}.whitening" in self.weights:
            return self.couple(name, capsules, outputs).values
        # Everything goes everywhere in equal parts: no need to predict one by one.
        batch, inputs, size = capsules.shape
        sums = np.matmul(capsules.reshape(batch, -1), weight.reshape(inputs * size, -1)) / outputs
        bias = self.weights.get(f"{name}.bias", np.float32(0))
        return squash(sums.reshape(batch, outputs, -1) + bias, config.squash)

    def couple(self, name: str, capsules: Floats, outputs: int) -> Coupled:
        """Run the dynamic routing of a capsule layer."""
        config, weight = self.config, self.weights[f"{name}.weight"]
        whitening = self.weights.get(f"{name}.whitening")
        bias = self.weights.get(f"{name}.bias", np.float32(0))
        batch, inputs, _ = capsules.shape
        below = capsules.swapaxes(0, 1)
        if whitening is not None:
            below = below @ whitening
        predictions = (below @ weight).reshape(inputs, batch, outputs, -1)
        coupling: Floats = np.full((inputs, batch, outputs), 1 / outputs, predictions.dtype)
        total, iterations = np.zeros((batch, outputs, 1), predictions.dtype), []
        values = total
        for number in range(config.code_iterations):
            if number:
                coupling = softmax((predictions * total).sum(3), 2)
            sums = (predictions * coupling[..., None]).sum(0) + bias
            values = squash(sums, config.squash)
            iterations.append((total, coupling, sums))
            total = total + values
        return Coupled(values, predictions, iterations, weight, whitening)
