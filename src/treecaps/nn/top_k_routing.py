"""Top-k routing: variable-to-static routing from the largest capsules of each channel."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from treecaps.nn.compilation import LARGEST_SIZE, find_compiled, is_plain
from treecaps.nn.squash import SquashForm, squash

_COMPILED = "compiled_routing"
# Numbers worked on at a time: few enough to stay in the cache, and to bound memory.
_BLOCK = 1 << 18
_FEW = 256
"""Up to so many of a channel, an insertion sort finds them faster than a whole one."""
_SAFE = 60.0
"""Below this, exponentials and their sums are finite in 32 bits."""


class TopKRouting(nn.Module):
    r"""Variable-to-static routing as the published code does it.

    Each channel has a static capsules of its own. They start from the largest of the program:

    - by capsule: the a longest capsules of the channel;
    - by coordinate: the a largest values of each coordinate by themselves, so that a start is put
      together from several nodes (``top_k`` over signed values).

    The b largest of each channel are routed, chosen in the same way. Then r times

    .. math::
        \alpha_{ij} \mathrel{+}= u_i \cdot v_j \qquad
        \beta_i = \mathrm{softmax}_j(\alpha_i) \qquad
        v_j = \mathrm{squash}\Bigl(\sum_i \beta_{ij} u_i\Bigr)

    with the softmax over the static capsules of all channels, or of each channel by itself. Rows
    that are equal are routed once with their multiplicity, on both sides: what starts equal stays
    equal.

    A program with fewer than a nodes has as many static capsules in a channel; the others are zero.

    Args:
        statics: a, the static capsules of a channel.
        routed: b, how many capsules of a channel take part; all by default.
        iterations: r.
        by_coordinate: Choose by coordinate instead of by capsule.
        joint: Let the static capsules of all channels compete together.
        stop_gradient: Let no gradient through the routed capsules u.
        form: The form of squash.

    Shapes:
        capsules ``[W, D, C]`` of the distinct windows; window ``[P]``, the distinct windows of B
        programs, program after program; count ``[P]``, their multiplicities; weight, as for
        ``VariableToStatic``, is not used; bounds, B + 1 numbers, where each program's windows
        begin; output ``[B, C a, D]``.
    """

    def __init__(
        self,
        statics: int,
        *,
        routed: int | None = None,
        iterations: int = 1,
        by_coordinate: bool = False,
        joint: bool = True,
        stop_gradient: bool = False,
        form: SquashForm = "sabour",
    ) -> None:
        super().__init__()
        self.statics, self.routed, self.iterations = statics, routed, iterations
        self.by_coordinate, self.joint = by_coordinate, joint
        self.stop_gradient, self.form = stop_gradient, form

    def extra_repr(self) -> str:
        """Return the options that ``print`` shows."""
        return (
            f"{self.statics}, routed={self.routed}, iterations={self.iterations},"
            f" by_coordinate={self.by_coordinate}, joint={self.joint},"
            f" stop_gradient={self.stop_gradient}, form={self.form}"
        )

    def forward(
        self, capsules: Tensor, window: Tensor, count: Tensor, weight: Tensor, bounds: list[int]
    ) -> Tensor:
        """Return the static capsules."""
        units, count = capsules[window], count.round()
        keys = units.detach()
        if not self.by_coordinate:
            keys = keys.square().sum(1, keepdim=True)
        starts, others = _choose(units, keys, count, bounds, self.statics, self.routed)
        rows = others.rows.detach() if self.stop_gradient else others.rows
        values, total = starts.rows, torch.zeros_like(starts.rows)
        rivals = (others.bounds(self.joint), starts.bounds(self.joint))
        for _ in range(self.iterations):
            total = total + values
            sums = _compete(rows, others.times, total, starts.times, rivals)
            values = squash(sums, self.form)
        nothing = values.new_zeros(1, values.shape[1])
        return torch.cat([values, nothing])[starts.row].flatten(1, 2)


class Rows(NamedTuple):
    """The distinct rows of programs, program after program and channel after channel.

    Args:
        rows: ``[R, D]``.
        times: ``[R]``, how often each occurs.
        row: ``[B, C, k]``, the row of the k-th largest of each channel; R where there is none.
        begins: ``[B C + 1]``, where the rows of each channel of each program begin.
    """

    rows: Tensor
    times: Tensor
    row: Tensor
    begins: NDArray[np.int64]

    def bounds(self, joint: bool) -> NDArray[np.int64]:
        """Return where the rows begin that compete: of a program, or of one of its channels."""
        return self.begins[:: self.row.shape[1]] if joint else self.begins


Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Where the rows u and the rows V of each competition begin."""


