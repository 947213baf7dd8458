"""Variable-to-static routing: from as many capsules as a tree has to a fixed number."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from treecaps.nn.squash import SquashForm, squash

# Coupling coefficients worked on at a time: few enough to stay in the cache, and to bound memory.
_BLOCK = 1 << 19


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
        capsules ``[W, C, D]``, squashed, of the distinct windows: C channels, D dimensions;
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
        if self.per_channel and self.statics == 1 and self.routed is None and self.iterations:
            # A single static capsule takes all there is, whatever it starts from.
            flat = capsules.flatten(1)
            begins = torch.tensor(bounds[:-1])
            sums = functional.embedding_bag(
                window, flat, begins, mode="sum", per_sample_weights=weight
            )
            return squash(sums.view(-1, *capsules.shape[1:]), self.form)
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
            windows = window[None, begin:end]
            units = _units(capsules, windows, total.shape[1])
            agreement = torch.bmm(units, total[program].mT)
            agreement[:, :, ~present[program]] = -math.inf
            shares.append(_by_window(agreement.softmax(2), windows))
        return shares

    def _route(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the last static capsules, the sum of all before them, and which there are.

        Returns:
            ``[B, G, a, D]`` twice, for G = 1 or one group for each channel, and ``[B, a]``.
        """
        channels = capsules.shape[1]
        whole = _blocks(window, bounds, channels, split=False)
        weights = weight.unsqueeze(1)
        if self.routed is not None:
            weights = weights * self._routed_share(capsules, count, whole)
        values, present = self._starts(capsules, count, whole, len(bounds) - 1)
        total = torch.zeros_like(values)
        blocks = _blocks(window, bounds, channels * self.statics, split=True)
        for _ in range(self.iterations):
            total = total + values
            sums = _Route.apply(capsules, weights, total, present, blocks)  # type: ignore[no-untyped-call]
            values = squash(sums, self.form)
        return values, total, present

    def _by_length(self, lengths: Tensor, count: Tensor, most: int | None) -> tuple[Tensor, Tensor]:
        """Order the capsules of k programs by length, those that do not occur last.

        Args:
            lengths: ``[k, n, C]``.
            count: ``[k, n]``.
            most: How many of the longest are needed; all by default.

        Returns:
            The places of the longest among n capsules of a channel, or n C of a program, and
            their counts, ``[k, G, m]``.
        """
        programs, size, channels = lengths.shape
        lengths = lengths.masked_fill(count.unsqueeze(2) == 0, -1)
        if self.per_channel:
            lengths = lengths.transpose(1, 2)
            count = count.unsqueeze(1).expand(-1, channels, -1)
        else:
            lengths = lengths.reshape(programs, 1, -1)
            count = count.unsqueeze(2).expand(-1, -1, channels).reshape(programs, 1, -1)
        size = lengths.shape[2]
        place = lengths.topk(size if most is None else min(most, size), 2).indices
        return place, count.gather(2, place)

    @torch.no_grad()
    def _routed_share(self, capsules: Tensor, count: Tensor, blocks: "list[_Block]") -> Tensor:
        """Return which share of each capsule's multiplicity is among the longest, ``[P, C]``."""
        assert self.routed is not None
        lengths = capsules.square().sum(2)
        shares = lengths.new_zeros(len(count), capsules.shape[1])
        for block in blocks:
            place, multiplicity = self._by_length(lengths[block.window], block.of(count), None)
            before = multiplicity.cumsum(2) - multiplicity
            kept = (self.routed - before).clamp(min=0).minimum(multiplicity)
            share = torch.zeros_like(kept).scatter_(2, place, kept / multiplicity.clamp(min=1))
            share = share.mT if self.per_channel else share.view(*block.window.shape, -1)
            shares.index_add_(0, block.rows.flatten(), share.flatten(0, 1))
        return shares

    def _starts(
        self, capsules: Tensor, count: Tensor, blocks: "list[_Block]", programs: int
    ) -> tuple[Tensor, Tensor]:
        """Return the longest capsules of each program, and which of a there are.

        Returns:
            ``[B, G, a, D]`` with zeros for what is missing, and ``[B, a]``.
        """
        channels = capsules.shape[1]
        groups = channels if self.per_channel else 1
        with torch.no_grad():
            lengths = capsules.square().sum(2)
            index = torch.zeros(2, programs, groups, self.statics, dtype=torch.long)
            present = torch.zeros(programs, self.statics, dtype=torch.bool)
            slots = torch.arange(self.statics, dtype=count.dtype)
            for block in blocks:
                counts = block.of(count)
                if self.distinct:
                    counts = counts.clamp(max=1)
                place, multiplicity = self._by_length(lengths[block.window], counts, self.statics)
                # The capsule of the slot that each static capsule comes to: one that occurs
                # three times fills three slots.
                reached = multiplicity.cumsum(2)
                wanted = slots.repeat(*place.shape[:2], 1)
                slot = torch.searchsorted(reached, wanted, right=True)
                place = place.gather(2, slot.clamp(max=place.shape[2] - 1))
                channel = torch.arange(channels).unsqueeze(1)
                if not self.per_channel:
                    place, channel = place // channels, place % channels
                windows = block.window.unsqueeze(1).expand(-1, groups, -1).gather(2, place)
                index[0, block.programs] = windows
                index[1, block.programs] = channel.expand_as(windows)
                present[block.programs] = slots < reached[:, 0, -1:]
        starts = capsules[index[0], index[1]]
        return starts.masked_fill(~present[:, None, :, None], 0), present


