"""The engine of variable-to-static routing: one round of it over many programs at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from treecaps.nn.compilation import LARGEST_SIZE, find_compiled, is_plain
from treecaps.nn.squash import SquashForm, squash

# Numbers worked on at a time: few enough to stay in the cache, and to bound memory.
_BLOCK = 1 << 19


@dataclass(frozen=True)
class Block:
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


def blocks(window: Tensor, bounds: list[int], row: int) -> list[Block]:
    """Divide programs into blocks of about ``_BLOCK`` numbers, with ``row`` for each window.

    Programs of about one size share a block, so that little is wasted on padding.
    """
    most = max(1, _BLOCK // row)
    device = window.device
    sizes = torch.tensor(bounds, device=device).diff()
    begins = torch.tensor(bounds[:-1], device=device)
    lengths = [end - begin for begin, end in pairwise(bounds)]
    order = sorted(range(len(lengths)), key=lambda program: -lengths[program])
    found, place = [], 0
    while place < len(order):
        size = lengths[order[place]]
        last = place + 1
        while (
            last < len(order)
            and (last + 1 - place) * size <= most
            and 4 * lengths[order[last]] >= 3 * size
        ):
            last += 1
        programs = torch.tensor(order[place:last], device=device)
        steps = torch.arange(size, device=device)
        padding = steps >= sizes[programs].unsqueeze(1)
        rows = begins[programs].unsqueeze(1) + steps.masked_fill(padding, 0)
        found.append(Block(programs, rows, padding if last - place > 1 else None, window[rows]))
        place = last
    return found


@dataclass(frozen=True)
class _Chunk:
    """Consecutive programs, or a part of a large one.

    Args:
        programs: Which.
        rows: Their places in what is ``[P]`` long.
        begins: ``[k]``, where in the chunk the windows of each program begin.
        owner: ``[n]``, which of the k programs each window is of.
        window: ``[n]``, the distinct windows there.
    """

    programs: slice
    rows: slice
    begins: Tensor
    owner: Tensor
    window: Tensor


def _chunks(window: Tensor, bounds: list[int], row: int) -> Iterator[_Chunk]:
    """Go through the programs in chunks of at most ``_BLOCK`` numbers, ``row`` a window."""
    most = max(1, _BLOCK // row)
    first, programs = 0, len(bounds) - 1
    while first < programs:
        last = first + 1
        while last < programs and bounds[last + 1] - bounds[first] <= most:
            last += 1
        begin, end = bounds[first], bounds[last]
        starts = torch.tensor(bounds[first : last + 1], device=window.device)
        begins = starts[:-1] - begin
        owner = torch.arange(last - first, device=window.device).repeat_interleave(starts.diff())
        for start in range(begin, end, most):
            rows = slice(start, min(start + most, end))
            part = slice(start - begin, rows.stop - begin)
            yield _Chunk(slice(first, last), rows, begins, owner[part], window[rows])
        first = last


def route(
    capsules: Tensor,
    weights: Tensor,
    differences: Tensor,
    present: Tensor,
    window: Tensor,
    bounds: list[int],
) -> Tensor:
    """Run one round of routing, each channel by itself.

    Args:
        capsules: ``[W, D, C]``, u of the distinct windows.
        weights: ``[P, 1]`` or ``[P, C]``, multiplicities m.
        differences: ``[B, a - 1, D, C]``, V_j - V_1 of each channel.
        present: ``[B, a - 1]``, which of these static capsules there are.
        window: ``[P]``, the distinct windows of the programs, program after program.
        bounds: ``B + 1`` numbers, where each program's windows begin.

    Returns:
        ``[B, a - 1, D, C]``, the sums over m_i beta_ij u_i of all static capsules but the first.
    """
    function: Any = Route
    plain = is_plain(capsules) and capsules.dtype == torch.float32
    small = capsules.shape[1] <= LARGEST_SIZE
    if plain and small and (compiled := find_compiled("compiled_channels")):
        function = compiled.CompiledRoute
    sums: Tensor = function.apply(capsules, weights, differences, present, window, bounds)
    return sums


class Route(torch.autograd.Function):
    """One round of routing: the sums over m_i beta_ij u_i of all static capsules but the first.

    beta_i is the softmax over 0 and the products of u_i with the differences V_j - V_1. Works
    through one chunk of the programs at a time, so that what it touches stays in the cache, and
    computes the coefficients again for the gradient instead of keeping them.
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
        """Return the sums ``[B, a - 1, D, C]``."""
        ctx.save_for_backward(capsules, weights, differences, present, window)
        ctx.bounds = bounds
        sums = torch.zeros_like(differences)
        for chunk in _chunks(window, bounds, capsules[0].numel()):
            units = capsules.index_select(0, chunk.window)
            coupling = _coupling(units, differences, present, chunk)
            coupling *= weights[chunk.rows].unsqueeze(1)
            sums[chunk.programs] += segment_sums(_weighted(coupling, units), chunk.begins)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the capsules, the weights and the differences."""
        (gradient,) = gradients
        capsules, weights, differences, present, window = ctx.saved_tensors
        for_capsules = torch.zeros_like(capsules)
        for_weights = torch.zeros_like(weights) if ctx.needs_input_grad[1] else None
        for_differences = torch.zeros_like(differences)
        for chunk in _chunks(window, ctx.bounds, capsules[0].numel()):
            units = capsules.index_select(0, chunk.window)
            target = differences[chunk.programs].index_select(0, chunk.owner)
            grad = gradient[chunk.programs].index_select(0, chunk.owner)
            coupling = _coupling(units, differences, present, chunk)
            pull = products(units, grad)
            mean = (coupling * pull).sum(1, keepdim=True)
            if for_weights is not None:
                found = mean.squeeze(1)
                for_weights[chunk.rows] = (
                    found if weights.shape[1] > 1 else found.sum(1, keepdim=True)
                )
            coupling *= weights[chunk.rows].unsqueeze(1)
            pull.sub_(mean).mul_(coupling)
            for_units = _spread(coupling, grad).add_(_spread(pull, target))
            for_differences[chunk.programs] += segment_sums(_weighted(pull, units), chunk.begins)
            for_capsules.index_add_(0, chunk.window, for_units)
        return for_capsules, for_weights, for_differences, None, None, None


def route_together(
    starts: Tensor,
    units: Tensor,
    weight: Tensor,
    missing: Tensor,
    iterations: int,
    form: SquashForm,
) -> tuple[Tensor, Tensor]:
    """Run all rounds of routing for some programs, all capsules of a program together.

    Args:
        starts: ``[k, a, D]``, what the static capsules start from.
        units: ``[k, n, D]``, u.
        weight: ``[k, n]``, multiplicities m.
        missing: ``[k, a]``, which of the static capsules there are not.
        iterations: r.
        form: The form of squash.

    Returns:
        ``[k, a, D]`` twice: the last static capsules, and the sum of all before them, which has no
        gradient.
    """
    values, total = _RouteTogether.apply(  # type: ignore[no-untyped-call]
        starts, units, weight, missing, iterations, form
    )
    return values, total


class _RouteTogether(torch.autograd.Function):
    """All rounds of routing of all capsules of a program.

    Each round reads the capsules twice. Their gradient, a sum over all rounds, is one product.
    """

    @staticmethod
    def forward(
        ctx: Any,
        starts: Tensor,
        units: Tensor,
        weight: Tensor,
        missing: Tensor,
        iterations: int,
        form: SquashForm,
    ) -> tuple[Tensor, Tensor]:
        values, total = starts, torch.zeros_like(starts)
        rounds = []
        for _ in range(iterations):
            total = total + values
            agreement = torch.bmm(total, units.mT)  # [k, a, n]
            coupling = agreement.masked_fill_(missing.unsqueeze(2), -torch.inf).softmax(1)
            sums = torch.bmm(coupling * weight.unsqueeze(1), units)
            values = squash(sums, form)
            rounds += [total, coupling, sums]
        ctx.save_for_backward(units, weight, *rounds)
        ctx.form = form
        ctx.mark_non_differentiable(total)
        return values, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        units, weight, *rounds = ctx.saved_tensors
        weight, gradient = weight.unsqueeze(1), gradients[0]
        for_weight, for_total = torch.zeros_like(weight), torch.zeros_like(gradient)
        left, right = [], []  # the gradient of u is the sum of their products
        for total, coupling, sums in zip(rounds[-3::-3], rounds[-2::-3], rounds[::-3], strict=True):
            with torch.enable_grad():
                leaf = sums.detach().requires_grad_()
                (for_sums,) = torch.autograd.grad(squash(leaf, ctx.form), leaf, gradient)
            pull = torch.bmm(for_sums, units.mT)
            mean = (coupling * pull).sum(1, keepdim=True)
            for_weight += mean
            weighted = coupling * weight
            pull = (pull - mean) * weighted  # the gradient of the agreement
            for_total = for_total + torch.bmm(pull, units)
            left += [weighted, pull]
            right += [for_sums, total]
            gradient = for_total
        for_units = None
        if ctx.needs_input_grad[1] and left:
            for_units = torch.bmm(torch.cat(left, 1).mT, torch.cat(right, 1))
        return gradient, for_units, for_weight.squeeze(1), None, None, None


def _coupling(units: Tensor, differences: Tensor, present: Tensor, chunk: _Chunk) -> Tensor:
    """Return beta of all static capsules but the first, ``[n, a - 1, C]``."""
    target = differences[chunk.programs].index_select(0, chunk.owner)
    agreement = products(units, target)
    there = present[chunk.programs]
    if not there.all():
        agreement.masked_fill_(~there[chunk.owner].unsqueeze(2), -torch.inf)
    largest = agreement.amax(1, keepdim=True).clamp_(min=0)
    coupling = agreement.sub_(largest).exp_()
    return coupling.div_(largest.neg_().exp_() + coupling.sum(1, keepdim=True))


def products(units: Tensor, values: Tensor) -> Tensor:
    """Multiply capsules ``[n, D, C]`` by values ``[n or 1, j, D, C or 1]`` to ``[n, j, C]``."""
    if values.shape[3] == 1:
        return torch.matmul(values.squeeze(3), units)
    return torch.stack([(units * value).sum(1) for value in values.unbind(1)], 1)


def _weighted(coupling: Tensor, units: Tensor) -> Tensor:
    """Multiply capsules ``[n, D, C]`` by coupling ``[n, j, C]`` to ``[n, j, D, C]``."""
    return coupling.unsqueeze(2) * units.unsqueeze(1)


def _spread(coupling: Tensor, values: Tensor) -> Tensor:
    """Sum values ``[n, j, D, C]`` by coupling ``[n, j, C]`` to ``[n, D, C]``."""
    return (coupling.unsqueeze(2) * values).sum(1)


def segment_sums(values: Tensor, begins: Tensor) -> Tensor:
    """Sum what is ``[n, ...]`` over the k segments that begin there, to ``[k, ...]``."""
    rows = torch.arange(len(values), device=values.device)
    sums = functional.embedding_bag(rows, values.flatten(1), begins, mode="sum")
    return sums.view(-1, *values.shape[1:])
