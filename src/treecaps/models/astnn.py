"""ASTNN: statement trees, a recursive encoder and a bidirectional GRU (Zhang et al. 2019)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.subtrees import Subtrees, SubtreeTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.nn.dropout import Dropout
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class ASTNNConfig(NetworkConfig):
    """What an ASTNN is made of."""

    encoded: int = option(128, "the size of a statement's vector")
    hidden: int = option(100, "the size of the GRU's state, in each direction")
    dropout: float = option(0.0, "share of a program's vector left out in training", ge=0, lt=1)


@register_architecture(
    "astnn",
    default=Recommended(
        ASTNNConfig(nodes="kinds+tokens", vector_size=128, dropout=0.2), RECOMMENDED_TRAINING
    ),
)
class ASTNN(Network):
    r"""AST-based neural network.

    .. math:: h = W x + \sum_k h_k + b \qquad e = \max_{\text{nodes}} h

    for every node of a statement's tree with children k; a statement is the largest value of each
    dimension over its nodes. The statements of a program in order go through a bidirectional GRU,
    whose states give the program by their largest values.
    """

    HEAD = ("output.",)

    config: ASTNNConfig

    @classmethod
    def read_trees(
        cls, config: ASTNNConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Subtrees:
        """Return the distinct subtrees of statements."""
        return Subtrees.from_trees(trees, vocabulary, "statements")

    def __init__(self, config: ASTNNConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        self.encode = nn.Linear(config.vector_size, config.encoded)
        self.sequence = nn.GRU(config.encoded, config.hidden, batch_first=True, bidirectional=True)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(2 * config.hidden, classes)

    def forward(self, subtrees: SubtreeTensors[Tensor]) -> Logits:
        """Encode each distinct statement once, read the statements of programs, classify."""
        statements = self._encode(self.symbol_vectors(subtrees.symbols), subtrees)
        rows = list(torch.split(statements[subtrees.subtree], subtrees.counts))
        sizes = torch.tensor(subtrees.counts, device="cpu")  # where packing wants them
        padded = pad_sequence(rows, batch_first=True)
        packed = pack_padded_sequence(padded, sizes, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.sequence(packed)[0], batch_first=True)
        ends = torch.tensor(subtrees.counts, device=states.device)
        beyond = torch.arange(states.shape[1], device=states.device) >= ends.unsqueeze(1)
        largest = states.masked_fill(beyond.unsqueeze(2), -torch.inf).amax(1)
        return Logits.of(self.output(self.dropout(largest)))

    def _encode(self, vectors: Tensor, subtrees: SubtreeTensors[Tensor]) -> Tensor:
        """Return the largest values ``[D, size]`` over the nodes of each subtree."""
        # Once for each symbol. By autocast it is of another type than what it is added to.
        shown = self.encode(vectors).to(vectors.dtype)
        states = largest = vectors.new_zeros(0, shown.shape[1])
        for first, end, child, parent in subtrees.levels:
            state = shown[subtrees.symbol[first:end]]
            most = state
            if len(child):
                state = state.index_add(0, parent, states[child])
                place = parent.unsqueeze(1).expand(-1, state.shape[1])
                most = state.scatter_reduce(0, place, largest[child], "amax")
            states = torch.cat([states, state])
            largest = torch.cat([largest, most])
        return largest
