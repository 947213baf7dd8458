"""``Calibration``: from lengths of capsules, or similarities, to probabilities; and "unknown"."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNKNOWN = "unknown"
"""What is said of a program in which no class is present enough."""
_TYPES = {"temperature": float, "threshold": float, "min_nodes": int}
_COLDEST, _HOTTEST = 1e-6, 1e6
"""Far beyond what calibration finds; divided by less, lengths may be infinite."""


@dataclass(frozen=True)
class Calibration:
    """How lengths become probabilities, and when the answer is unknown.

    As they come, lengths make a softmax that is nearly flat and says little. For models that are
    trained for similarity, this is about the similarity of two programs instead.

    Args:
        temperature: What lengths are divided by before the softmax; 1 is the paper's.
        threshold: Below this length of the longest code capsule, the answer is unknown.
        min_nodes: A program whose tree has fewer nodes is too little code to tell.
        none: The length that stands for none of the classes beside theirs in the softmax. Without,
            a probability is that of a class if the program is of any.
    """

    temperature: float = 1.0
    threshold: float = 0.0
    min_nodes: int = 0
    none: float | None = None

    def probabilities(self, lengths: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of each class, ``[B, classes]`` as the lengths are.

        They sum to 1, or with the probability that it is none of them.
        """
        least = -np.inf if self.none is None else self.none / self.temperature
        logits = lengths / self.temperature
        most = logits.max(1, keepdims=True, initial=least)
        shares = np.exp(logits - most)
        total = shares.sum(1, keepdims=True) + np.exp(least - most)
        found: NDArray[np.float32] = (shares / total).astype(np.float32)
        return found

    def same(self, similarity: float | NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability that programs of some similarity are of one class.

        This is for models trained for similarity: half of the pairs at the threshold are.
        """
        logits = (np.asarray(similarity) - self.threshold) / self.temperature
        found: NDArray[np.float32] = np.exp(-np.logaddexp(0, -logits)).astype(np.float32)
        return found

    def similarity(self, probability: float) -> float:
        """Return at which similarity programs are of one class with a probability."""
        return self.threshold + self.temperature * math.log(probability / (1 - probability))

    @classmethod
    def from_json(cls, value: Any) -> "Calibration":
        """Make one of plain values and check them, or raise ``ValueError``."""
        # Models of older versions know no least number of nodes, and nothing of background.
        found = {"min_nodes": 0, **value} if isinstance(value, dict) else {}
        none = found.get("none")
        if not (
            {name: type(number) for name, number in found.items() if name != "none"} == _TYPES
            and (none is None or (type(none) is float and 0 <= none <= 1))
            and _COLDEST <= found["temperature"] <= _HOTTEST
            and 0 <= found["threshold"] <= 1
            and found["min_nodes"] >= 0
        ):
            raise ValueError("not a calibration")
        return cls(**found)
