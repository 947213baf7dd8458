"""Linear support vector machines on TF-IDF: what people would pick instead of a network."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.data.bags import Bags, Feature
from treecaps.data.forest import Forest
from treecaps.data.vocabulary import Vocabulary
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, SoftmaxNetwork
from treecaps.models.options import option
from treecaps.models.registry import Recommended, register_architecture
from treecaps.nn.batch import BagTensors, Batch
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class LinearConfig(NetworkConfig):
    """What a linear machine is made of."""

    FEATURE: ClassVar[Feature]

    penalty: float = option(1.0, "C, what mistakes cost beside large weights")
    features: int = option(0, "how many features are known; found in training", ge=0, le=1 << 40)

    @property
    def sees_names(self) -> bool:
        """Whether it matters what things are called."""
        return self.FEATURE == "tokens"

    @property
    def asked(self) -> "LinearConfig":
        """The configuration before features were found."""
        return replace(self, features=0)

    def forest(self, trees: Iterable[Tree], vocabulary: Vocabulary) -> Forest:
        """Count features."""
        return Forest.of(trees, vocabulary, (), bags=self.FEATURE)


@dataclass(frozen=True)
class TokensSVMConfig(LinearConfig):
    """What a linear machine on tokens and pairs of tokens is made of."""

    FEATURE: ClassVar[Feature] = "tokens"


@dataclass(frozen=True)
class WindowsSVMConfig(LinearConfig):
    """What a linear machine on nodes with the kinds of their children is made of."""

    FEATURE: ClassVar[Feature] = "windows"


@register_architecture(
    "svm-windows", default=Recommended(WindowsSVMConfig(vector_size=1), {"epochs": 1})
)
@register_architecture(
    "svm-tokens", default=Recommended(TokensSVMConfig(vector_size=1), {"epochs": 1})
)
class LinearSVM(SoftmaxNetwork):
    r"""A linear support vector machine for each class, against all others.

    .. math:: x_f = (1 + \ln n_f) \Bigl(1 + \ln \frac{1 + P}{1 + P_f}\Bigr)

    for a feature f that a program has n times and :math:`P_f` of P training programs have, divided
    by the length of x. Scores are the softmax of the distances to the hyperplanes.
    """

    OUTPUT = ("weight", "bias")

    config: LinearConfig

    def __init__(self, config: LinearConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        self.register_buffer("feature", torch.zeros(config.features, dtype=torch.long))
        self.register_buffer("rarity", torch.zeros(config.features))
        self.weight = nn.Parameter(torch.zeros(config.features, classes))
        self.bias = nn.Parameter(torch.zeros(classes))
        self.feature: Tensor
        self.rarity: Tensor

    def forward(self, batch: Batch) -> Logits:
        """Weigh features, and see on which side of each plane they fall."""
        assert batch.bags is not None
        place, values, offsets = self._weigh(batch.bags)
        distances = functional.embedding_bag(
            place, self.weight, offsets, mode="sum", per_sample_weights=values
        )
        return Logits.of(distances + self.bias)

    def _weigh(self, bags: BagTensors) -> tuple[Tensor, Tensor, Tensor]:
        """Return the places of known features, their weights, and where programs begin."""
        place = torch.searchsorted(self.feature, bags.feature)
        place = place.clamp(max=max(len(self.feature) - 1, 0))
        known = self.feature[place] == bags.feature
        program = torch.arange(len(bags.offsets) - 1).repeat_interleave(bags.offsets.diff())
        place, program, count = place[known], program[known], bags.count[known]
        values = (1 + count.to(self.rarity.dtype).log()) * self.rarity[place]
        squares = values.new_zeros(len(bags.offsets) - 1).index_add(0, program, values.square())
        values = values / squares.sqrt()[program]
        sizes = torch.bincount(program, minlength=len(bags.offsets) - 1)
        return place, values, sizes.cumsum(0) - sizes


def fit_linear(
    config: LinearConfig, kinds: int, classes: int, tokens: int, bags: Bags, label: Tensor
) -> LinearSVM:
    """Fit a machine to programs with classes ``[B]``, at once."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    feature, place = np.unique(bags.feature, return_inverse=True)
    shape = (len(bags.offsets) - 1, len(feature))
    counts = csr_matrix((bags.count.astype(np.float64), place, bags.offsets), shape)
    weigh = TfidfTransformer(sublinear_tf=True)
    machine: Any = LinearSVC(C=config.penalty, random_state=0).fit(
        weigh.fit_transform(counts), label.numpy()
    )
    network = LinearSVM(replace(config, features=len(feature)), kinds, classes, tokens)
    weight, bias = machine.coef_, machine.intercept_
    if len(weight) == 1:  # of two classes, one plane lies between them
        weight, bias = np.concatenate([-weight, weight]), np.concatenate([-bias, bias])
    with torch.no_grad():
        network.feature.copy_(torch.from_numpy(feature))
        network.rarity.copy_(torch.from_numpy(weigh.idf_))
        network.weight.copy_(torch.from_numpy(weight.T.copy()))
        network.bias.copy_(torch.from_numpy(bias))
    return network
