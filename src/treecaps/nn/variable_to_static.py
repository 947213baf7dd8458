"""Variable-to-static routing: from as many capsules as a tree has to a fixed number."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from treecaps.nn.squash import SquashForm, squash

_BLOCK = 1 << 20  # coupling coefficients held at a time, so that memory stays bounded


class VariableToStatic(nn.Module):
    r"""Route each program's primary variable capsules to its static capsules (algorithm 1).

    The a longest capsules start the static ones v_j; then r times

    .. math::
        \alpha_{ij} \mathrel{+}= \hat u_i \cdot v_j \qquad
        \beta_i = \mathrm{softmax}_j(\alpha_i) \qquad
        v_j = \mathrm{squash}\Bigl(\sum_i m_i \beta_{ij} \hat u_i\Bigr)

    where a window that occurs m times in a program is one capsule i with multiplicity m: it fills
    m places among the starts and counts m times in the sum, so the result is that of a capsule
    for every node. As alpha only ever sums products with the same u_i, it is the product of u_i
    and the sum of all v_j so far, and need not be kept.

    A program with fewer than a capsules has as many static ones; the others are zero.

    Args:
        statics: a, the number of static capsules.
        routed: b, how many of the longest capsules take part; all by default.
        iterations: r.
        per_channel: Route each channel by itself to a static capsules of its own, instead of all
            capsules together.
        distinct: Let each distinct capsule fill one place among the starts, however often it
            occurs. This is not the paper's algorithm.
        form: The form of squash.

    Shapes:
        capsules ``[W, D, C]``, squashed, of the distinct windows: D dimensions, C channels;
        window ``[P]``, the distinct windows of B programs, program after program;
        count ``[P]``, their multiplicities; weight ``[P]``, other multiplicities m for the sum;
        bounds, B + 1 numbers, where each program's windows begin;
        output ``[B, a, D]``, or ``[B, C a, D]`` for routing by channel.
    """

    def __init__(
        self,
        statics: int,
        *,
        routed: int | None = None,
        iterations: int = 3,
        per_channel: bool = False,
        distinct: bool = False,
        form: SquashForm = "sabour",
    ) -> None:
        super().__init__()
        self.statics, self.routed, self.iterations = statics, routed, iterations
        self.per_channel, self.distinct, self.form = per_channel, distinct, form

    def forward(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> Tensor:
        """Return the static capsules."""
        return self._route(capsules, window, count, weight, bounds)[0].flatten(1, 2)

    @torch.no_grad()
    def coupling(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> list[Tensor]:
        """Read out beta of the last iteration.

        Returns:
            For each program ``[n, C, a]``: for its n windows and their channels the shares, which
            sum to 1, that go to each static capsule.
        """
        _, total, present = self._route(capsules, window, count, weight, bounds)
        shares = []
        for program, (begin, end) in enumerate(pairwise(bounds)):
            units = _units(capsules, window[begin:end], total.shape[1])
            agreement = torch.bmm(total[program], units)
            agreement[:, present[program] :] = -math.inf
            share = agreement.softmax(1)
            shares.append(_ungrouped(share, end - begin).transpose(1, 2))
        return shares

    def _route(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> tuple[Tensor, Tensor, list[int]]:
        weights = weight.unsqueeze(1)
        if self.routed is not None:
            weights = weights * _routed_share(
                capsules, window, count, bounds, self.routed, self.per_channel
            )
        places = count.clamp(max=1) if self.distinct else count
        values, present = _starts(capsules, window, places, bounds, self.statics, self.per_channel)
        total = torch.zeros_like(values)
        for _ in range(self.iterations):
            total = total + values
            sums = _Route.apply(capsules, window, weights, total, bounds, present)  # type: ignore[no-untyped-call]
            values = squash(sums, self.form)
        return values, total, present


def _by_length(
    lengths: Tensor, count: Tensor, per_channel: bool, most: int | None
) -> tuple[Tensor, Tensor]:
    """Order one program's capsules by length, those that do not occur last.

    Args:
        lengths: ``[n, C]``.
        count: ``[n]``.
        per_channel: Whether each channel has an order of its own.
        most: How many of the longest are needed; all by default.

    Returns:
        For each group their places among the n (times C) capsules and their counts, ``[G, k]``.
    """
    channels = lengths.shape[1]
    lengths = torch.where(count.unsqueeze(1) > 0, lengths, -1)
    grouped = lengths.t() if per_channel else lengths.reshape(1, -1)
    size = grouped.shape[1]
    place = grouped.topk(size if most is None else min(most, size), 1).indices
    return place, count[place if per_channel else place.div(channels, rounding_mode="floor")]


@torch.no_grad()
def _routed_share(
    capsules: Tensor,
    window: Tensor,
    count: Tensor,
    bounds: list[int],
    routed: int,
    per_channel: bool,
) -> Tensor:
    """Return which share of each capsule's multiplicity is among the longest, ``[P, C]``."""
    lengths = capsules.square().sum(1)
    shares = []
    for begin, end in pairwise(bounds):
        counts = count[begin:end]
        place, multiplicity = _by_length(lengths[window[begin:end]], counts, per_channel, None)
        before = multiplicity.cumsum(1) - multiplicity
        kept = (routed - before).clamp(min=0).minimum(multiplicity) / multiplicity.clamp(min=1)
        share = torch.empty_like(kept).scatter_(1, place, kept)
        shares.append(share.t() if per_channel else share.view(end - begin, -1))
    return torch.cat(shares)


