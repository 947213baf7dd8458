"""Variable-to-static routing: from as many capsules as a tree has to a fixed number."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from treecaps.nn.squash import SquashForm, squash

# Numbers worked on at a time: few enough to stay in the cache, and to bound memory.
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
    and the sum V_j of all v_j so far, and need not be kept. As the shares of a capsule sum to 1,
    it is enough to find those of all static capsules but the first, from the differences
    V_j - V_1; the first gets the rest.

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
        values = self._route(capsules, window, count, weight, bounds)[0]
        return values.permute(0, 3, 1, 2).flatten(1, 2)

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
            agreement = _products(capsules[window[begin:end]], total[program, None])
            agreement[:, ~present[program]] = -math.inf
            shares.append(agreement.softmax(1).mT)
        return shares

    @torch.no_grad()
    def shares(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> list[Tensor]:
        """Return for each program ``[n, S]``, how much of its static capsules is due to windows.

        Each of the S static capsules is a sum; its parts along it make 1 in all.
        """
        values, total, present = self._route(capsules, window, count, weight, bounds)
        weights = weight.unsqueeze(1)
        if self.routed is not None:
            blocks = _blocks(window, bounds, capsules.shape[2])
            weights = weights * self._routed_share(capsules, count, blocks)
        found = []
        for program, (begin, end) in enumerate(pairwise(bounds)):
            units = capsules[window[begin:end]]
            agreement = _products(units, total[program, None])
            agreement[:, ~present[program]] = -math.inf
            along = _products(units, values[program, None]) * agreement.softmax(1)
            along = along * weights[begin:end].unsqueeze(1)  # [n, a, C]
            along = along.mT if self.per_channel else along.sum(2)
            along = along.flatten(1)
            # One that does not occur is due to nothing.
            found.append(along / along.sum(0).where(along.sum(0) != 0, 1))
        return found

    def _route(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the last static capsules, the sum of all before them, and which there are.

        Returns:
            ``[B, a, D, G]`` twice, for G = 1 or one group for each channel, and ``[B, a]``.
        """
        if self.routed is None:
            weights = weight.unsqueeze(1)
        else:
            share = self._routed_share(capsules, count, _blocks(window, bounds, capsules.shape[2]))
            weights = weight.unsqueeze(1) * share
        values, present = self._starts(capsules, window, count, bounds)
        total = torch.zeros_like(values)
        everything = self._everything(capsules, window, weights, bounds)
        for _ in range(self.iterations):
            total = total + values
            first, others = total[:, :1], total[:, 1:]
            sums = everything
            if self.statics > 1:
                sums = _Route.apply(  # type: ignore[no-untyped-call]
                    capsules, weights, others - first, present[:, 1:], window, bounds
                )
                sums = torch.cat([everything - sums.sum(1, keepdim=True), sums], 1)
            values = squash(sums, self.form, dim=2)
        return values, total, present

    def _everything(
        self, capsules: Tensor, window: Tensor, weights: Tensor, bounds: list[int]
    ) -> Tensor:
        """Return the sums of all capsules of each program, ``[B, 1, D, G]``."""
        begins = torch.tensor(bounds[:-1])
        if weights.shape[1] == 1:
            sums = functional.embedding_bag(
                window, capsules.flatten(1), begins, mode="sum", per_sample_weights=weights[:, 0]
            )
        else:
            sums = _segment_sums(capsules[window] * weights.unsqueeze(1), begins)
        sums = sums.view(-1, 1, *capsules.shape[1:])
        return sums if self.per_channel else sums.sum(3, keepdim=True)

    @torch.no_grad()
    def _routed_share(self, capsules: Tensor, count: Tensor, blocks: "list[_Block]") -> Tensor:
        """Return which share of each capsule's multiplicity is among the longest, ``[P, C]``."""
        assert self.routed is not None
        lengths = capsules.square().sum(1)
        shares = torch.zeros(len(count), capsules.shape[2], dtype=count.dtype)
        for block in blocks:
            length, counts = self._lengths(lengths, count, block)
            order = length.argsort(1, descending=True)
            multiplicity = counts.unsqueeze(2).expand(-1, -1, lengths.shape[1])
            multiplicity = multiplicity.reshape_as(length).gather(1, order)
            before = multiplicity.cumsum(1) - multiplicity
            kept = (self.routed - before).clamp(min=0).minimum(multiplicity)
            share = torch.zeros_like(kept).scatter_(1, order, kept / multiplicity.clamp(min=1))
            shares.index_add_(0, block.rows.flatten(), share.view(block.rows.numel(), -1))
        return shares

    def _starts(
        self, capsules: Tensor, window: Tensor, count: Tensor, bounds: list[int]
    ) -> tuple[Tensor, Tensor]:
        """Return the longest capsules of each program, and which of a there are.

        Returns:
            ``[B, a, D, G]`` with zeros for what is missing, and ``[B, a]``.
        """
        programs, (size, channels) = len(bounds) - 1, capsules.shape[1:]
        groups = channels if self.per_channel else 1
        if self.statics == 1 and self.iterations:
            # A single static capsule takes all there is, whatever it starts from.
            return capsules.new_zeros(programs, 1, size, groups), torch.ones(programs, 1) > 0
        place = torch.zeros(programs, self.statics, groups, dtype=torch.long)
        present = torch.zeros(programs, self.statics, dtype=torch.bool)
        with torch.no_grad():
            lengths = capsules.square().sum(1)
            for block in _blocks(window, bounds, channels):
                length, counts = self._lengths(lengths, count, block)
                before = times = torch.zeros(len(block.programs), groups, dtype=torch.long)
                for start in range(self.statics):
                    longest, item = length.max(1)
                    row, channel = item, torch.arange(channels)
                    if not self.per_channel:
                        row, channel = item // channels, item % channels
                    place[block.programs, start] = block.window.gather(1, row) * channels + channel
                    present[block.programs, start] = longest[:, 0] >= 0
                    # A capsule that occurs three times fills three places, one after the other.
                    times = torch.where(item == before, times, 0) + 1
                    before = item
                    more = (counts.gather(1, row) > times) & (not self.distinct)
                    length.scatter_(1, item.unsqueeze(1), longest.where(more, -1).unsqueeze(1))
        starts = capsules.mT.flatten(0, 1)[place].mT
        return starts.masked_fill(~present[:, :, None, None], 0), present

    def _lengths(self, lengths: Tensor, count: Tensor, block: "_Block") -> tuple[Tensor, Tensor]:
        """Return the lengths of what is routed together, -1 for what does not occur, and counts.

        Returns:
            ``[k, n, C]`` for routing by channel, otherwise ``[k, n C, 1]``; and ``[k, n]``.
        """
        counts = block.of(count)
        found = lengths[block.window].masked_fill_(counts.unsqueeze(2) == 0, -1)
        return found if self.per_channel else found.view(len(found), -1, 1), counts


