"""Parsed programs as record batches of Arrow, which a corpus keeps."""

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa

from treecaps.cluster import Workers
from treecaps.data.parallel import Change, Parsed, parse_in_chunks
from treecaps.errors import Failure
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Ints, Tree
from treecaps.text import replace_surrogates

_NOTHING = np.zeros(0, np.int32)
_INTS = pa.list_(pa.int32())
_LISTS = ("kind", "parent", "start", "end", "errors")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("label", pa.string()),
        ("language", pa.string()),
        ("text", pa.binary()),
        ("replaced", pa.int32()),
        ("kind", _INTS),
        ("parent", _INTS),
        ("start", _INTS),
        ("end", _INTS),
        ("errors", _INTS),
        ("failure_code", pa.string()),
        ("failure", pa.string()),
    ]
)
"""One row a program. A failed program has its ``failure_code`` and no nodes."""


def parse_in_batches(
    programs: Iterable[Program | Failure],
    frontend: str,
    comments: bool,
    kinds: dict[str, int],
    workers: Workers,
    *,
    change: Change | None = None,
) -> Generator[pa.RecordBatch]:
    """Parse programs into record batches, in order.

    Only a few chunks are under way at a time, so memory does not grow with the data.

    Args:
        programs: What to parse; failures pass through.
        frontend: The name of the front end.
        comments: Whether comments become nodes.
        kinds: Numbers of kinds, shared by all batches; new kinds are added.
        workers: How many processes parse, or a Ray cluster.
        change: What is done to programs first.
    """
    parsed = parse_in_chunks(programs, frontend, comments, workers, _to_batch, change=change)
    with closing(parsed):
        for batch, names in parsed:
            # A worker numbers the kinds as it meets them; here they get their numbers for good.
            column = batch.column("kind")
            numbers = np.array([kinds.setdefault(name, len(kinds)) for name in names], np.int32)
            values = pa.array(numbers[column.values.to_numpy()])
            place = SCHEMA.get_field_index("kind")
            lists = pa.ListArray.from_arrays(column.offsets, values)
            yield batch.set_column(place, SCHEMA.field(place), lists)


class Batch:
    """Views of one record batch: for each list column its values, and where each row's begin."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.rows: int = batch.num_rows
        self._batch = batch
        self.values: dict[str, Ints] = {}
        self.offsets: dict[str, Ints] = {}
        for name in _LISTS:
            column = batch.column(name)
            self.values[name] = column.values.to_numpy()
            self.offsets[name] = column.offsets.to_numpy()

    def tree(self, row: int, kinds: tuple[str, ...], frontend: str) -> Tree:
        """Return the tree of one row."""
        arrays = {
            name: values[self.offsets[name][row] : self.offsets[name][row + 1]]
            for name, values in self.values.items()
        }
        return Tree(
            language=self._batch.column("language")[row].as_py(),
            frontend=frontend,
            text=self._batch.column("text")[row].as_py(),
            kinds=kinds,
            **arrays,
        )

    def failure(self, row: int) -> Failure | None:
        """Return what is wrong with one row, if anything is."""
        names = ("id", "failure_code", "failure")
        values = [self._batch.column(name)[row].as_py() for name in names]
        return None if values[1] is None else Failure(*values)


def _to_batch(parsed: Parsed) -> tuple[pa.RecordBatch, list[str]]:
    """Return results as a record batch, and the names of the kinds as it numbers them."""
    kinds: dict[str, int] = {}
    tables: dict[int, Ints] = {}
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for result in parsed.outcomes:
        row: dict[str, Any] = dict.fromkeys(_LISTS, _NOTHING)
        if isinstance(result, Failure):
            row |= {"id": result.id, "failure_code": result.code, "failure": result.message}
        else:
            program, tree = result
            # Trees of one grammar share one table of kinds, which is worth the work once.
            table = tables.get(id(tree.kinds))
            if table is None:
                numbers = [kinds.setdefault(name, len(kinds)) for name in tree.kinds]
                table = tables[id(tree.kinds)] = np.array(numbers, np.int32)
            row |= {
                "id": program.id,
                "label": program.label,
                "language": program.language,
                "text": program.text,
                "replaced": program.replaced,
                "kind": table[tree.kind],
                **{name: getattr(tree, name) for name in ("parent", "start", "end", "errors")},
            }
        for name, column in columns.items():
            column.append(row.get(name))
    columns["kind"], names = _only_used(columns["kind"], list(kinds))
    arrays = [_to_column(SCHEMA.field(name), column) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), names


def _only_used(columns: list[Ints], names: list[str]) -> tuple[list[Ints], list[str]]:
    """Give kinds new numbers, without those that do not occur: a grammar names many more."""
    used = np.zeros(len(names), bool)
    for column in columns:
        used[column] = True
    numbers = (np.cumsum(used) - 1).astype(np.int32)
    return [numbers[column] for column in columns], [names[k] for k in np.flatnonzero(used)]


def _to_column(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_string(field.type):
        values = [value and replace_surrogates(value) for value in values]
    if field.type != _INTS:
        return pa.array(values, field.type)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(values)))
