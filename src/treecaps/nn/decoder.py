"""Reconstruction: from a code capsule back to the windows of a program."""

import numpy as np
import torch
from torch import Tensor, nn

from treecaps.inputs.distinct import number_distinct
from treecaps.inputs.windows import Windows, WindowTensors
from treecaps.nn.tensors import to_numpy, to_tensors
from treecaps.nn.weights import normal_

_LONGEST = 16
"""How many nodes a window may have to be known: a node and its children."""
_HIDDEN = 64


class Decoder(nn.Module):
    r"""Rebuilds how the nodes of a program that have children are distributed over windows.

    A window here is a node with its children, by their kinds alone. From the code capsule
    :math:`z_m` of the class m of a program

    .. math:: q = \mathrm{softmax}\bigl(W\, \mathrm{relu}(V_m z_m + b) + c\bigr)

    over the windows that most training programs have, and one place for all others; the loss is
    the cross-entropy with the shares that the program has in truth.

    Args:
        classes: How many classes there are.
        size: D_cc, the size of a code capsule.
        windows: How many windows are known.

    Shapes:
        capsules ``[B, classes, D_cc]`` and label ``[B]``; output ``[B, windows + 1]``.
    """

    def __init__(self, classes: int, size: int, windows: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.empty(classes, size, _HIDDEN))
        self.bias = nn.Parameter(torch.empty(_HIDDEN))
        self._reset_first()
        self.second = nn.Linear(_HIDDEN, windows + 1)
        # For each window the kinds of its nodes, counted from 1; then zeros.
        self.register_buffer("known", torch.zeros(windows, _LONGEST, dtype=torch.int32))
        self.known: Tensor

    def reset_parameters(self) -> None:
        """Draw new weights; the windows that are known stay."""
        self._reset_first()
        self.second.reset_parameters()

    def _reset_first(self) -> None:
        normal_(self.first, std=1)
        nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        """Return the sizes that ``print`` shows."""
        classes, size, _ = self.first.shape
        return f"{classes} x {size} -> {len(self.known)} windows"

    def forward(self, capsules: Tensor, label: Tensor) -> Tensor:
        """Rebuild the distributions of B programs.

        Args:
            capsules: ``[B, classes, D_cc]``.
            label: ``[B]``, the classes whose capsules are used.

        Returns:
            ``[B, windows + 1]``, their logarithms.
        """
        chosen = capsules[torch.arange(len(label), device=label.device), label].unsqueeze(1)
        hidden = torch.bmm(chosen, self.first[label]).squeeze(1) + self.bias
        logits: Tensor = self.second(hidden.relu())
        return logits.log_softmax(1)

    @torch.no_grad()
    def learn_windows(self, inputs: Windows) -> None:
        """Take over the windows that most programs have; of equals, those of lower kinds."""
        batch: WindowTensors[Tensor] = to_tensors(inputs, self.bias)
        spelled, sizes = map(to_numpy, _spell(batch))
        chosen = (sizes > 1) & (sizes <= _LONGEST)
        windows, number = np.unique(spelled[chosen], axis=0, return_inverse=True)
        numbers = np.full(len(sizes), len(windows))
        numbers[chosen] = number.reshape(-1)
        found = numbers[to_numpy(_first_windows(batch))]
        # Each window of a program counts once.
        _, first = number_distinct(found * len(inputs) + inputs.programs)
        programs = np.bincount(found[first], minlength=len(windows) + 1)[:-1]
        best = np.argsort(-programs, kind="stable")[: len(self.known)]
        self.known.zero_()
        self.known[: len(best)] = torch.from_numpy(windows[best]).to(self.known.device)
        # It begins with what is true of all programs together.
        row, count = self._count(batch)
        total = torch.bincount(row, count, len(self.known) + 1) + 1
        self.second.bias.copy_((total / total.sum()).log())

    @torch.no_grad()
    def shares(self, batch: WindowTensors[Tensor]) -> Tensor:
        """Return ``[B, windows + 1]``, what shares of its nodes with children have each window."""
        number, count = self._count(batch)
        counts = count.new_zeros(len(batch), len(self.known) + 1)
        counts.view(-1).index_add_(0, batch.program * counts.shape[1] + number, count)
        return counts / counts.sum(1, keepdim=True).clamp(min=1)

    def _count(self, batch: WindowTensors[Tensor]) -> tuple[Tensor, Tensor]:
        """Return ``[P]`` twice: which window the nodes of a row have, and how many nodes these are.

        Nodes without children do not count.
        """
        spelled, sizes = _spell(batch)
        rows = _first_windows(batch)
        count = batch.count if batch.share is None else batch.count * batch.share
        return self._numbers(spelled)[rows], count * (sizes[rows] > 1)

    def _numbers(self, spelled: Tensor) -> Tensor:
        """Return which of the known windows each is, or the place for all others."""
        # Products that overflow scatter well; a hash may deceive, so all that agree are compared.
        drawn = np.random.default_rng(0).integers(2**62, size=_LONGEST) | 1
        factors = torch.from_numpy(drawn).to(spelled.device)
        keys, order = (self.known.long() * factors).sum(1).sort()
        place = torch.searchsorted(keys, (spelled.long() * factors).sum(1))
        found = order[place.clamp(max=len(order) - 1)]
        same = (self.known[found] == spelled).all(1)
        return found.where(same, len(self.known))


def _spell(batch: WindowTensors[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the kinds of the nodes of each window of the first layer, from 1, and their number.

    Returns:
        ``[W, _LONGEST]``, with zeros at the end, and ``[W]``. A window that is too long has a zero
        in its first place, so that it is like none that is known.
    """
    offsets, member = batch.layers[0][:2]
    sizes, device = offsets.diff(), offsets.device
    window = torch.arange(len(sizes), device=device).repeat_interleave(sizes)
    place = torch.arange(len(window), device=device) - offsets[window]
    kinds = batch.symbols.kind[member] + 1
    fits = place < _LONGEST
    spelled = offsets.new_zeros(len(sizes), _LONGEST, dtype=torch.int32)
    spelled[window[fits], place[fits]] = kinds[fits].int()
    spelled[sizes > _LONGEST, 0] = 0
    return spelled, sizes


def _first_windows(batch: WindowTensors[Tensor]) -> Tensor:
    """Return ``[P]``, the windows of the first layer that the nodes of each row have."""
    window = batch.window
    for layer in batch.layers[:0:-1]:
        window = layer.member[layer.offsets[window]]  # a window's first member is its top node
    return window
