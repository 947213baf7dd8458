"""The graph of an index file, brought up to date with what the file holds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from treecaps.errors import MissingExtraError
from treecaps.hashing import hash_64
from treecaps.search import graph as graphs
from treecaps.search.graph import AnyVectors, Graph, GraphError, GraphRecord
from treecaps.search.graph_file import Keys
from treecaps.search.matches import Row
from treecaps.search.store import Content, File, GraphUpdate

if TYPE_CHECKING:
    from treecaps.search.sqlite import FileStore

Step = Callable[[float], None]


def update_graph(
    store: "FileStore", files: Mapping[str, File], *, threads: int, step: Step | None
) -> GraphUpdate:
    """See to it that a large index has a graph; return its recall, or why it has none."""
    record = GraphRecord.of_index(store.about)
    if store.shape()[0] <= graphs.FROM:
        if record:
            about = {name: value for name, value in store.about.items() if name != "graph"}
            store.finish(files, about)
            graphs.remove_graph(store.path)
        return GraphUpdate()
    state = graphs.state_of(file.key for file in files.values())
    try:
        if not record or not graphs.is_current(store.path, record, state):
            record = write_graph(store, files, threads=threads, step=step)
            store.finish(files, store.about | {"graph": record.to_dict()})
    except (MissingExtraError, GraphError) as error:
        return GraphUpdate(note=str(error))
    return GraphUpdate(record.recall)


def open_graph(
    store: "FileStore", keys: dict[str, str], shape: tuple[int, int]
) -> tuple[Graph | None, str | None]:
    """Return the graph of a large index, or why it has none."""
    rows, width = shape
    if rows <= graphs.FROM:
        return None, None
    try:
        state = graphs.state_of(keys.values())
        return Graph.open(store.path, store.about, state, width), None
    except (MissingExtraError, GraphError) as error:
        return None, str(error)


def write_graph(
    store: "FileStore",
    files: Mapping[str, File],
    *,
    threads: int = 0,
    step: Step | None = None,
) -> GraphRecord:
    """Write the graph of an index whose files are these, and return what is to be known of it."""
    shape = store.shape()
    _, vectors, keys = read_rows(
        store.contents(shape), defaultdict(list), shape, half=True, step=None
    )
    state = graphs.state_of(file.key for file in files.values())
    record = GraphRecord.of_index(store.about)
    return graphs.write_graph(store.path, record, state, keys, vectors, threads=threads, step=step)


def read_rows(
    contents: Iterable[Content],
    paths: Mapping[str, list[str]],
    shape: tuple[int, int],
    *,
    half: bool,
    step: Step | None,
) -> tuple[list[Row], AnyVectors, Keys]:
    """Read what each vector is of, the vectors, and their keys in a graph.

    Args:
        contents: Those that files have.
        paths: These files, by key.
        shape: How many vectors there are, and how many numbers each has.
        half: Whether to keep vectors of 16 bits.
        step: Called with the share that is read.
    """
    vectors: AnyVectors = np.zeros(shape, np.float16 if half else np.float32)
    numbers = np.zeros(len(vectors), np.uint64)
    rows: list[Row] = []
    for content in contents:
        if step:
            step(len(rows) / max(len(vectors), 1))
        place = slice(len(rows), len(rows) + len(content.spans))
        vectors[place] = content.vectors
        number = hash_64(content.key.encode("utf-8", "surrogatepass") + content.vectors.tobytes())
        numbers[place] = graphs.keys_of_rows(number, len(content.spans))
        same = paths[content.key]
        rows.extend(Row(same, content.language, span) for span in content.spans)
    return rows, vectors, numbers