def _choose(
    units: Tensor,
    keys: Tensor,
    count: Tensor,
    bounds: list[int],
    statics: int,
    routed: int | None,
) -> tuple[Rows, Rows]:
    """Return the starts and the routed capsules of all programs.

    Args:
        units: ``[P, D, C]``, the capsules of the windows of all programs.
        keys: ``[P, D or 1, C]``, by what they are chosen.
        count: ``[P]``, their multiplicities.
        bounds: Where each program's windows begin.
        statics: a.
        routed: b, or all.
    """
    nodes = [int(count[begin:end].sum()) for begin, end in pairwise(bounds)]
    routed = max(nodes, default=0) if routed is None else routed
    most = max(statics, routed)
    compiled = find_compiled(_COMPILED) if is_plain(units) and most <= _FEW else None
    if compiled is None:
        place = units.new_full((len(nodes), most, *keys.shape[1:]), -1, dtype=torch.long)
        for program, (begin, end) in enumerate(pairwise(bounds)):
            there = begin + count[begin:end].nonzero().squeeze(1)
            if len(there):
                found = _places(keys[there], count[there], min(most, nodes[program]))
                place[program, : len(found)] = there[found]
        return _distinct_rows(units, place[:, :statics]), _distinct_rows(units, place[:, :routed])
    places, flat = compiled.choose_largest(keys, count, bounds, most), units.flatten()

    def rows(most: int) -> Rows:
        index, times, row, begins = compiled.distinct_rows(places, most, units.shape[1])
        chosen = flat.index_select(0, index.flatten()).view_as(index)
        return Rows(chosen, times.to(units.dtype), row, begins)

    return rows(statics), rows(routed)


def _distinct_rows(units: Tensor, place: Tensor) -> Rows:
    """Return the rows at places ``[B, k, D or 1, C]`` of capsules ``[P, D, C]``, equal ones once.

    Places of -1 are none.
    """
    place = place.permute(0, 3, 1, 2)  # [B, C, k, D or 1]
    there = place[..., 0] >= 0
    # Unlike the one before it.
    fresh = torch.ones_like(there)
    fresh[:, :, 1:] = (place[:, :, 1:] != place[:, :, :-1]).any(3)
    fresh &= there
    channel = fresh.nonzero()[:, 1:2]
    coordinate = torch.arange(units.shape[1], device=place.device)
    rows = units[place[fresh], coordinate, channel]  # [R, D]
    number = (fresh.flatten().cumsum(0) - 1).view_as(fresh)
    times = torch.bincount(number[there], minlength=len(rows)).to(units.dtype)
    begins = nn.functional.pad(fresh.sum(2).flatten().cumsum(0), (1, 0)).numpy(force=True)
    return Rows(rows, times, number.where(there, len(rows)), begins)


def _places(keys: Tensor, count: Tensor, most: int) -> Tensor:
    """Return ``[most, K, C]``, where the largest of keys ``[n, K, C]`` are, with multiplicities."""
    kept = min(most, len(keys))
    order = keys.flatten(1).T.contiguous().topk(kept, 1).indices  # [K C, kept]
    ends = count[order].cumsum(1)
    wanted = torch.arange(1, most + 1, device=keys.device, dtype=ends.dtype)
    step = torch.searchsorted(ends, wanted.expand(len(ends), -1).contiguous())
    return order.gather(1, step).T.reshape(most, *keys.shape[1:])


