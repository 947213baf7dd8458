"""A read-out for nodes: how suspicious each node of a program is."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.inputs.graphs import GraphTensors
from treecaps.nn.dropout import Dropout
from treecaps.syntax.edges import EDGES

READ_EDGES = ("Child", "NextToken", "LastUse")
"""The edges that nodes hear of each other along, both ways: the path above, what stands beside, and
where the same variable is used before and after."""
FLOW = "LastUse"
"""The edges that come from data flow."""
_DROPOUT = 0.2
EPSILON = 1e-5
"""What a variance is at least, where states are normalized."""


class NodeOutput(NamedTuple):
    """What a network says of the N nodes of B programs.

    Args:
        bug: ``[N]``, how much speaks for a bug at each node.
        none: ``[B]``, how much speaks for no bug at all, on the same scale.
        kinds: ``[N, K]``, logits of the kinds of mistakes, if there is one.
    """

    bug: Tensor
    none: Tensor
    kinds: Tensor

    def joined(self) -> Tensor:
        """Return all scores in one row."""
        return torch.cat([part.flatten() for part in self])


class NodeReadout(nn.Module):
    r"""Scores nodes by what is known of them, of their surroundings and of the program.

    .. math::
        h_v = \mathrm{relu}(W x_v) \qquad
        h_v \leftarrow \mathrm{norm}\Bigl(h_v + \mathrm{relu}\Bigl(W_r
            \bigl[h_v, \mathrm{mean}_{u \to_k v} h_u \dots\bigr]\Bigr)\Bigr)

    for a few rounds r, over edges of each kind k and both ways. Then two layers each make the score
    of a node of its state and the program's vector, and that of no bug of the mean state and that.

    Args:
        inputs: The size of x, what is known of a node.
        program: G, the size of what is known of a program; nothing if 0.
        size: The size of h.
        rounds: How many rounds.
        kinds: K, how many kinds of mistakes there are.
        flow: Whether nodes hear of each other along data flow.

    Shapes:
        x ``[N, inputs]``, program ``[B, G]``; output ``NodeOutput``.
    """

    def __init__(
        self, inputs: int, program: int, size: int, rounds: int, kinds: int, *, flow: bool = True
    ) -> None:
        super().__init__()
        self.edges = [EDGES.index(name) for name in READ_EDGES if flow or name != FLOW]
        ways = 2 * len(self.edges)
        self.inputs = nn.Linear(inputs, size)
        self.rounds = nn.ModuleList(nn.Linear((1 + ways) * size, size) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(size, eps=EPSILON) for _ in range(rounds))
        self.program = nn.Linear(program, size) if program else None
        both = 2 * size if program else size
        self.bug = nn.Sequential(nn.Linear(both, size), nn.ReLU(), nn.Linear(size, 1))
        self.none = nn.Sequential(nn.Linear(both, size), nn.ReLU(), nn.Linear(size, 1))
        self.kinds = nn.Linear(size, kinds)
        self.dropout = Dropout(_DROPOUT)

    def forward(self, x: Tensor, program: Tensor | None, graph: GraphTensors[Tensor]) -> NodeOutput:
        """Score the nodes of a batch of programs."""
        states = functional.relu(self.inputs(x))
        for layer, norm in zip(self.rounds, self.norms, strict=True):
            heard = [states]
            for kind in self.edges:
                source, target = graph.edges[kind]
                heard += [_means(states, source, target), _means(states, target, source)]
            new = functional.relu(layer(torch.cat(heard, 1)))
            states = norm(states + self.dropout(new))
        sizes = torch.bincount(graph.program, minlength=len(graph)).unsqueeze(1)
        sums = states.new_zeros(len(graph), states.shape[1])
        mean = sums.index_add(0, graph.program, states) / sizes
        kinds = self.kinds(states)
        if self.program is not None and program is not None:
            about = self.program(program)
            states = torch.cat([states, about[graph.program]], 1)
            mean = torch.cat([mean, about], 1)
        return NodeOutput(self.bug(states).squeeze(1), self.none(mean).squeeze(1), kinds)


def _means(states: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Return for each node the mean state of those that edges lead from; 0 where there is none."""
    sums = torch.zeros_like(states).index_add(0, target, states.index_select(0, source))
    count = torch.bincount(target, minlength=len(states)).clamp(min=1)
    return sums / count.unsqueeze(1)
