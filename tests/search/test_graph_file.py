"""Graphs from anybody: usearch gets none that would lead it out of its memory."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from treecaps.search import graph
from treecaps.search.graph_file import check_graph

usearch = pytest.importorskip("usearch")

NODES, WIDTH, MOST, MOST_BELOW = 600, 24, 16, 32
LEVELS = 8 + NODES * WIDTH + 64 + 40  # where they begin


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A graph of which ten vectors were removed."""
    vectors = np.random.default_rng(0).normal(size=(NODES, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = graph._new(WIDTH)
    made.add(np.arange(NODES, dtype=np.uint64), vectors, threads=1)
    made.remove(np.arange(10, dtype=np.uint64))
    path = tmp_path_factory.mktemp("graph") / "graph"
    made.save(path)
    return path.read_bytes()


def check(content: bytes, version: str = usearch.__version__, width: int = WIDTH) -> Any:
    return check_graph(np.frombuffer(content, np.uint8), version, width)


def node(content: bytes, number: int) -> int:
    """Return where a node begins."""
    levels = levels_of(content)[:number].astype(int)
    return LEVELS + 2 * NODES + int((142 + levels * 68).sum())


def levels_of(content: bytes) -> NDArray[np.int16]:
    return np.frombuffer(content, "<i2", NODES, LEVELS)


def test_the_keys_of_a_good_one(whole: bytes) -> None:
    assert sorted(check(whole).tolist()) == list(range(10, NODES))
    assert levels_of(whole).max() > 0  # there is something to check above the lowest level


def put(place: int, value: int, size: int = 4) -> Callable[[bytes], bytes]:
    return lambda content: (
        content[:place] + value.to_bytes(size, "little") + content[place + size :]
    )


def above(content: bytes) -> int:
    """Return the first node that has two levels."""
    return int(np.flatnonzero(levels_of(content))[0])


HEAD = 8 + NODES * WIDTH
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "more rows": put(0, 2**32 - 1),
    "longer rows": put(4, 2**31),
    "another magic": put(HEAD, 0, 1),
    "another version": put(HEAD + 7, 1, 2),
    "another metric": put(HEAD + 13, 99, 1),
    "wider numbers": put(HEAD + 14, 12, 1),
    "more vectors": put(HEAD + 17, 2**63, 8),
    "fewer removed": put(HEAD + 17, NODES, 8),
    "another width": put(HEAD + 33, WIDTH + 1, 8),
    "several vectors a key": put(HEAD + 41, 1, 1),
    "more nodes": put(HEAD + 64, 2**64 - 1, 8),
    "more links": put(HEAD + 72, 2**40, 8),
    "no links": put(HEAD + 72, 0, 8),
    "more links below": put(HEAD + 80, 2**63, 8),
    "a higher top": put(HEAD + 88, 60, 8),
    "begins nowhere": put(HEAD + 96, NODES, 8),
    "another level": put(LEVELS, 30000, 2),
    "a level below all": put(LEVELS, 65535, 2),
    "another level in the node": lambda content: put(node(content, 5) + 8, 7, 2)(content),
    "a long list": lambda content: put(node(content, 5) + 10, MOST_BELOW + 1)(content),
    "a link to nowhere": lambda content: put(node(content, 5) + 14, NODES)(content),
    "a long list above": lambda content: put(node(content, above(content)) + 142, 17)(content),
    "a link that leads down": lambda content: put(
        node(content, above(content)) + 142,
        1 | int(np.flatnonzero(levels_of(content) == 0)[0]) << 32,
        8,
    )(content),
    "a removed key": lambda content: put(node(content, 20), 2**64 - 1, 8)(content),
    "a byte more": lambda content: content + b"\0",
    "a byte less": lambda content: content[:-1],
    "nothing": lambda content: b"",
    "next to nothing": lambda content: content[:9],
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_would_lead_out_of_memory_is_refused(what: str, whole: bytes) -> None:
    changed = CHANGES[what](whole)
    assert changed != whole
    with pytest.raises(ValueError, match=r"\w"):
        check(changed)


def test_another_version_or_width_is_refused(whole: bytes) -> None:
    with pytest.raises(ValueError, match="head"):
        check(whole, version="2.0.0")
    with pytest.raises(ValueError, match="head"):
        check(whole, width=WIDTH + 1)


_FUZZ = """
import sys
import numpy as np
from treecaps.search import graph
from treecaps.search.graph_file import check_graph
import usearch

whole = np.fromfile(sys.argv[1], np.uint8)
width, first = int(sys.argv[2]), int(sys.argv[3])
generator = np.random.default_rng(0)
passed = refused = 0
for turn in range(1500):
    content = whole.copy()
    # Beside the vectors, which are only numbers.
    places = generator.integers(first, len(whole), size=generator.integers(1, 4))
    content[places] = generator.choice([0, 1, 127, 255, generator.integers(256)], len(places))
    try:
        check_graph(content, usearch.__version__, width)
    except ValueError:
        refused += 1
        continue
    passed += 1
    found = graph._new(width, lookups=False)
    found.view(memoryview(content))
    for query in generator.normal(size=(5, width)).astype(np.float32):
        found.search(query, 40, threads=1)
print(passed, refused)
"""


def test_usearch_survives_whatever_is_not_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph"
    path.write_bytes(whole)
    words = [sys.executable, "-c", _FUZZ, str(path), str(WIDTH), str(HEAD)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    passed, refused = map(int, done.stdout.split())
    assert min(passed, refused) > 100
