"""Variable-to-static routing: from as many capsules as a tree has to a fixed number."""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from treecaps.nn.routing_engine import (
    Block,
    blocks,
    products,
    route,
    route_together,
    segment_sums,
)
from treecaps.nn.squash import SquashForm, squash


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
        stop_gradient: Let no gradient through the routed capsules, only through the starts.
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
        stop_gradient: bool = False,
        form: SquashForm = "sabour",
    ) -> None:
        super().__init__()
        self.statics, self.routed, self.iterations = statics, routed, iterations
        self.per_channel, self.distinct = per_channel, distinct
        self.stop_gradient, self.form = stop_gradient, form

    def extra_repr(self) -> str:
        """Return the options that ``print`` shows."""
        return (
            f"{self.statics}, routed={self.routed}, iterations={self.iterations},"
            f" per_channel={self.per_channel}, distinct={self.distinct},"
            f" stop_gradient={self.stop_gradient}, form={self.form}"
        )

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
            agreement = products(capsules[window[begin:end]], total[program, None])
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
            parts = blocks(window, bounds, capsules.shape[2])
            weights = weights * self._routed_share(capsules, count, parts)
        found = []
        for program, (begin, end) in enumerate(pairwise(bounds)):
            units = capsules[window[begin:end]]
            agreement = products(units, total[program, None])
            agreement[:, ~present[program]] = -math.inf
            along = products(units, values[program, None]) * agreement.softmax(1)
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
            share = self._routed_share(capsules, count, blocks(window, bounds, capsules.shape[2]))
            weights = weight.unsqueeze(1) * share
        values, present = self._starts(capsules, window, count, bounds)
        if self.stop_gradient:
            capsules, weights = capsules.detach(), weights.detach()
        if not self.per_channel:
            values, total = self._route_together(values, present, capsules, window, weights, bounds)
            return values, total, present
        total = torch.zeros_like(values)
        everything = self._everything(capsules, window, weights, bounds)
        for _ in range(self.iterations):
            total = total + values
            first, others = total[:, :1], total[:, 1:]
            sums = everything
            if self.statics > 1:
                sums = route(capsules, weights, others - first, present[:, 1:], window, bounds)
                sums = torch.cat([everything - sums.sum(1, keepdim=True), sums], 1)
            values = squash(sums, self.form, dim=2)
        return values, total, present

    def _route_together(
        self,
        starts: Tensor,
        present: Tensor,
        capsules: Tensor,
        window: Tensor,
        weights: Tensor,
        bounds: list[int],
    ) -> tuple[Tensor, Tensor]:
        """Route the capsules of all channels together; return what ``_route`` does of statics."""
        order, found = [], []
        for block in blocks(window, bounds, capsules[0].numel()):
            some = capsules[block.window].mT.flatten(1, 2)  # [k, n C, D]
            weight = block.of(weights).expand(-1, -1, capsules.shape[2]).flatten(1)
            missing = ~present[block.programs]
            missing[:, 0] = False  # a program without capsules gives its nothing to the first
            values, total = route_together(
                starts[block.programs].squeeze(3), some, weight, missing, self.iterations, self.form
            )
            order.append(block.programs)
            found.append(torch.stack([values, total]))
        values, total = torch.cat(found, 1)[:, torch.cat(order).argsort()].unsqueeze(4)
        return values, total

    def _everything(
        self, capsules: Tensor, window: Tensor, weights: Tensor, bounds: list[int]
    ) -> Tensor:
        """Return the sums of each program's capsules by channel, ``[B, 1, D, C]``."""
        begins = torch.tensor(bounds[:-1], device=window.device)
        if weights.shape[1] == 1:
            sums = functional.embedding_bag(
                window, capsules.flatten(1), begins, mode="sum", per_sample_weights=weights[:, 0]
            )
        else:
            sums = segment_sums(capsules[window] * weights.unsqueeze(1), begins)
        return sums.view(-1, 1, *capsules.shape[1:])

    @torch.no_grad()
    def _routed_share(self, capsules: Tensor, count: Tensor, parts: list[Block]) -> Tensor:
        """Return which share of each capsule's multiplicity is among the longest, ``[P, C]``."""
        assert self.routed is not None
        lengths = capsules.square().sum(1)
        shares = count.new_zeros(len(count), capsules.shape[2])
        for block in parts:
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
            present = window.new_ones(programs, 1, dtype=torch.bool)
            return capsules.new_zeros(programs, 1, size, groups), present
        place = window.new_zeros(programs, self.statics, groups)
        present = window.new_zeros(programs, self.statics, dtype=torch.bool)
        with torch.no_grad():
            lengths = capsules.square().sum(1)
            for block in blocks(window, bounds, channels):
                length, counts = self._lengths(lengths, count, block)
                before = times = window.new_zeros(len(block.programs), groups)
                for start in range(self.statics):
                    longest, item = length.max(1)
                    row, channel = item, torch.arange(channels, device=item.device)
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

    def _lengths(self, lengths: Tensor, count: Tensor, block: Block) -> tuple[Tensor, Tensor]:
        """Return the lengths of what is routed together, -1 for what does not occur, and counts.

        Returns:
            ``[k, n, C]`` for routing by channel, otherwise ``[k, n C, 1]``; and ``[k, n]``.
        """
        counts = block.of(count)
        found = lengths[block.window].masked_fill_(counts.unsqueeze(2) == 0, -1)
        return found if self.per_channel else found.view(len(found), -1, 1), counts
