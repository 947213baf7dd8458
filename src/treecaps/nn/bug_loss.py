"""The loss of a read-out for nodes: whether there is a bug, where, and of which kind."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from treecaps.nn.node_readout import NodeOutput

_NODE, _KIND = 0.3, 0.2
"""How much it counts to find the very node, and to name the kind of mistake."""


class BugLabels(NamedTuple):
    """What is known of B programs.

    Args:
        wrong: ``[M]``, the nodes on lines with a bug, program after program.
        owner: ``[M]``, their programs.
        node: ``[K]``, where K programs have their bug, if the very node is known.
        kind: ``[K]``, what kind of mistake each is.
        owner_of_node: ``[K]``, their programs.
    """

    wrong: Tensor
    owner: Tensor
    node: Tensor
    kind: Tensor
    owner_of_node: Tensor


def log_sums(values: Tensor, program: Tensor, programs: int) -> Tensor:
    """Return the logarithm of the sum of exponentials for each program, ``[B]``.

    Where a program has no values, that is a large negative number.
    """
    least = torch.full((programs,), -1e9, dtype=values.dtype, device=values.device)
    most = least.scatter_reduce(0, program, values.detach(), "amax")
    sums = torch.zeros_like(least).index_add(0, program, (values - most[program]).exp())
    return (sums + torch.finfo(values.dtype).tiny).log() + most


def bug_loss(output: NodeOutput, program: Tensor, labels: BugLabels) -> dict[str, Tensor]:
    r"""Return the loss, and the parts it is made of.

    .. math::
        p(v) = \frac{e^{s_v}}{e^{s_0} + \sum_u e^{s_u}} \qquad
        L = -\ln \sum_{v \in W} p(v) \quad\text{or}\quad -\ln p(0)

    for a program whose nodes W are on lines with a bug, and for one without bugs; 0 stands for "no
    bug". Where the very node and the kind of mistake are known, these add a smaller cross-entropy.

    Args:
        output: What the network says of N nodes of B programs.
        program: ``[N]``, the program of each node.
        labels: What is known.
    """
    programs = len(output.none)
    every = log_sums(output.bug, program, programs)
    buggy = torch.zeros_like(output.none, dtype=torch.bool)
    buggy[labels.owner] = True
    margin = every - output.none
    detection = functional.softplus(torch.where(buggy, -margin, margin)).mean()
    found = log_sums(output.bug[labels.wrong], labels.owner, programs)
    location = (every - found)[buggy].sum() / programs
    parts = {"detection": detection, "location": location}
    loss = detection + location
    if len(labels.node):
        node = (every[labels.owner_of_node] - output.bug[labels.node]).sum() / programs
        logits = output.kinds[labels.node]
        kind = functional.cross_entropy(logits, labels.kind, reduction="sum") / programs
        loss = loss + _NODE * node + _KIND * kind
    return {"loss": loss, **parts}