@dataclass(frozen=True)
class _Block:
    """Programs of about one size, or a part of a large one.

    Args:
        programs: ``[k]``.
        rows: ``[k, n]``, places of their windows in what is ``[P]`` long.
        padding: ``[k, n]``, which of these only fill up a shorter program; ``None`` for none.
        window: ``[k, n]``, the distinct windows there.
    """

    programs: Tensor
    rows: Tensor
    padding: Tensor | None
    window: Tensor

    def of(self, values: Tensor) -> Tensor:
        """Look up what belongs to the windows, ``[P, ...]`` to ``[k, n, ...]``; padding has 0."""
        found = values[self.rows]
        if self.padding is not None:
            found[self.padding] = 0
        return found


def _blocks(window: Tensor, bounds: list[int], row: int, *, split: bool) -> list[_Block]:
    """Divide programs into blocks of at most ``_BLOCK`` numbers, with ``row`` for each window.

    Programs of about one size share a block, so that little is wasted on padding. One that is
    too large has a block of its own, or is split into several.
    """
    most = max(1, _BLOCK // row)
    begins = torch.tensor(bounds[:-1])
    sizes = torch.tensor(bounds).diff()
    order = sizes.argsort(descending=True, stable=True).tolist()
    lengths = sizes.tolist()
    blocks, place = [], 0
    while place < len(order):
        size = lengths[order[place]]
        if size > most:
            programs = torch.tensor([order[place]])
            begin, end = bounds[order[place]], bounds[order[place] + 1]
            for first in range(begin, end, most if split else size):
                rows = torch.arange(first, min(first + most, end) if split else end).unsqueeze(0)
                blocks.append(_Block(programs, rows, None, window[rows]))
            place += 1
            continue
        last = place + 1
        while (
            last < len(order)
            and (last + 1 - place) * size <= most
            and 4 * lengths[order[last]] >= 3 * size
        ):
            last += 1
        programs = torch.tensor(order[place:last])
        steps = torch.arange(size)
        padding = steps >= sizes[programs].unsqueeze(1)
        rows = begins[programs].unsqueeze(1) + steps.masked_fill(padding, 0)
        blocks.append(_Block(programs, rows, padding if last - place > 1 else None, window[rows]))
        place = last
    return blocks


class _Route(torch.autograd.Function):
    """One round of routing: the sums over m_i beta_ij u_i, for beta_i = softmax_j(u_i v_j).

    Works through one block of programs at a time, so that what it touches stays in the cache,
    and computes the coefficients again for the gradient instead of keeping them. All products
    are at most r in size, so the softmax needs no care for overflow.
    """

    @staticmethod
    def forward(
        ctx: Any,
        capsules: Tensor,
        weights: Tensor,
        values: Tensor,
        present: Tensor,
        blocks: list[_Block],
    ) -> Tensor:
        ctx.save_for_backward(capsules, weights, values, present)
        ctx.blocks = blocks
        sums = torch.zeros_like(values)
        for block in blocks:
            units = _units(capsules, block.window, values.shape[1])
            coupling, whole = _agree(values, present, block.programs, units)
            coupling *= _by_group(block.of(weights), units) / whole
            block_sums = torch.bmm(coupling, units)
            sums.index_add_(0, block.programs, block_sums.view(-1, *values.shape[1:]))
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        capsules, weights, values, present = ctx.saved_tensors
        for_capsules = torch.zeros_like(capsules)
        for_weights = torch.zeros_like(weights) if ctx.needs_input_grad[1] else None
        for_values = torch.zeros_like(values)
        for block in ctx.blocks:
            units = _units(capsules, block.window, values.shape[1])
            target = values[block.programs].flatten(0, 1)
            slope = gradient[block.programs].flatten(0, 1)
            coupling, whole = _agree(values, present, block.programs, units)
            coupling /= whole
            pull = torch.bmm(slope, units.mT)
            mean = (coupling * pull).sum(1, keepdim=True)
            if for_weights is not None:
                found = _by_window(mean.mT, block.window).squeeze(2)
                if block.padding is not None:
                    found[block.padding.flatten()] = 0
                rows = found if weights.shape[1] > 1 else found.sum(1, keepdim=True)
                for_weights.index_add_(0, block.rows.flatten(), rows)
            coupling *= _by_group(block.of(weights), units)
            pull.sub_(mean).mul_(coupling)
            for_units = torch.bmm(coupling.mT, slope).baddbmm_(pull.mT, target)
            found = torch.bmm(pull, units).view(-1, *values.shape[1:])
            for_values.index_add_(0, block.programs, found)
            for_capsules.index_add_(0, block.window.flatten(), _by_window(for_units, block.window))
        return for_capsules, for_weights, for_values, None, None


def _agree(
    values: Tensor, present: Tensor, programs: Tensor, units: Tensor
) -> tuple[Tensor, Tensor]:
    """Return exp(u_i v_j) as ``[k G, a, n]``, and its sums over j as ``[k G, 1, n]``."""
    coupling = torch.bmm(values[programs].flatten(0, 1), units.mT).exp_()
    there = present[programs]
    if not there.all():
        groups = values.shape[1]
        coupling *= there.repeat_interleave(groups, 0).unsqueeze(2)
    # A program without any has no sums either.
    return coupling, coupling.sum(1, keepdim=True).clamp_(min=torch.finfo(units.dtype).tiny)


def _units(capsules: Tensor, window: Tensor, groups: int) -> Tensor:
    """Return a copy of the capsules of windows ``[k, n]`` by group.

    Returns:
        ``[k, n C, D]`` for one group, ``[k C, n, D]`` for one a channel.
    """
    programs, windows = window.shape
    channels, size = capsules.shape[1:]
    units = capsules.index_select(0, window.flatten())
    if groups == 1:
        return units.view(programs, -1, size)
    return units.view(programs, windows, channels, size).transpose(1, 2).reshape(-1, windows, size)


def _by_group(weights: Tensor, units: Tensor) -> Tensor:
    """Return weights ``[k, n, 1 or C]`` for ``units``: ``[k, 1, n C]`` or ``[k C, 1, n]``."""
    programs, size, _ = weights.shape
    if len(units) == programs:
        return weights.expand(-1, -1, units.shape[1] // size).reshape(programs, 1, -1)
    return weights.mT.expand(-1, len(units) // programs, -1).reshape(-1, 1, size)


def _by_window(units: Tensor, window: Tensor) -> Tensor:
    """Undo ``_units``: what is ``[k, n C, X]`` or ``[k C, n, X]`` as ``[k n, C, X]``."""
    programs, size = window.shape
    if len(units) == programs:
        return units.reshape(programs * size, -1, units.shape[2])
    return units.view(programs, -1, size, units.shape[2]).transpose(1, 2).flatten(0, 1)
