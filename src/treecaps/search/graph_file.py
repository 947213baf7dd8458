"""The file of a graph of neighbours, as usearch writes it, looked at before usearch reads it.

usearch is native code that believes its files: a link to a node that is not there would be a read
outside of memory. An index and its graph may come from anybody, so everything that usearch follows
is checked here. The format:

- how many rows and bytes a row the matrix of vectors has, and the matrix
- a head that says what kinds of numbers there are
- how many nodes there are, how many links a node may have, and where a search begins
- the level of each node; one of level 2 has three lists of links
- the nodes: key, level, and of each list how many links it has, and room for the most
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

REMOVED = 2**64 - 1
"""The key of a node whose vector was removed; links may still lead through it."""

_HEAD = np.dtype(
    [
        ("magic", "S7"),
        ("version", "<u2", 3),
        ("kinds", "u1", 4),
        ("present", "<u8"),
        ("removed", "<u8"),
        ("width", "<u8"),
        ("multi", "u1"),
        ("rest", "u1", 22),
    ]
)
_KINDS = [105, 23, 14, 15]
"""Inner products of 8-bit numbers; keys of 64 bits, numbers of nodes of 32."""
_LINKS = np.dtype([(name, "<u8") for name in ("nodes", "most", "most_below", "top", "entry")])
_NODES = 1 << 14
"""How many nodes are looked at together."""
_MOST_LEVELS = 64


class _Nodes(NamedTuple):
    """Where the nodes of a file are, and what their links must keep to."""

    bytes: NDArray[np.uint8]
    levels: NDArray[np.int64]
    begins: NDArray[np.int64]
    most: int
    most_below: int


def check_graph(content: NDArray[np.uint8], version: str, width: int) -> Keys:
    """Return the keys of the vectors in a graph, or raise ``ValueError`` if it is none.

    Args:
        content: The whole file.
        version: Which usearch must have written it.
        width: How many numbers each vector must have.
    """
    rows, size = (int(number) for number in _take(content, 0, "<u4", 2))
    place = 8 + rows * size
    head = _take(content, place, _HEAD, 1)[0]
    place += _HEAD.itemsize
    links = _take(content, place, _LINKS, 1)[0]
    place += _LINKS.itemsize
    nodes, most, most_below, top, entry = (int(links[name]) for name in _LINKS.names or ())
    if not (
        bytes(head["magic"]) == b"usearch"
        and ".".join(map(str, head["version"].tolist())) == version
        and head["kinds"].tolist() == _KINDS
        and int(head["width"]) == size == width
        and int(head["present"]) + int(head["removed"]) == nodes == rows > entry
        and not head["multi"]
        and 0 < most <= most_below <= 1024
    ):
        raise ValueError("head")
    levels = _take(content, place, "<i2", nodes).astype(np.int64)
    place += 2 * nodes
    if not 0 <= levels.min() <= levels.max() == top == levels[entry] < _MOST_LEVELS:
        raise ValueError("levels")
    sizes = 8 + 2 + 4 * (1 + most_below) + levels * 4 * (1 + most)
    ends = place + np.cumsum(sizes)
    if int(ends[-1]) != len(content):
        raise ValueError("size")
    found = _Nodes(content, levels, ends - sizes, most, most_below)
    keys: Keys = np.concatenate(list(_check_nodes(found)))
    keys = keys[keys != REMOVED]
    if len(keys) != int(head["present"]):
        raise ValueError("removed")
    return keys


def _take(
    content: NDArray[np.uint8], begin: int, kind: "np.dtype[np.void] | str", count: int
) -> NDArray[np.void]:
    kind = np.dtype(kind)
    part = content[begin : begin + count * kind.itemsize]
    if not count or len(part) != count * kind.itemsize:
        raise ValueError("too short")
    return np.frombuffer(part.tobytes(), kind)


def _check_nodes(nodes: _Nodes) -> Iterator[Keys]:
    """Yield the keys of nodes, some at a time; raise ``ValueError`` if a link leads nowhere."""
    for first in range(0, len(nodes.levels), _NODES):
        some = slice(first, first + _NODES)
        levels, begins = nodes.levels[some], nodes.begins[some]
        size = 8 + 2 + 4 * (1 + nodes.most_below)
        below = nodes.bytes[begins[:, None] + np.arange(size)]
        if (_numbers(below[:, 8:10], "<i2")[:, 0] != levels).any():
            raise ValueError("level")
        _check_links(nodes, _numbers(below[:, 10:], "<u4"), 0)
        for level in range(1, int(levels.max()) + 1):
            begin = begins[levels >= level] + size + (level - 1) * 4 * (1 + nodes.most)
            above = nodes.bytes[begin[:, None] + np.arange(4 * (1 + nodes.most))]
            _check_links(nodes, _numbers(above, "<u4"), level)
        yield _numbers(below[:, :8], "<u8")[:, 0]


def _numbers(rows: NDArray[np.uint8], kind: str) -> NDArray[np.uint64]:
    return np.ascontiguousarray(rows).view(kind).astype(np.uint64)


def _check_links(nodes: _Nodes, lists: NDArray[np.uint64], level: int) -> None:
    """Check lists of links, each with its length first: they lead to nodes of their level."""
    lengths, links = lists[:, :1], lists[:, 1:].astype(np.int64)
    if (lengths > links.shape[1]).any():
        raise ValueError("length")
    links = links[np.arange(links.shape[1]) < lengths.astype(np.int64)]
    if (links >= len(nodes.levels)).any() or (nodes.levels[links] < level).any():
        raise ValueError("link")
