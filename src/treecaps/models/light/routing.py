"""From primary to static capsules in NumPy, program by program."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from treecaps import compiled
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.models.light.arrays import choose, softmax, squash, squash_gradient, sum_runs
from treecaps.models.treecaps_config import TreeCapsConfig

_FEW_STATICS = 16
"""The compiled loop routes to as many static capsules a channel at most."""


class Iteration(NamedTuple):
    """One iteration of routing.

    Args:
        total: ``[G, s, D]``, the sum of the static capsules so far, with which capsules agree.
        shares: ``[G, s, n]``, to what share each capsule goes to each static capsule.
        sums: ``[G, s, D]``, what comes of it before it is squashed.
    """

    total: Floats
    shares: Floats
    sums: Floats


class Routed(NamedTuple):
    """The static capsules of one program, and how they came about.

    Args:
        values: ``[G, s, D]``, for G groups of s that compete by themselves.
        units: ``[G, n, D]``, the capsules that were routed.
        weights: ``[G, 1, n]``, how much they weigh; all the same if ``None``.
        iterations: From first to last.
        runs: How many runs of static capsules there are, each of which should have a of them; it
            has fewer where there are not as many capsules.
        starts: ``[G, s]``, which of the units the first static capsules are; if numbers are
            chosen one by one, ``[G, s, D]``, where in the primary capsules they are.
        place: ``[G, n, D]``, where in the primary capsules the numbers of the units are, if they
            are chosen one by one.
    """

    values: Floats
    units: Floats
    weights: Floats | None
    iterations: list[Iteration]
    runs: int
    starts: Longs
    place: Longs | None = None

    def fill_up(self, statics: int) -> Floats:
        """Return the static capsules as ``[runs a, D]``, with zeros for those that are missing."""
        size = self.values.shape[2]
        there = self.values.reshape(self.runs, -1, size)
        if missing := statics - there.shape[1]:
            there = np.pad(there, ((0, 0), (0, missing), (0, 0)))
        return there.reshape(-1, size)

    def gradient(self, gradient: Floats, form: str, capsules: Floats) -> tuple[Floats, Floats]:
        """Return the gradients of the primary capsules ``[n, D, C]`` and of their weights ``[n]``.

        Args:
            gradient: ``[runs a, D]``, that of the static capsules.
            form: How they are squashed.
            capsules: The primary capsules.
        """
        groups, there, size = self.values.shape
        whole = gradient.reshape(self.runs, -1, size)[:, : groups * there // self.runs]
        of_values, of_totals = whole.reshape(self.values.shape), np.zeros_like(self.values)
        of_units, of_weights = np.zeros_like(self.units), np.zeros_like(self.units[:, :, 0])
        for total, shares, sums in reversed(self.iterations):
            of_sums = squash_gradient(sums, of_values, form)
            of_shares = of_sums @ self.units.swapaxes(1, 2)
            of_weights += (shares * of_shares).sum(1)
            of_shares = self.weigh(of_shares)
            agreement = shares * (of_shares - (shares * of_shares).sum(1, keepdims=True))
            of_units += self.weigh(shares).swapaxes(1, 2) @ of_sums
            of_units += agreement.swapaxes(1, 2) @ total
            # A static capsule is part of the totals of all iterations after it.
            of_totals = of_values = of_totals + agreement @ self.units
        if self.place is not None:
            found = np.zeros_like(capsules)
            np.add.at(found.reshape(-1), self.place, of_units)
            np.add.at(found.reshape(-1), self.starts, of_values)
            return found, np.zeros(len(capsules), capsules.dtype)
        np.add.at(of_units, (np.arange(groups)[:, None], self.starts), of_values)
        if groups == 1:  # all channels of a window, one after the other
            of_units = of_units.reshape(len(capsules), -1, size).swapaxes(0, 1)
            of_weights = of_weights.reshape(len(capsules), -1).T
        return of_units.transpose(1, 2, 0), of_weights.sum(0)

    def weigh(self, shares: Floats) -> Floats:
        """Return shares times the weights of the capsules."""
        return shares if self.weights is None else shares * self.weights

    def due(self, channels: int, statics: int) -> Floats:
        """Return ``[n, runs a]``, how much of each static capsule is due to each window.

        Args:
            channels: C, how many capsules a window has.
            statics: a, how many static capsules a group has with those that are missing.
        """
        shares = self.weigh(self.iterations[-1].shares)
        along = shares * (self.values @ self.units.swapaxes(1, 2))  # [G, s, n]
        along = np.pad(along, ((0, 0), (0, statics - along.shape[1]), (0, 0)))
        along = along.reshape(-1, along.shape[2]).T
        if len(self.units) == 1:  # all channels of a window, one after the other
            along = along.reshape(-1, channels, statics).sum(1)
        return normalize(along)


def normalize(along: Floats) -> Floats:
    """Divide columns by their sums; what is nothing in all stays nothing."""
    total = along.sum(0)
    found: Floats = np.divide(along, total, out=np.zeros_like(along), where=total != 0)
    return found


def make_static(
    config: TreeCapsConfig,
    capsules: Floats,
    window: Longs,
    count: Floats,
    weight: Floats,
    offsets: Longs,
) -> Floats:
    """Return the static capsules ``[B, S, D]`` of B programs, as the layers in ``nn`` do.

    Args:
        config: What the network is made of.
        capsules: ``[W, D, C]``, of the distinct windows.
        window: ``[P]``, the windows of the programs, program after program.
        count: ``[P]``, how often each occurs: once or more.
        weight: ``[P]``, how much that counts.
        offsets: ``[B + 1]``, where each program's windows begin.
    """
    if config.pooling == "max":
        found: Floats = np.maximum.reduceat(capsules.max(2)[window], offsets[:-1], axis=0)
        return found[:, None]
    if config.statics == 1 and config.per_channel and config.routed is None and config.has_routes:
        # A single static capsule takes all there is.
        flat = sum_runs(capsules.reshape(len(capsules), -1), window, offsets, weight)
        sums = flat.reshape(-1, *capsules.shape[1:])
        return squash(sums, config.squash, 1).swapaxes(1, 2)
    if config.per_channel and config.routed is None and config.has_routes:
        return _route_channels(config, capsules, window, count, weight, offsets)
    rows = [slice(begin, end) for begin, end in pairwise(offsets.tolist())]
    return np.stack(
        [
            route(config, capsules[window[one]], count[one], weight[one]).fill_up(config.statics)
            for one in rows
        ]
    )


def _route_channels(
    config: TreeCapsConfig,
    capsules: Floats,
    window: Longs,
    count: Floats,
    weight: Floats,
    offsets: Longs,
) -> Floats:
    """Do what ``route`` does where all capsules of a channel are routed, for many programs.

    What is the same for all programs with a window is computed once, and nothing is kept for a
    backward pass.
    """
    _, size, channels = capsules.shape
    length = np.einsum("wdc,wdc->wc", capsules, capsules)
    found = np.zeros((len(offsets) - 1, channels, config.statics, size), capsules.dtype)
    if config.distinct_starts:
        count = np.minimum(count, 1)
    few = config.statics <= _FEW_STATICS
    if (loops := compiled.loops) and few and capsules.dtype == np.float32:
        sizes = channels, size, config.statics, config.static_iterations
        arrays = capsules, length, window, count, weight, offsets
        printed = config.squash == "printed"
        loops.route_channels(*sizes, printed, *map(np.ascontiguousarray, arrays), found)
        return found.reshape(len(found), -1, size)
    by_channel = np.ascontiguousarray(capsules.swapaxes(1, 2))  # [W, C, D]
    every = np.arange(channels)
    for static, (begin, end) in zip(found, pairwise(offsets.tolist()), strict=True):
        rows = slice(begin, end)
        windows, times = window[rows], count[rows]
        units = by_channel[windows]
        starts = choose(length[windows], times, config.statics)
        if not len(starts):
            continue  # a program without nodes
        values = units[starts, every].swapaxes(0, 1)
        units = units.swapaxes(0, 1)  # [C, n, D]
        total = np.zeros_like(values)
        for _ in range(config.static_iterations):
            total = total + values
            shares = softmax(np.matmul(total, units.swapaxes(1, 2)), 1)
            shares *= weight[rows]
            values = squash(np.matmul(shares, units), config.squash)
        static[:, : values.shape[1]] = values
    return found.reshape(len(found), -1, size)


def route(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Routed:
    """Route the capsules ``[n, D, C]`` of one program."""
    choose_starts = _start if config.has_routes else _start_largest
    routed = choose_starts(config, units, count, weight)
    values, total = routed.values, np.zeros_like(routed.values)
    for _ in range(config.static_iterations):
        total = total + values
        agreement: Floats = np.matmul(total, routed.units.swapaxes(1, 2))
        shares = softmax(agreement, 1) if agreement.size else agreement
        sums: Floats = np.matmul(routed.weigh(shares), routed.units)
        values = squash(sums, config.squash)
        routed.iterations.append(Iteration(total, shares, sums))
    return routed._replace(values=values)


def _start(config: TreeCapsConfig, capsules: Floats, count: Floats, weight: Floats) -> Routed:
    """Begin variable-to-static routing with the longest capsules."""
    units = np.ascontiguousarray(capsules.transpose(2, 0, 1))  # [C, n, D]
    counts, weights = (np.broadcast_to(one, units.shape[:2]) for one in (count, weight))
    if not config.per_channel:
        units, counts, weights = (
            one.swapaxes(0, 1).reshape(1, -1, *one.shape[2:]) for one in (units, counts, weights)
        )
    length = np.einsum("gnd,gnd->ng", units, units)
    times = counts[0]
    if config.routed is not None:
        weights = weights * _routed_share(length, times, config.routed).T
    starts = choose(
        length, np.minimum(times, 1) if config.distinct_starts else times, config.statics
    ).T
    first = units[np.arange(len(units))[:, None], starts]
    return Routed(first, units, weights[:, None], [], len(units), starts)


def _routed_share(length: Floats, times: Floats, routed: int) -> Floats:
    """Return which share of each row's multiplicity is among the longest, ``[n, groups]``."""
    order = np.argsort(-length, axis=0, kind="stable")
    ordered = times[order]
    before = ordered.cumsum(0) - ordered
    kept = np.minimum(np.maximum(routed - before, 0), ordered) / np.maximum(ordered, 1)
    share = np.zeros_like(length)
    np.put_along_axis(share, order, kept.astype(share.dtype), 0)
    return share


def _start_largest(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Routed:
    """Begin top-k routing, in which a capsule weighs as often as it occurs."""
    count = count.round()
    keys = units if config.by_coordinate else np.square(units).sum(1, keepdims=True)
    routed = config.routed or round(float(count.sum()))
    row = choose(keys, count, max(config.statics, routed))
    _, size, channels = units.shape
    place = row * size * channels + np.arange(size * channels).reshape(size, channels)
    place = place.transpose(2, 0, 1)  # [C, k, D]
    starts, others = place[:, : config.statics], place[:, :routed]
    if config.joint:
        starts, others = (one.reshape(1, -1, size) for one in (starts, others))
    flat = units.reshape(-1)
    return Routed(flat[starts], flat[others], None, [], channels, starts, others)
