"""Tree-LSTM: the child-sum form (Tai et al. 2015), as used for code by Wei and Li (2017)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.subtrees import Subtrees, SubtreeTensors
from treecaps.models.config import NetworkConfig
from treecaps.models.network import Logits, Network
from treecaps.models.options import option
from treecaps.models.registry import RECOMMENDED_TRAINING, Recommended, register_architecture
from treecaps.nn.dropout import Dropout
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class TreeLSTMConfig(NetworkConfig):
    """What a Tree-LSTM is made of."""

    hidden: int = option(128, "the size of a memory cell")
    dropout: float = option(0.0, "share of a program's vector left out in training", ge=0, lt=1)


@register_architecture(
    "tree-lstm",
    default=Recommended(TreeLSTMConfig(nodes="kinds+tokens", vector_size=64), RECOMMENDED_TRAINING),
)
class TreeLSTM(Network):
    r"""Child-sum Tree-LSTM: a memory cell for every distinct subtree, from the leaves up.

    .. math::
        \tilde h = \sum_k h_k \qquad
        (i, o, u) = (\sigma, \sigma, \tanh)(W x + U \tilde h + b) \qquad
        f_k = \sigma(W_f x + U_f h_k + b_f)

        c = i \odot u + \sum_k f_k \odot c_k \qquad h = o \odot \tanh(c)

    over the children k of a node that shows x. The hidden state of the root is the program's.
    """

    HEAD = ("output.",)

    config: TreeLSTMConfig

    @classmethod
    def read_trees(
        cls, config: TreeLSTMConfig, trees: Iterable[Tree], vocabulary: Vocabulary
    ) -> Subtrees:
        """Return the distinct subtrees."""
        return Subtrees.from_trees(trees, vocabulary, "whole")

    def __init__(self, config: TreeLSTMConfig, kinds: int, classes: int, tokens: int = 0) -> None:
        super().__init__(config, kinds, classes, tokens)
        size = config.hidden
        self.inputs = nn.Linear(config.vector_size, 4 * size)
        self.states = nn.Linear(size, 3 * size, bias=False)
        self.forget = nn.Linear(size, size, bias=False)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(size, classes)
        with torch.no_grad():
            self.inputs.bias[3 * size :] = 1  # remember, to begin with

    def forward(self, subtrees: SubtreeTensors[Tensor]) -> Logits:
        """Go up all trees at once, height by height, and classify what the roots hold."""
        hidden = self._climb(self.symbol_vectors(subtrees.symbols), subtrees)
        roots = hidden[subtrees.subtree]
        return Logits.of(self.output(self.dropout(roots)))

    def _climb(self, vectors: Tensor, subtrees: SubtreeTensors[Tensor]) -> Tensor:
        size = self.config.hidden
        # Once for each symbol. By autocast it is of another type than what it is added to.
        shown = self.inputs(vectors).to(vectors.dtype)
        hidden = cells = vectors.new_zeros(0, size)
        for first, end, child, parent in subtrees.levels:
            own = shown[subtrees.symbol[first:end]]
            gates, keep = own[:, : 3 * size], own[:, 3 * size :]
            kept = own.new_zeros(end - first, size)
            if len(child):
                below = hidden[child]
                total = torch.zeros_like(kept).index_add(0, parent, below)
                gates = gates + self.states(total)
                forget = (keep[parent] + self.forget(below)).sigmoid()
                kept = kept.index_add(0, parent, forget * cells[child])
            enter, leave, new = gates.chunk(3, 1)
            cell = enter.sigmoid() * new.tanh() + kept
            cells = torch.cat([cells, cell])
            hidden = torch.cat([hidden, leave.sigmoid() * cell.tanh()])
        return hidden