def _starts(
    capsules: Tensor,
    window: Tensor,
    count: Tensor,
    bounds: list[int],
    statics: int,
    per_channel: bool,
) -> tuple[Tensor, list[int]]:
    """Return the longest capsules of each program, and how many of them it has.

    Returns:
        ``[B, G, a, D]`` with zeros for what is missing, and B numbers up to a.
    """
    channels = capsules.shape[2]
    with torch.no_grad():
        lengths = capsules.square().sum(1)
        slots = torch.arange(statics, dtype=count.dtype).repeat(channels if per_channel else 1, 1)
        chosen, present = [], []
        for begin, end in pairwise(bounds):
            windows, counts = window[begin:end], count[begin:end]
            place, multiplicity = _by_length(lengths[windows], counts, per_channel, statics)
            filled = torch.searchsorted(multiplicity.cumsum(1), slots, right=True)
            place = place.gather(1, filled.clamp(max=place.shape[1] - 1))
            if per_channel:
                place = windows[place] * channels + torch.arange(channels).unsqueeze(1)
            else:
                place = windows[place // channels] * channels + place % channels
            chosen.append(place)
            occurrences = int(counts.sum()) * (1 if per_channel else channels)
            present.append(min(statics, occurrences))
        index = torch.stack(chosen)
        missing = torch.arange(statics) >= torch.tensor(present).unsqueeze(1)
    starts = capsules.transpose(1, 2)[index // channels, index % channels]
    return starts.masked_fill(missing[:, None, :, None], 0), present


class _Route(torch.autograd.Function):
    """One round of routing: the sums over m_i beta_ij u_i, for beta_i = softmax_j(u_i v_j).

    Works through one program, or a block of a large one, at a time, so that what it touches
    stays in the cache; and computes the coefficients again for the gradient instead of keeping
    them. All products are at most r in size, so the softmax needs no care for overflow.
    """

    @staticmethod
    def forward(
        ctx: Any,
        capsules: Tensor,
        window: Tensor,
        weights: Tensor,
        values: Tensor,
        bounds: list[int],
        present: list[int],
    ) -> Tensor:
        ctx.save_for_backward(capsules, window, weights, values)
        ctx.bounds, ctx.present = bounds, present
        sums = torch.zeros_like(values)
        for program, begin, end in _blocks(bounds, capsules.shape[2] * values.shape[2]):
            some = slice(present[program])
            units = _units(capsules, window[begin:end], values.shape[1])
            coupling = torch.bmm(values[program, :, some], units).exp_()
            share = _grouped(weights[begin:end], units) / coupling.sum(1, keepdim=True)
            sums[program, :, some].baddbmm_(coupling, units.mul_(share).mT)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        capsules, window, weights, values = ctx.saved_tensors
        for_capsules = torch.zeros_like(capsules)
        for_weights = torch.zeros_like(weights) if ctx.needs_input_grad[2] else None
        for_values = torch.zeros_like(values)
        for program, begin, end in _blocks(ctx.bounds, capsules.shape[2] * values.shape[2]):
            some = slice(ctx.present[program])
            windows = window[begin:end]
            units = _units(capsules, windows, values.shape[1])
            target, slope = values[program, :, some], gradient[program, :, some]
            coupling = torch.bmm(target, units).exp_()
            coupling /= coupling.sum(1, keepdim=True)
            pull = torch.bmm(slope, units)
            mean = (coupling * pull).sum(1, keepdim=True)
            if for_weights is not None:
                per_channel = _ungrouped(mean, end - begin).squeeze(1)
                for_weights[begin:end] = per_channel.sum_to_size(for_weights[begin:end].shape)
            coupling *= _grouped(weights[begin:end], units)
            pull.sub_(mean).mul_(coupling)
            for_values[program, :, some].baddbmm_(pull, units.mT)
            for_units = torch.bmm(slope.mT, coupling).baddbmm_(target.mT, pull)
            for_capsules.index_add_(0, windows, _ungrouped(for_units, end - begin))
        return for_capsules, None, for_weights, for_values, None, None


def _blocks(bounds: list[int], row: int) -> Iterator[tuple[int, int, int]]:
    """Yield the programs, and large ones block by block."""
    rows = max(1, _BLOCK // row)
    for program, (begin, end) in enumerate(pairwise(bounds)):
        for place in range(begin, end, rows):
            yield program, place, min(place + rows, end)


def _units(capsules: Tensor, windows: Tensor, groups: int) -> Tensor:
    """Return a copy of the capsules of n windows by group: ``[1, D, n C]`` or ``[C, D, n]``."""
    units = capsules.index_select(0, windows)
    if groups == 1:
        return units.transpose(0, 1).reshape(1, units.shape[1], -1)
    return units.permute(2, 1, 0).contiguous()


def _grouped(weights: Tensor, units: Tensor) -> Tensor:
    """Return weights ``[n, 1 or C]`` by group, to multiply ``units`` with."""
    if len(units) > 1:
        return weights.t().unsqueeze(1)
    return weights.expand(-1, units.shape[2] // len(weights)).reshape(1, 1, -1)


def _ungrouped(units: Tensor, windows: int) -> Tensor:
    """Undo ``_units``: ``[n, X, C]``."""
    if len(units) > 1:
        return units.permute(2, 1, 0)
    return units.view(units.shape[1], windows, -1).transpose(0, 1)
