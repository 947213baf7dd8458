"""TBCNN: tree-based convolution with dynamic max pooling (Mou et al. 2016)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.windows import Windows, WindowTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.nn.dropout import Dropout
from treecaps.nn.tree_convolution import TreeConvolution
from treecaps.syntax.tree import Tree

_REGIONS = 3


@dataclass(frozen=True)
class TBCNNConfig(NetworkConfig):
    """What a TBCNN is made of."""

    convolutions: tuple[int, ...] = option((128,), "sizes of the convolution layers")
    pooling: Literal["one", "three"] = option(
        "one", "take maxima over a program as one, or of its top, lower left and lower right"
    )
    hidden: int = option(128, "the size of the hidden layer")
    dropout: float = option(0.0, "share of the hidden layer left out in training", ge=0, lt=1)


@register_architecture(
    "tbcnn",
    default=Recommended(
        TBCNNConfig(nodes="kinds+tokens", vector_size=64, convolutions=(128, 128), dropout=0.3),
        RECOMMENDED_TRAINING,
    ),
)
class TBCNN(Network):
    """Tree-based convolutional neural network.

    Symbols -> vectors ``[N, V]`` -> tree convolution ``[W, V']`` -> maxima over each program
    ``[B, V']`` -> hidden layer -> softmax.
    """

    HEAD = ("output.",)

    config: TBCNNConfig

    @classmethod
    def read_trees(
        cls, config: TBCNNConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Windows:
        """Return the distinct windows."""
        depths = (2,) * len(config.convolutions)
        return Windows.from_trees(trees, vocabulary, depths, regions=config.pooling == "three")

    def __init__(self, config: TBCNNConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        sizes = (config.vector_size, *config.convolutions)
        self.convolutions = nn.ModuleList(
            TreeConvolution(inputs, outputs) for inputs, outputs in pairwise(sizes)
        )
        self.parts = _REGIONS if config.pooling == "three" else 1
        self.hidden = nn.Linear(self.parts * sizes[-1], config.hidden)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.hidden, classes)

    def forward(self, batch: WindowTensors[Tensor]) -> Logits:
        """Convolve, take maxima, classify."""
        vectors = self.symbol_vectors(batch.symbols)
        for layer, windows in zip(self.convolutions, batch.layers, strict=True):
            vectors = layer(vectors, *windows).squeeze(1)
        hidden = self.hidden(self._pool(vectors, batch)).relu()
        return Logits.of(self.output(self.dropout(hidden)))

    def _pool(self, vectors: Tensor, batch: WindowTensors[Tensor]) -> Tensor:
        """Return the maxima of each part of each program, ``[B, parts V']``; 0 of no nodes."""
        place = batch.program * self.parts + (batch.region if self.parts > 1 else 0)
        size = vectors.shape[1]
        maxima = vectors.new_zeros(len(batch) * self.parts, size).scatter_reduce(
            0,
            place.unsqueeze(1).expand(-1, size),
            vectors[batch.window],
            "amax",
            include_self=False,
        )
        return maxima.view(len(batch), -1)
