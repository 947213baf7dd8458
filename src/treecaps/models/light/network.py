"""The forward pass of a TreeCaps network in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treecaps.inputs.bags import BagTensors
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.inputs.node_windows import LayerTensors
from treecaps.inputs.symbols import SymbolTensors
from treecaps.inputs.windows import WindowTensors
from treecaps.inputs.windows_and_bags import WindowsAndBagsTensors
from treecaps.models.light.arrays import lengths, softmax, squash, sum_runs
from treecaps.models.light.routing import make_static
from treecaps.models.treecaps_config import TreeCapsConfig

Weights = dict[str, NDArray[Any]]
Batch = WindowsAndBagsTensors[NDArray[Any]]


class LightTreeCaps:
    """A TreeCaps network, as ``models.treecaps`` defines it.

    Args:
        config: What the network is made of.
        weights: Its weights by their names there.
        classes: How many code capsules there are.
    """

    def __init__(self, config: TreeCapsConfig, weights: Weights, classes: int) -> None:
        self.config, self.weights, self.classes = config, weights, classes

    def scores(self, batch: Batch) -> Floats:
        """Return the lengths of the code capsules, ``[B, classes]``."""
        static = self.static(batch)
        config = self.config
        if config.secondary:
            static = self._capsules("secondary", static, config.secondary)
        return lengths(self._capsules("code", static, self.classes))

    def static(self, batch: Batch) -> Floats:
        """Return the static capsules ``[B, S, D_pvc]``."""
        windows, config = batch.windows, self.config
        capsules, count, weight = self._primary(windows)
        offsets = np.array(windows.bounds)
        found = make_static(config, capsules, windows.window, count, weight, offsets)
        if "tokens.vectors" not in self.weights or batch.bags is None:
            return found
        return np.concatenate([found, self._token_capsules(batch.bags)], 1)

    def _primary(self, windows: WindowTensors[NDArray[Any]]) -> tuple[Floats, Floats, Floats]:
        """Return the capsules ``[W, D, C]`` of windows, their counts, and how much they weigh."""
        config = self.config
        vectors = self._symbol_vectors(windows.symbols)
        sizes = (config.vector_size, *config.hidden)
        for number, layer in enumerate(windows.layers[:-1]):
            residual = config.residual and sizes[number] == sizes[number + 1]
            vectors = self._convolve(f"hidden.{number}", vectors, layer, residual)
        outputs = self._convolve("primary", vectors, windows.layers[-1])
        count = weight = windows.count
        if config.counts == "log":
            weight = 1 + np.log(weight)
        if windows.share is not None:
            count, weight = (count * windows.share).round(), weight * windows.share
        if config.gated:
            gate = outputs @ self.weights["gate.weight"].T + self.weights["gate.bias"]
            weight = weight * np.logaddexp(0, gate)[windows.window, 0]
        capsules = outputs.reshape(len(outputs), config.primary_size, -1)
        if config.squash_primary:
            capsules = squash(capsules, config.squash, 1)
        return capsules, count, weight

    def _symbol_vectors(self, symbols: SymbolTensors[NDArray[Any]]) -> Floats:
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
        residual: bool = False,
    ) -> Floats:
        """Convolve every window once, ``[W, outputs]``."""
        weights = (windows.top, windows.left, windows.right)
        sums = sum_runs(vectors, windows.member, windows.offsets, *weights)
        outputs = np.tanh(sums @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])
        return outputs + sums[:, : outputs.shape[1]] if residual else outputs

    def _token_capsules(self, bags: BagTensors[NDArray[Any]]) -> Floats:
        """Return the static capsules of tokens, ``[B, C, D_pvc]``."""
        known, config = self.weights["tokens.known"], self.config
        place = np.minimum(np.searchsorted(known, bags.feature), len(known) - 1)
        there = known[place] == bags.feature
        # Each distinct feature is computed once.
        features, number = np.unique(place[there], return_inverse=True)
        vectors = self.weights["tokens.vectors"][features]
        outputs = vectors @ self.weights["tokens.linear.weight"].T
        outputs = np.tanh(outputs + self.weights["tokens.linear.bias"])
        capsules = outputs.reshape(-1, config.primary_size, config.token_channels)
        capsules = squash(capsules, config.squash, 1).reshape(outputs.shape)
        weight = 1 + np.log(bags.count[there].astype(np.float32))
        ends: Longs = np.concatenate([[0], np.cumsum(there)])[bags.offsets]
        sums = sum_runs(capsules, number, ends, weight)
        sums = sums.reshape(-1, config.primary_size, config.token_channels)
        return squash(sums, config.squash, 1).swapaxes(1, 2)

    def _capsules(self, name: str, capsules: Floats, outputs: int) -> Floats:
        """Return the ``[B, M, D]`` outputs of a capsule layer for capsules ``[B, J, size]``."""
        config, weight = self.config, self.weights[f"{name}.weight"]  # [J, size, M D]
        bias = self.weights.get(f"{name}.bias", np.float32(0))
        batch, inputs, size = capsules.shape
        whitening = self.weights.get(f"{name}.whitening")
        if config.code_iterations == 1 and whitening is None:
            sums = np.matmul(capsules.reshape(batch, -1), weight.reshape(inputs * size, -1))
            return squash((sums / outputs).reshape(batch, outputs, -1) + bias, config.squash)
        below = capsules.swapaxes(0, 1)
        if whitening is not None:
            below = below @ whitening
        predictions = (below @ weight).reshape(inputs, batch, outputs, -1)
        values = squash(predictions.sum(0) / outputs + bias, config.squash)
        total = values
        for _ in range(1, config.code_iterations):
            coupling = softmax((predictions * total).sum(3), 2)
            values = squash((predictions * coupling[..., None]).sum(0) + bias, config.squash)
            total = total + values
        return values
