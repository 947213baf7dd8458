"""Windows and bags of single programs as plain rows of numbers, to be kept on disk.

In memory, programs share what is the same in all of them. On disk each stands for itself, so that
a few of many can be read; a hash of each window tells what they share, and ``select`` shares it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treecaps.inputs.bags import Bags, Feature
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs, mix, number_distinct
from treecaps.inputs.node_windows import Weights, WindowLayer
from treecaps.inputs.symbols import Symbols
from treecaps.inputs.windows import Windows
from treecaps.inputs.windows_and_bags import WindowsAndBags


class Column(NamedTuple):
    """Numbers of B programs: ``[B + 1]``, where those of each begin, and all of them."""

    offsets: Longs
    values: Longs


Columns = dict[str, Column]


@dataclass(frozen=True)
class Packing:
    """How windows and bags are packed.

    Args:
        reader: The model that reads trees, by the name of its class.
        depths: The window depth of each convolution layer.
        feature: What bags count; ``None`` where there are none.
    """

    reader: str
    depths: tuple[int, ...]
    feature: Feature | None = None

    @property
    def names(self) -> dict[str, bool]:
        """The columns, and of each whether its numbers need 64 bits."""
        wide = {"symbol_hash", "feature"}
        names = ["window", "count", "region", "kind", "symbol_hash", "token_count", "token"]
        for layer, depth in enumerate(self.depths):
            wide.add(f"hash_{layer}")
            names += [f"size_{layer}", f"hash_{layer}", f"member_{layer}"]
            names += [f"{name}_{layer}" for name in Weights._fields if depth != 2]
        names += ["feature", "feature_count"] if self.feature else []
        return {name: name in wide for name in names}

    def pack(self, inputs: WindowsAndBags) -> Columns:
        """Return the columns of programs, which share nothing."""
        columns = self._pack_windows(inputs.windows)
        if inputs.bags:
            bags = inputs.bags
            columns["feature"] = Column(bags.offsets, bags.feature)
            columns["feature_count"] = Column(bags.offsets, bags.count)
        return {name: columns[name] for name in self.names}

    def unpack(self, columns: Columns) -> WindowsAndBags:
        """Return programs; what is the same in several of them is there several times."""
        bags = None
        if self.feature:
            offsets, feature = columns["feature"]
            bags = Bags(offsets, feature, columns["feature_count"].values)
        return WindowsAndBags(self._unpack_windows(columns), bags)

    def _pack_windows(self, windows: Windows) -> Columns:
        assert windows.share is None  # that of one tree, node by node, is not for training
        hashes = hash_windows(windows)
        program, below = windows.programs, windows.window
        bounds = windows.offsets
        columns = {
            "count": Column(bounds, windows.count),
            "region": Column(bounds, windows.region),
        }
        above = "window"
        for number, layer in reversed(list(enumerate(windows.layers))):
            begins, owner, used = _take_apart(columns, above, bounds, program, below)
            chosen = layer.select(used)
            sizes = np.diff(chosen.offsets)
            columns[f"size_{number}"] = Column(begins, sizes)
            columns[f"hash_{number}"] = Column(begins, hashes[number + 1][used])
            bounds, program, below = chosen.offsets[begins], np.repeat(owner, sizes), chosen.member
            for weight, values in chosen.given._asdict().items() if chosen.given else ():
                columns[f"{weight}_{number}"] = Column(bounds, _bits(values))
            above = f"member_{number}"
        begins, _, used = _take_apart(columns, above, bounds, program, below)
        return columns | _pack_symbols(windows.symbols, used, begins, hashes[0][used])

    def _unpack_windows(self, columns: Columns) -> Windows:
        kind = columns["kind"]
        symbols = Symbols(
            kind.values,
            _add_up(columns["token_count"].values),
            columns["token"].values,
            columns["symbol_hash"].values,
        )
        begins, layers = kind.offsets, []
        for layer, depth in enumerate(self.depths):
            size = columns[f"size_{layer}"]
            offsets = _add_up(size.values)
            given = None
            if depth != 2:
                given = Weights(*(_floats(columns[f"{name}_{layer}"]) for name in Weights._fields))
            member = _count_through(columns[f"member_{layer}"], begins)
            hashes = columns[f"hash_{layer}"].values
            layers.append(WindowLayer(offsets, member, given, hashes))
            begins = size.offsets
        return Windows(
            symbols,
            tuple(layers),
            columns["window"].offsets,
            _count_through(columns["window"], begins),
            columns["count"].values,
            columns["region"].values,
        )


def hash_windows(windows: Windows) -> list[Longs]:
    """Return a hash of each symbol, and of each window of each layer, by what they hold alone."""
    symbols = windows.symbols
    place = _places(symbols.offsets)
    found = [mix(symbols.kind, _sum_runs(mix(symbols.token, place), symbols.offsets))]
    for layer in windows.layers:
        place = _places(layer.offsets)
        # Of windows of depth 2, the weights follow from the size.
        given = layer.given
        shape = mix(place, (_bits(given.top) << 32) + _bits(given.right) if given else 0)
        sums = _sum_runs(mix(found[-1][layer.member], shape), layer.offsets)
        found.append(mix(sums, np.diff(layer.offsets)))
    return found


def _take_apart(
    columns: Columns, name: str, bounds: Longs, program: Longs, below: Longs
) -> tuple[Longs, Longs, Longs]:
    """Let each program count the windows or symbols it has by itself; keep the numbers.

    Args:
        columns: Gets the numbers.
        name: Under which name.
        bounds: ``[B + 1]``, where those of each program begin.
        program: Of each number, the program that it is of.
        below: The numbers of windows or symbols, which programs share.

    Returns:
        ``[B + 1]``, where the windows of each program begin now; of each its program, and its
        number before.
    """
    number, first = number_distinct(program * (below.max(initial=0) + 1) + below)
    owner = program[first]
    begins = np.searchsorted(owner, np.arange(len(bounds)))
    columns[name] = Column(bounds, number - begins[program])
    return begins, owner, below[first]


def _pack_symbols(symbols: Symbols, used: Longs, begins: Longs, hashes: Longs) -> Columns:
    chosen = symbols.select(used)
    return {
        "kind": Column(begins, chosen.kind),
        "symbol_hash": Column(begins, hashes),
        "token_count": Column(begins, np.diff(chosen.offsets)),
        "token": Column(chosen.offsets[begins], chosen.token),
    }


def _places(offsets: Longs) -> Longs:
    """Return for each member of runs which of the run it is, from 0."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _sum_runs(values: Longs, offsets: Longs) -> Longs:
    """Return the sum of each run, 0 for an empty one; it may wrap around."""
    sums = np.zeros(len(offsets) - 1, np.int64)
    there = np.diff(offsets) > 0
    if there.any():
        sums[there] = np.add.reduceat(values, offsets[:-1][there])
    return sums


def _bits(values: Floats) -> Longs:
    return np.ascontiguousarray(values).view(np.uint32).astype(np.int64)


def _floats(column: Column) -> Floats:
    return column.values.astype(np.uint32).view(np.float32)


def _add_up(sizes: Longs) -> Longs:
    return np.concatenate([[0], np.cumsum(sizes)])


def _count_through(column: Column, begins: Longs) -> Longs:
    """Return the numbers of things that each program counts from 0, counted through."""
    return column.values + np.repeat(begins[:-1], np.diff(column.offsets))