@dataclass(frozen=True)
class _Block:
    """Programs of about one size.

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


def _blocks(window: Tensor, bounds: list[int], row: int) -> list[_Block]:
    """Divide programs into blocks of about ``_BLOCK`` numbers, with ``row`` for each window.

    Programs of about one size share a block, so that little is wasted on padding.
    """
    most = max(1, _BLOCK // row)
    begins = torch.tensor(bounds[:-1])
    sizes = torch.tensor(bounds).diff()
    order = sizes.argsort(descending=True, stable=True).tolist()
    lengths = sizes.tolist()
    blocks, place = [], 0
    while place < len(order):
        size = lengths[order[place]]
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


@dataclass(frozen=True)
class _Piece:
    """Consecutive programs, or a part of a large one.

    Args:
        programs: Which.
        rows: Their places in what is ``[P]`` long.
        begins: ``[k]``, where in the piece the windows of each program begin.
        owner: ``[n]``, which of the k programs each window is of.
        window: ``[n]``, the distinct windows there.
    """

    programs: slice
    rows: slice
    begins: Tensor
    owner: Tensor
    window: Tensor


def _pieces(window: Tensor, bounds: list[int], row: int) -> Iterator[_Piece]:
    """Go through the programs in pieces of at most ``_BLOCK`` numbers, ``row`` a window."""
    most = max(1, _BLOCK // row)
    first, programs = 0, len(bounds) - 1
    while first < programs:
        last = first + 1
        while last < programs and bounds[last + 1] - bounds[first] <= most:
            last += 1
        begin, end = bounds[first], bounds[last]
        sizes = torch.tensor(bounds[first : last + 1]).diff()
        begins = torch.tensor(bounds[first:last]) - begin
        owner = torch.arange(last - first).repeat_interleave(sizes)
        for start in range(begin, end, most):
            rows = slice(start, min(start + most, end))
            part = slice(start - begin, rows.stop - begin)
            yield _Piece(slice(first, last), rows, begins, owner[part], window[rows])
        first = last


class _Route(torch.autograd.Function):
    """One round of routing: the sums over m_i beta_ij u_i of all static capsules but the first.

    beta_i is the softmax over 0 and the products of u_i with the differences V_j - V_1. Works
    through one piece of the programs at a time, so that what it touches stays in the cache, and
    computes the coefficients again for the gradient instead of keeping them. All products are at
    most 2 r in size, so the softmax needs no care for overflow.
    """

    @staticmethod
    def forward(
        ctx: Any,
        capsules: Tensor,
        weights: Tensor,
        differences: Tensor,
        present: Tensor,
        window: Tensor,
        bounds: list[int],
    ) -> Tensor:
        ctx.save_for_backward(capsules, weights, differences, present, window)
        ctx.bounds = bounds
        sums = torch.zeros_like(differences)
        for piece in _pieces(window, bounds, capsules[0].numel()):
            units = capsules.index_select(0, piece.window)
            coupling = _coupling(units, differences, present, piece)
            coupling *= weights[piece.rows].unsqueeze(1)
            sums[piece.programs] += _segment_sums(
                _weighted(coupling, units, differences.shape[3]), piece.begins
            )
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        capsules, weights, differences, present, window = ctx.saved_tensors
        groups = differences.shape[3]
        for_capsules = torch.zeros_like(capsules)
        for_weights = torch.zeros_like(weights) if ctx.needs_input_grad[1] else None
        for_differences = torch.zeros_like(differences)
        for piece in _pieces(window, ctx.bounds, capsules[0].numel()):
            units = capsules.index_select(0, piece.window)
            target = differences[piece.programs].index_select(0, piece.owner)
            slope = gradient[piece.programs].index_select(0, piece.owner)
            coupling = _coupling(units, differences, present, piece)
            pull = _products(units, slope)
            mean = (coupling * pull).sum(1, keepdim=True)
            if for_weights is not None:
                found = mean.squeeze(1)
                for_weights[piece.rows] = (
                    found if weights.shape[1] > 1 else found.sum(1, keepdim=True)
                )
            coupling *= weights[piece.rows].unsqueeze(1)
            pull.sub_(mean).mul_(coupling)
            for_units = _spread(coupling, slope).add_(_spread(pull, target))
            for_differences[piece.programs] += _segment_sums(
                _weighted(pull, units, groups), piece.begins
            )
            for_capsules.index_add_(0, piece.window, for_units)
        return for_capsules, for_weights, for_differences, None, None, None


def _coupling(units: Tensor, differences: Tensor, present: Tensor, piece: _Piece) -> Tensor:
    """Return beta of all static capsules but the first, ``[n, a - 1, C]``."""
    target = differences[piece.programs].index_select(0, piece.owner)
    coupling = _products(units, target).exp_()
    there = present[piece.programs]
    if not there.all():
        coupling *= there[piece.owner].unsqueeze(2)
    return coupling.div_(1 + coupling.sum(1, keepdim=True))


def _products(units: Tensor, values: Tensor) -> Tensor:
    """Multiply capsules ``[n, D, C]`` by values ``[n or 1, j, D, C or 1]`` to ``[n, j, C]``."""
    if values.shape[3] == 1:
        return torch.matmul(values.squeeze(3), units)
    return torch.stack([(units * value).sum(1) for value in values.unbind(1)], 1)


def _weighted(coupling: Tensor, units: Tensor, groups: int) -> Tensor:
    """Multiply capsules ``[n, D, C]`` by coupling ``[n, j, C]`` to ``[n, j, D, G]``."""
    if groups == 1:
        return torch.bmm(coupling, units.mT).unsqueeze(3)
    return coupling.unsqueeze(2) * units.unsqueeze(1)


def _spread(coupling: Tensor, values: Tensor) -> Tensor:
    """Sum values ``[n, j, D, C or 1]`` by coupling ``[n, j, C]`` to ``[n, D, C]``."""
    if values.shape[3] == 1:
        return torch.bmm(values.squeeze(3).mT, coupling)
    return (coupling.unsqueeze(2) * values).sum(1)


def _segment_sums(values: Tensor, begins: Tensor) -> Tensor:
    """Sum what is ``[n, ...]`` over the k segments that begin there, to ``[k, ...]``."""
    rows = torch.arange(len(values))
    sums = functional.embedding_bag(rows, values.flatten(1), begins, mode="sum")
    return sums.view(-1, *values.shape[1:])
