"""From primary to static capsules in NumPy, program by program."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.models.light.arrays import choose, softmax, squash, squash_gradient, sum_runs
from treecaps.models.treecaps_config import TreeCapsConfig


class Routed(NamedTuple):
    """The static capsules of one program, and what they are sums of.

    Args:
        values: ``[G, s, D]``, for G groups of s that compete by themselves.
        sums: ``[G, s, D]``, the same before they were squashed.
        units: ``[G, n, D]``, the capsules that were routed.
        shares: ``[G, s, n]``, how much of each went into each sum.
        runs: How many runs of static capsules there are, each of which should have a of them; it
            has fewer where there are not as many capsules.
        place: ``[G, n, D]``, where in the primary capsules the numbers of ``units`` are; all of
            them are there, in order, if ``None``.
    """

    values: Floats
    sums: Floats
    units: Floats
    shares: Floats
    runs: int
    place: Longs | None = None

    def fill_up(self, statics: int) -> Floats:
        """Return the static capsules as ``[runs a, D]``, with zeros for those that are missing."""
        size = self.values.shape[2]
        there = self.values.reshape(self.runs, -1, size)
        missing = statics - there.shape[1]
        return np.pad(there, ((0, 0), (0, missing), (0, 0))).reshape(-1, size)

    def gradient(self, gradient: Floats, form: str, capsules: Floats) -> Floats:
        """Return the gradient of the primary capsules ``[n, D, C]`` with the shares held.

        Args:
            gradient: ``[runs a, D]``, that of the static capsules.
            form: How they are squashed.
            capsules: The primary capsules.
        """
        groups, there, size = self.sums.shape
        of_values = gradient.reshape(self.runs, -1, size)[:, : groups * there // self.runs]
        of_sums = squash_gradient(self.sums, of_values.reshape(self.sums.shape), form)
        units = self.shares.swapaxes(1, 2) @ of_sums
        if self.place is not None:
            found = np.zeros_like(capsules)
            np.add.at(found.reshape(-1), self.place, units)
            return found
        if groups == 1:
            return units.reshape(len(capsules), -1, size).swapaxes(1, 2)
        return units.transpose(1, 2, 0)

    def due(self, channels: int, statics: int) -> Floats:
        """Return ``[n, runs a]``, how much of each static capsule is due to each window.

        Args:
            channels: C, how many capsules a window has.
            statics: a, how many static capsules a group has with those that are missing.
        """
        along = self.shares * (self.values @ self.units.swapaxes(1, 2))  # [G, s, n]
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
        count: ``[P]``, how often each occurs.
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
    rows = (slice(begin, end) for begin, end in pairwise(offsets.tolist()))
    return np.stack(
        [
            route(config, capsules[window[one]], count[one], weight[one]).fill_up(config.statics)
            for one in rows
        ]
    )


def route(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Routed:
    """Route the capsules ``[n, D, C]`` of one program."""
    by = _route if config.has_routes else _route_largest
    return by(config, units, count, weight)


def _route(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Routed:
    """Run variable-to-static routing."""
    groups = np.ascontiguousarray(units.transpose(2, 0, 1))  # [C, n, D]
    counts, weights = (np.broadcast_to(one, groups.shape[:2]) for one in (count, weight))
    if not config.per_channel:
        groups, counts, weights = (
            one.swapaxes(0, 1).reshape(1, -1, *one.shape[2:]) for one in (groups, counts, weights)
        )
    length = np.einsum("gnd,gnd->ng", groups, groups)
    times = counts[0]
    if config.routed is not None:
        weights = weights * _routed_share(length, times, config.routed).T
    starts = choose(
        length, np.minimum(times, 1) if config.distinct_starts else times, config.statics
    )
    values = np.take_along_axis(groups, starts.T[:, :, None], 1)  # [groups, at most a, D]
    return _iterate(config, values, groups, weights[:, None], len(groups))


def _iterate(
    config: TreeCapsConfig,
    values: Floats,
    units: Floats,
    weights: Floats | None,
    runs: int,
    place: Longs | None = None,
) -> Routed:
    """Let static capsules ``[G, s, D]`` compete for capsules ``[G, n, D]``, r times."""
    total, sums = np.zeros_like(values), values
    shares = np.zeros((len(units), values.shape[1], units.shape[1]), units.dtype)
    for _ in range(config.static_iterations if values.shape[1] else 0):
        total = total + values
        shares = softmax(total @ units.swapaxes(1, 2), 1)
        if weights is not None:
            shares *= weights
        sums = shares @ units
        values = squash(sums, config.squash)
    return Routed(values, sums, units, shares, runs, place)


def _routed_share(length: Floats, times: Floats, routed: int) -> Floats:
    """Return which share of each row's multiplicity is among the longest, ``[n, groups]``."""
    order = np.argsort(-length, axis=0, kind="stable")
    ordered = times[order]
    before = ordered.cumsum(0) - ordered
    kept = np.minimum(np.maximum(routed - before, 0), ordered) / np.maximum(ordered, 1)
    share = np.zeros_like(length)
    np.put_along_axis(share, order, kept.astype(share.dtype), 0)
    return share


def _route_largest(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Routed:
    """Run top-k routing, in which a capsule weighs as often as it occurs."""
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
    return _iterate(config, flat[starts], flat[others], None, channels, others)
