"""Files of vectors: JSON Lines, numpy's or Parquet."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Literal

import numpy as np

from treecaps.chunks import chunked
from treecaps.errors import DataError, describe_os_error, naming_extra
from treecaps.files import open_atomic
from treecaps.inference.embed import Embedding
from treecaps.text import replace_surrogates

Format = Literal["jsonl", "npy", "parquet"]

_ROWS = 1024


def write(embeddings: Iterable[Embedding], place: Path | IO[bytes], form: Format) -> None:
    """Write vectors, as they come, to a file that appears when it is complete, or to a stream."""
    writer = _WRITERS[form]
    embeddings = (replace(one, id=replace_surrogates(one.id)) for one in embeddings)
    if not isinstance(place, Path):
        writer(embeddings, place)
        return
    with _whole(place) as stream:
        writer(embeddings, stream)


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    try:
        with open_atomic(path) as stream:
            yield stream
    except OSError as error:
        raise DataError(f"cannot write {path}: {describe_os_error(error)}") from None


def _write_lines(embeddings: Iterable[Embedding], stream: IO[bytes]) -> None:
    for one in embeddings:
        stream.write(json.dumps(one.to_dict(), separators=(",", ":")).encode() + b"\n")
        stream.flush()


def _write_array(embeddings: Iterable[Embedding], stream: IO[bytes]) -> None:
    rows = [one.vector for one in embeddings]
    array = np.stack(rows) if rows else np.zeros((0, 0), np.float32)
    np.lib.format.write_array(stream, array, allow_pickle=False)


def _write_table(embeddings: Iterable[Embedding], stream: IO[bytes]) -> None:
    with naming_extra("Parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    schema = pa.schema(
        {
            "id": pa.string(),
            "function": pa.string(),
            "line": pa.int64(),
            "vector": pa.list_(pa.float32()),
        }
    )
    with pq.ParquetWriter(stream, schema) as writer:
        for some in chunked(embeddings, _ROWS):
            names = [one.id for one in some]
            functions, lines = [one.function for one in some], [one.line for one in some]
            vectors = [one.vector for one in some]
            writer.write_table(pa.table([names, functions, lines, vectors], schema=schema))


_WRITERS: dict[Format, Callable[[Iterable[Embedding], IO[bytes]], None]] = {
    "jsonl": _write_lines,
    "npy": _write_array,
    "parquet": _write_table,
}
