"""From primary to static capsules in NumPy, program by program."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.models.light.arrays import choose, softmax, squash, sum_runs
from treecaps.models.treecaps_config import TreeCapsConfig


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
    largest = config.joint or config.by_coordinate
    alone = config.statics == 1 and config.per_channel and config.static_iterations > 0
    if alone and config.routed is None and not largest:
        # A single static capsule takes all there is.
        flat = sum_runs(capsules.reshape(len(capsules), -1), window, offsets, weight)
        sums = flat.reshape(-1, *capsules.shape[1:])
        return squash(sums, config.squash, 1).swapaxes(1, 2)
    route = _route_largest if largest else _route
    programs = [
        route(config, capsules[window[rows]], count[rows], weight[rows]) for rows in _rows(offsets)
    ]
    return np.stack(programs)


def _rows(offsets: Longs) -> Iterator[slice]:
    for begin, end in pairwise(offsets.tolist()):
        yield slice(begin, end)


def _route(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Floats:
    """Run variable-to-static routing of one program's capsules ``[n, D, C]``; ``[S, D]``."""
    groups = units.transpose(2, 0, 1)  # [C, n, D]
    counts, weights = (np.broadcast_to(one, groups.shape[:2]) for one in (count, weight))
    if not config.per_channel:
        groups, counts, weights = (
            one.swapaxes(0, 1).reshape(1, -1, *one.shape[2:]) for one in (groups, counts, weights)
        )
    length = np.square(groups).sum(2).T  # [n, groups]
    times = counts[0]
    if config.routed is not None:
        weights = weights * _routed_share(length, times, config.routed).T
    starts = choose(
        length, np.minimum(times, 1) if config.distinct_starts else times, config.statics
    )
    size = groups.shape[2]
    values = np.take_along_axis(groups, starts.T[:, :, None], 1)  # [groups, at most a, D]
    if not values.shape[1]:
        return np.zeros((len(groups) * config.statics, size), np.float32)
    total = np.zeros_like(values)
    for _ in range(config.static_iterations):
        total = total + values
        coupling = softmax(groups @ total.swapaxes(1, 2), 2) * weights[:, :, None]
        values = squash(np.matmul(coupling.swapaxes(1, 2), groups), config.squash)
    return _fill_up(values, config.statics)


def _routed_share(length: Floats, times: Floats, routed: int) -> Floats:
    """Return which share of each row's multiplicity is among the longest, ``[n, groups]``."""
    order = np.argsort(-length, axis=0, kind="stable")
    ordered = times[order]
    before = ordered.cumsum(0) - ordered
    kept = np.minimum(np.maximum(routed - before, 0), ordered) / np.maximum(ordered, 1)
    share = np.zeros_like(length)
    np.put_along_axis(share, order, kept.astype(share.dtype), 0)
    return share


def _route_largest(config: TreeCapsConfig, units: Floats, count: Floats, weight: Floats) -> Floats:
    """Run top-k routing of one program's capsules ``[n, D, C]``; ``[C a, D]``."""
    count = count.round()
    keys = units if config.by_coordinate else np.square(units).sum(1, keepdims=True)
    routed = config.routed or round(float(count.sum()))
    place = choose(keys, count, max(config.statics, routed))
    chosen = np.take_along_axis(units, np.broadcast_to(place, (len(place), *units.shape[1:])), 0)
    rows = chosen.transpose(2, 0, 1)  # [C, k, D]
    channels, _, size = rows.shape
    starts, others = rows[:, : config.statics], rows[:, :routed]
    if not starts.shape[1]:
        return np.zeros((channels * config.statics, size), np.float32)
    values = starts.reshape(1, -1, size) if config.joint else starts
    others = others.reshape(1, -1, size) if config.joint else others
    total = np.zeros_like(values)
    for _ in range(config.static_iterations):
        total = total + values
        coupling = softmax(others @ total.swapaxes(1, 2), 2)
        values = squash(coupling.swapaxes(1, 2) @ others, config.squash)
    return _fill_up(values.reshape(channels, -1, size), config.statics)


def _fill_up(values: Floats, statics: int) -> Floats:
    """Return static capsules ``[groups, at most a, D]`` as ``[groups a, D]``, with zeros."""
    missing = statics - values.shape[1]
    return np.pad(values, ((0, 0), (0, missing), (0, 0))).reshape(-1, values.shape[2])
