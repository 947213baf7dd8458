"""Linear support vector machines on TF-IDF: what people would pick instead of a network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.bags import Bags, BagTensors, Feature
from treecaps.inputs.distinct import Longs
from treecaps.models.config import ModelConfig
from treecaps.models.network import Logits, Model
from treecaps.models.options import option
from treecaps.models.registry import Recommended, register_architecture
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class LinearConfig(ModelConfig):
    """What a linear model is made of."""

    FEATURE: ClassVar[Feature]

    penalty: float = option(1.0, "C, the inverse of the regularisation strength", gt=0)
    features: int = option(0, "how many features are known", ge=0, le=1 << 40, learned=True)

    @property
    def sees_names(self) -> bool:
        """Whether it matters what things are called."""
        return self.FEATURE == "tokens"

    @property
    def untrained(self) -> "LinearConfig":
        """The configuration before features were found."""
        return replace(self, features=0)


@dataclass(frozen=True)
class TokensSVMConfig(LinearConfig):
    """What a linear model of tokens and pairs of tokens is made of."""

    FEATURE: ClassVar[Feature] = "tokens"


@dataclass(frozen=True)
class WindowsSVMConfig(LinearConfig):
    """What a linear model of nodes with the kinds of their children is made of."""

    FEATURE: ClassVar[Feature] = "windows"


@register_architecture("svm-windows", default=Recommended(WindowsSVMConfig(), {"epochs": 1}))
@register_architecture("svm-tokens", default=Recommended(TokensSVMConfig(), {"epochs": 1}))
class LinearSVM(Model):
    r"""A linear support vector machine for each class, against all others.

    .. math:: x_f = (1 + \ln n_f) \Bigl(1 + \ln \frac{1 + P}{1 + P_f}\Bigr)

    for a feature f that a program has n times and :math:`P_f` of P training programs have, divided
    by the length of x. Scores are the softmax of the distances to the hyperplanes.
    """

    HEAD = ("weight", "bias")
    CLOSED_FORM = True
    LEARNS_BACKGROUND = False

    config: LinearConfig
    feature: Tensor  # [features], hashes, sorted
    rarity: Tensor  # [features]

    @classmethod
    def read_trees(
        cls, config: LinearConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Bags:
        """Return the counts of features."""
        return Bags.from_trees(trees, config.FEATURE)

    def __init__(self, config: LinearConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config)
        self.bias = nn.Parameter(torch.zeros(classes))
        self._resize(config.features)

    def extra_repr(self) -> str:
        """Return the sizes that ``print`` shows."""
        features, classes = self.weight.shape
        return f"{features} features -> {classes}"

    def _resize(self, features: int) -> None:
        """Make room for so many features."""
        self.config = replace(self.config, features=features)
        device = self.bias.device
        self.register_buffer("feature", torch.zeros(features, dtype=torch.long, device=device))
        self.register_buffer("rarity", torch.zeros(features, device=device))
        self.weight = nn.Parameter(torch.zeros(features, len(self.bias), device=device))

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Take over weights, of however many features."""
        if "feature" in state_dict and len(state_dict["feature"]) != self.config.features:
            self._resize(len(state_dict["feature"]))
        return super().load_state_dict(state_dict, *args, **kwargs)

    def forward(self, bags: BagTensors[Tensor]) -> Logits:
        """Weigh features, and see on which side of each plane they fall."""
        place, values, offsets = self._weigh(bags)
        distances = functional.embedding_bag(
            place, self.weight, offsets, mode="sum", per_sample_weights=values
        )
        return Logits.of(distances + self.bias)

    def _weigh(self, bags: BagTensors[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the places of known features, their weights, and where programs begin."""
        place = torch.searchsorted(self.feature, bags.feature)
        place = place.clamp(max=max(len(self.feature) - 1, 0))
        known = self.feature[place] == bags.feature
        programs = torch.arange(len(bags), device=place.device)
        program = programs.repeat_interleave(bags.offsets.diff())
        place, program, count = place[known], program[known], bags.count[known]
        values = (1 + count.to(self.rarity.dtype).log()) * self.rarity[place]
        squares = values.new_zeros(len(bags)).index_add(0, program, values.square())
        values = values / squares.sqrt()[program]
        sizes = torch.bincount(program, minlength=len(bags))
        return place, values, sizes.cumsum(0) - sizes

    @torch.no_grad()
    def fit(self, inputs: Bags, label: Longs) -> None:  # type: ignore[override]
        """Fit planes to programs with classes ``[B]``."""
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.svm import LinearSVC

        feature, place = np.unique(inputs.feature, return_inverse=True)
        shape = (len(inputs), len(feature))
        counts = csr_matrix((inputs.count.astype(np.float64), place, inputs.offsets), shape)
        weigh = TfidfTransformer(sublinear_tf=True)
        machine: Any = LinearSVC(C=self.config.penalty, random_state=0).fit(
            weigh.fit_transform(counts), label
        )
        weight, bias = machine.coef_, machine.intercept_
        if len(weight) == 1:  # of two classes, one plane lies between them
            weight, bias = np.concatenate([-weight, weight]), np.concatenate([-bias, bias])
        self._resize(len(feature))
        for tensor, values in (
            (self.feature, feature),
            (self.rarity, weigh.idf_),
            (self.weight, weight.T.copy()),
            (self.bias, bias),
        ):
            tensor.copy_(torch.from_numpy(values))
