"""``StoredInput``: programs on disk, in the form that a network reads, some of them at a time."""

import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from treecaps.inputs.base import Convert, InputDropout, Programs
from treecaps.inputs.distinct import Longs
from treecaps.inputs.packing import Column, Columns, Packing
from treecaps.inputs.windows_and_bags import WindowsAndBags, WindowsAndBagsTensors

_MANY = 1 << 24
"""How many bytes are read at a time where all programs are."""


class StoredInput:
    """B programs in a file, packed one after the other.

    What is read is not kept: memory does not grow with the number of programs, and the system
    keeps of the file what it has room for.

    Args:
        path: The file.
        packing: How programs are packed.
        offsets: ``[B + 1]``, where each begins.
        sizes: ``[B]``, how much a network has to compute for each.
        digest: A digest of the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        packing: Packing,
        offsets: Longs,
        sizes: Longs,
        digest: str,
    ) -> None:
        self.packing, self.sizes, self.digest = packing, sizes, digest
        self._offsets = offsets
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return len(self.sizes)

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> WindowsAndBags:
        """Read some of the programs, in the order given."""
        packed = self._read(np.asarray(programs, np.int64))
        inputs = self.packing.unpack(decode(packed, self.packing))
        return inputs.select(np.arange(len(inputs)), dropout)

    def to_tensors(self, convert: Convert[Any]) -> WindowsAndBagsTensors[Any]:
        """Read all programs, and convert the arrays."""
        return self.select(np.arange(len(self))).to_tensors(convert)

    def features(self, programs: Longs | None = None) -> Iterator[Longs]:
        """Yield the features of all programs, or of some; of not too many at a time."""
        rows = np.arange(len(self)) if programs is None else programs
        sizes = np.diff(self._offsets)[rows]
        part = (np.cumsum(sizes) - sizes) // _MANY  # no bytes of it begin in another
        if self.packing.feature:
            for some in np.split(rows, np.flatnonzero(np.diff(part)) + 1):
                yield decode(self._read(some), self.packing, ["feature"])["feature"].values

    def _read(self, programs: Longs) -> list[bytes]:
        begins, ends = self._offsets[programs].tolist(), self._offsets[programs + 1].tolist()
        return [
            os.pread(self._descriptor, end - begin, begin)
            for begin, end in zip(begins, ends, strict=True)
        ]


def encode(columns: Columns, packing: Packing) -> list[bytes]:
    """Pack programs: how many numbers of each column they have, and the numbers.

    Numbers take 64 bits where they are hashes. All others of a program take 16 bits, or 32 where
    they need them.
    """
    wide = [columns[name] for name, is_wide in packing.names.items() if is_wide]
    narrow = [columns[name] for name, is_wide in packing.names.items() if not is_wide]
    found = []
    for program in range(len(columns["window"].offsets) - 1):
        hashes, numbers = _row(wide, program), _row(narrow, program)
        every = np.concatenate(numbers)
        kind = np.uint16 if every.max(initial=0) < 1 << 16 else np.uint32
        header = [np.dtype(kind).itemsize, *map(len, hashes), *map(len, numbers)]
        packed = (np.array(header, np.uint32), np.concatenate(hashes), every.astype(kind))
        found.append(b"".join(part.tobytes() for part in packed))
    return found


def decode(packed: Sequence[bytes], packing: Packing, only: Sequence[str] = ()) -> Columns:
    """Return the columns of programs that were packed, all of them or only some."""
    names = packing.names
    wide = [name for name, is_wide in names.items() if is_wide]
    narrow = [name for name, is_wide in names.items() if not is_wide]
    sizes = np.zeros((len(packed), len(names)), np.int64)
    hashes, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.uint16)]
    begin = 4 * (1 + len(names))
    for row, program in enumerate(packed):
        header = np.frombuffer(program, np.uint32, 1 + len(names))
        sizes[row] = header[1:]
        count = int(sizes[row, : len(wide)].sum())
        hashes.append(np.frombuffer(program, np.int64, count, begin))
        kind = np.dtype(np.uint16 if header[0] == 2 else np.uint32)
        numbers.append(np.frombuffer(program, kind, offset=begin + 8 * count))
    found: Columns = {}
    for group, values, place in (
        (wide, np.concatenate(hashes), slice(0, len(wide))),
        (narrow, np.concatenate(numbers), slice(len(wide), None)),
    ):
        found |= _part(values, sizes[:, place], group, only or group)
    return found


def _row(columns: list[Column], program: int) -> list[Longs]:
    return [values[offsets[program] : offsets[program + 1]] for offsets, values in columns]


def _part(values: Any, sizes: Longs, names: list[str], wanted: Sequence[str]) -> Columns:
    """Return columns of values that lie program after program, in each column after column."""
    ends = np.cumsum(sizes).reshape(sizes.shape)
    found: Columns = {}
    for number, name in enumerate(names):
        if name in wanted:
            size = sizes[:, number]
            offsets = np.concatenate([[0], np.cumsum(size)])
            rows = np.arange(offsets[-1]) + np.repeat(ends[:, number] - offsets[1:], size)
            found[name] = Column(offsets, values[rows].astype(np.int64))
    return found