def _compete(units: Tensor, times: Tensor, total: Tensor, copies: Tensor, bounds: Bounds) -> Tensor:
    """Return the sums of one round, compiled where that is possible."""
    function: Any = Competition
    plain = is_plain(units) and units.dtype == torch.float32 and not units.requires_grad
    plain = plain and units.shape[1] <= LARGEST_SIZE
    if plain and _largest_product(units, total) <= _SAFE and (compiled := find_compiled(_COMPILED)):
        function = compiled.CompiledCompetition
    sums: Tensor = function.apply(units, times, total, copies, bounds)
    return sums


class Competition(torch.autograd.Function):
    """One round of routing of rows u with multiplicities m to rows V with multiplicities n.

    The sums over m_i w_ij u_i, with w_ij = exp(u_i V_j) divided by the sum over n_k exp(u_i V_k).
    Rows compete with those between the same bounds. Works through some of the rows at a time, and
    computes the coefficients again for the gradient instead of keeping them.
    """

    @staticmethod
    def forward(
        ctx: Any, units: Tensor, times: Tensor, total: Tensor, copies: Tensor, bounds: Bounds
    ) -> Tensor:
        """Return the sums ``[S, D]``."""
        ctx.save_for_backward(units, times, total, copies)
        ctx.bounds = bounds
        sums = torch.zeros_like(total)
        for rows, to in _blocks(bounds):
            coupling, scale = _coupling(units[rows], times[rows], total[to], copies[to])
            sums[to].addmm_(coupling.T, units[rows] * scale)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of u, if asked for, and of V."""
        (gradient,) = gradients
        units, times, total, copies = ctx.saved_tensors
        needs_units = ctx.needs_input_grad[0]
        for_units = torch.zeros_like(units) if needs_units else None
        for_total, shared = torch.zeros_like(total), torch.zeros_like(total)
        for rows, to in _blocks(ctx.bounds):
            some = units[rows]
            coupling, scale = _coupling(some, times[rows], total[to], copies[to])
            pull = (some @ gradient[to].T).mul_(coupling)
            mean = pull.sum(1, keepdim=True) * (scale / times[rows].unsqueeze(1))
            weighted = some * scale
            for_total[to].addmm_(pull.T, weighted)
            shared[to].addmm_(coupling.T, weighted * mean)
            if for_units is not None:
                direct = (coupling @ gradient[to] + pull @ total[to]) * scale
                among = coupling @ (copies[to].unsqueeze(1) * total[to])
                for_units[rows] = direct - among * scale * mean
        return for_units, None, for_total - copies.unsqueeze(1) * shared, None, None


def _coupling(units: Tensor, times: Tensor, total: Tensor, copies: Tensor) -> tuple[Tensor, Tensor]:
    """Return exp(u V) ``[k, S]``, up to a factor for each row, and m over their sums ``[k, 1]``."""
    coupling = units @ total.T
    if _largest_product(units, total) > _SAFE:
        coupling.sub_(coupling.amax(1, keepdim=True))
    coupling.exp_()
    return coupling, (times / (coupling @ copies)).unsqueeze(1)


def _largest_product(units: Tensor, total: Tensor) -> float:
    """Return a bound of all products of rows."""
    if not len(units):
        return 0.0
    longest = units.square().sum(1).max() * total.square().sum(1).max()
    return math.sqrt(longest.item())


def _blocks(bounds: Bounds) -> Iterator[tuple[slice, slice]]:
    """Yield some of the rows u of a competition, and all rows V of it."""
    for (begin, end), (first, last) in zip(*map(pairwise, bounds), strict=True):
        size = max(1, _BLOCK // max(1, last - first))
        for start in range(begin, end, size):
            yield slice(start, min(start + size, end)), slice(first, last)
