"""``Model``: what is trained, and its largest family, ``Network``."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import UsageError
from treecaps.inputs.base import Input
from treecaps.inputs.distinct import Longs
from treecaps.inputs.packing import Packing
from treecaps.inputs.symbols import SymbolTensors
from treecaps.models.config import ModelConfig, NetworkConfig
from treecaps.nn.cross_entropy import cross_entropy
from treecaps.nn.dropout import draw_tokens
from treecaps.nn.node_readout import NodeOutput
from treecaps.nn.weights import new_weight
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class NetworkOutput:
    """What a model computes for B programs.

    Args:
        scores: ``[B, classes]``, from 0 to 1: how much speaks for each class.
    """

    scores: Tensor


@dataclass(frozen=True)
class Logits(NetworkOutput):
    """What a model with a softmax computes for B programs.

    Args:
        logits: ``[B, classes]``, the logarithms of the scores, up to a number for each program.
    """

    logits: Tensor

    @classmethod
    def of(cls, logits: Tensor) -> "Logits":
        """Take the softmax."""
        return cls(logits.softmax(1), logits)


class Model(nn.Module):
    """A model of programs.

    Args:
        config: What the model is made of.
    """

    HEAD: ClassVar[tuple[str, ...]] = ()
    """The weights of the head, which belong to the classes: how their names begin."""
    CLOSED_FORM: ClassVar[bool] = False
    """Whether ``fit`` fits the model at once, instead of gradient descent."""
    LEARNS_BACKGROUND: ClassVar[bool] = True
    """Whether the loss knows what to do with programs of no class, whose label is below 0."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def read_trees(cls, config: Any, trees: Iterable[Tree], vocabulary: Vocabulary) -> Input:
        """Return the programs in the form that a model of this configuration reads.

        Args:
            config: What the model is made of.
            trees: The programs; they are gone through once.
            vocabulary: Numbers of the kinds and sub-tokens.
        """
        raise NotImplementedError

    @classmethod
    def packing(cls, config: Any) -> Packing | None:
        """Return how the inputs of many programs are kept on disk; ``None`` if they are not."""
        return None

    def forward(self, batch: Any) -> NetworkOutput:
        """Run the forward pass on what ``to_tensors`` of the input returned."""
        raise NotImplementedError

    def embed(self, batch: Any) -> Tensor:
        """Return a vector ``[B, E]`` for each program, the more alike the nearer."""
        raise UsageError("only the architecture treecaps has embeddings; train a model of that")

    def score_bugs(self, batch: Any) -> NodeOutput:
        """Return how suspicious the nodes of programs are."""
        raise UsageError("only the architectures treecaps and ggnn find bugs; train one of these")

    def represent(self, batch: Any) -> Tensor:
        """Return a vector ``[B, E]`` for each program, as its head sees it: the scores."""
        scores: Tensor = self(batch).scores
        return scores

    def loss(self, output: NetworkOutput, label: Tensor) -> Tensor:
        """Return the loss of a batch whose right classes are ``[B]``: of logits, cross-entropy.

        A class below 0 means that none is right.
        """
        assert isinstance(output, Logits)
        return cross_entropy(output.logits, label)

    def fit(self, inputs: Input, label: Longs) -> None:
        """Fit the model to programs with classes ``[B]`` at once, if it has a closed form."""
        raise NotImplementedError

    def reconstruction(self, output: NetworkOutput, label: Tensor, weight: float) -> Tensor | None:
        """Return how badly the programs of a batch are rebuilt, if the model does that at all.

        Args:
            output: What the forward pass returned in training.
            label: ``[B]``, the right classes.
            weight: Gradient scale into the encoder; with 0, only the decoder learns.
        """
        return None

    def scale_weights(self, inputs: Any, *, head_only: bool = False) -> None:
        """Scale the initial weights by what the training programs show, if there is need to.

        Args:
            inputs: The training programs.
            head_only: Whether all weights but those of the head are pretrained.
        """

    def fit_features(self, inputs: Any, programs: Longs | None = None) -> None:
        """Take what is needed from the training programs, before anything is learned.

        Args:
            inputs: The training programs.
            programs: Which of them are of a class, if not all are.
        """

    def metrics(self, output: NetworkOutput, label: Tensor) -> dict[str, Tensor]:
        """Return means over a batch that are worth watching in training."""
        return {}

    def lr_multiplier(self, name: str) -> float:
        """Return how many times faster than others a weight should learn."""
        return 1.0


class Network(Model):
    """A model with vectors for the kinds and sub-tokens of nodes.

    Args:
        config: What the network is made of.
        kinds: How many kinds of nodes there are.
        classes: How many classes there are.
        tokens: How many sub-tokens there are; none for kinds alone.
    """

    config: NetworkConfig

    def __init__(self, config: NetworkConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config)
        self.vectors = new_weight(kinds, config.vector_size, std=1)
        # Words begin quieter than kinds: as loud, blind programs scored a point less in a trial.
        self.token_vectors = new_weight(tokens, config.vector_size, std=0.3) if tokens else None

    def symbol_vectors(self, symbols: SymbolTensors[Tensor]) -> Tensor:
        """Return for each symbol the vector of its kind, plus the mean of its sub-tokens'."""
        vectors = functional.embedding(symbols.kind, self.vectors)
        if self.token_vectors is None:
            return vectors
        token = symbols.token
        if self.training and self.config.token_dropout:
            dropout = self.config.token_dropout
            token = token * draw_tokens(symbols.kind, symbols.offsets, token, dropout)
        return vectors + functional.embedding_bag(
            token, self.token_vectors, symbols.offsets[:-1], mode="mean"
        )
