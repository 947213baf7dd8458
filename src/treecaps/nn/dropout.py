"""Dropout whose draws do not depend on how many processes share a batch."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

Place = Callable[[int], tuple[int, int]]
"""Returns for so many rows of a process which row of the whole batch is its first, and how many
rows that has."""

_BITS = 53
_FIRST, _SECOND = (value - (1 << 64) for value in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)


class Dropout(nn.Dropout):
    """``torch.nn.Dropout`` on rows of a batch that several processes may share.

    Each process then draws for the whole batch, from generators in the same state, and takes its
    rows. With one process it is ``torch.nn.Dropout``, draw for draw.

    Shapes:
        input ``[N, ...]``, rows in the order of the programs; output the same.
    """

    place: Place | None = None
    """Where the rows of this process are in the batch; ``None`` if they are all of it."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop numbers while the network learns."""
        if self.place is None or not self.training or not self.p:
            return super().forward(input)
        begin, every = self.place(len(input))
        ones = torch.ones((every, *input.shape[1:]), dtype=input.dtype, device=input.device)
        return input * functional.dropout(ones, self.p)[begin : begin + len(input)]


def draw_tokens(kind: Tensor, offsets: Tensor, token: Tensor, probability: float) -> Tensor:
    """Draw which sub-tokens of symbols stay while a network learns, ``[T]``.

    The draw depends on a number of the step and on what the symbol holds, not on its place: of a
    symbol that several processes have, all of them keep the same.

    Args:
        kind: ``[S]``, kinds of the symbols.
        offsets: ``[S + 1]``, where the sub-tokens of each begin.
        token: ``[T]``.
        probability: The share of the sub-tokens that are dropped.
    """
    step = int(torch.randint(1 << 62, ()))
    symbol = torch.arange(len(kind), device=kind.device).repeat_interleave(offsets.diff())
    place = torch.arange(len(token), device=token.device) - offsets[symbol]
    content = _mix(kind).index_add(0, symbol, _mix(token * _ODD + place))
    drawn = _mix(_mix(content + step)[symbol] + place)
    return (drawn & ((1 << _BITS) - 1)) >= int(probability * (1 << _BITS))


def _mix(values: Tensor) -> Tensor:
    """Scatter the bits of whole numbers (the finisher of splitmix64)."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        values = (values ^ _shift(values, shift)) * factor
    return values ^ _shift(values, 31)


def _shift(values: Tensor, bits: int) -> Tensor:
    """Shift to the right; PyTorch repeats the sign, which is cut off again."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)
