"""Compiled loops: each is equal to what runs where nothing was compiled."""

import shutil
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.trees import random_trees
from treecaps import compiled
from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.distinct import number_distinct
from treecaps.inputs.node_windows import NodeArrays
from treecaps.inputs.symbols import SymbolTable
from treecaps.models.light.arrays import sum_runs
from treecaps.models.light.routing import make_static
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.syntax.joined import JoinedTrees
from treecaps.syntax.languages import language_of_file
from treecaps.syntax.parse import parse_code
from treecaps.syntax.tree import Tree

Found = TypeVar("Found")
LOOPS = compiled.loops
needs_loops = pytest.mark.skipif(LOOPS is None, reason="nothing was compiled: there is no compiler")


def both(compute: Callable[[], Found]) -> tuple[Found, Found]:
    """Return what is computed by a compiled loop, and without."""
    with pytest.MonkeyPatch.context() as patch:
        fast = compute()
        patch.setattr(compiled, "loops", None)
        return fast, compute()


@pytest.fixture(params=["any processor", "this processor"])
def processor(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run loops as any processor runs them, and as this one does."""
    assert LOOPS is not None
    before = LOOPS.use_avx2(request.param == "this processor")
    yield
    LOOPS.use_avx2(before)


def test_with_a_compiler_there_are_loops() -> None:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    assert LOOPS is not None or shutil.which("cc") is None or not headers.exists()


@needs_loops
@given(st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))))
def test_numbers_of_distinct_values(items: list[int]) -> None:
    fast, slow = both(lambda: number_distinct(np.array(items, np.int64)))
    for one, other in zip(fast, slow, strict=True):
        assert one.tolist() == other.tolist()


@needs_loops
@given(st.lists(random_trees(), min_size=1, max_size=4))
def test_numbers_of_subtrees(some: list[Tree]) -> None:
    def compute() -> list[list[int]]:
        joined = JoinedTrees(some)
        nodes = NodeArrays(joined, SymbolTable(Vocabulary.of(some)))
        classes, found = nodes.symbol, []
        for _ in range(4):
            classes, first = nodes.number_subtrees(classes)
            found += [classes.tolist(), first.tolist()]
        return found

    fast, slow = both(compute)
    assert fast == slow


@needs_loops
@given(
    st.lists(
        st.text("aé\0b", max_size=9).map(lambda word: 2 * word.encode()), min_size=1, max_size=30
    )
)
def test_numbers_of_texts(words: list[bytes]) -> None:
    kinds = ["program", *["identifier", "number"] * len(words)]
    ends = np.cumsum([len(word) for word in words])
    tree = Tree.build(
        kinds[: len(words) + 1],
        [-1] + [0] * len(words),
        text=b"".join(words),
        start=[0, *(ends - [len(word) for word in words])],
        end=[ends[-1], *ends],
    )
    fast, slow = both(lambda: JoinedTrees([tree]).leaf_texts)
    assert fast.names == slow.names
    assert fast.texts == slow.texts
    assert fast.text.tolist() == slow.text.tolist()


@needs_loops
@pytest.mark.usefixtures("processor")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12),
    st.integers(1, 3),
    st.integers(1, 70),
    st.integers(0, 2**32 - 1),
)
def test_sums_of_runs(sizes: list[int], kinds: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((7, size)).astype(np.float32)
    row = rng.integers(0, 7, sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    weights = rng.standard_normal((kinds, len(row))).astype(np.float32)
    weights[rng.random(weights.shape) < 0.5] = 0
    fast, slow = both(lambda: sum_runs(vectors, row, offsets, *weights))
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-5)
    # Some runs alone: offsets need not begin at 0.
    np.testing.assert_array_equal(sum_runs(vectors, row, offsets[1:], *weights), fast[1:])


@needs_loops
@pytest.mark.usefixtures("processor")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.fixed_dictionaries(
        {
            "statics": st.sampled_from([2, 3, 16, 17]),
            "static_iterations": st.integers(1, 3),
            "squash": st.sampled_from(["sabour", "printed"]),
            "capsule_size": st.sampled_from([3, 8]),
            "distinct_starts": st.booleans(),
        }
    ),
    st.integers(0, 2**32 - 1),
)
def test_static_capsules(sizes: list[int], options: dict[str, Any], seed: int) -> None:
    config = TreeCapsConfig(channels=11, slices=options["capsule_size"], **options)
    rng = np.random.default_rng(seed)
    capsules = rng.standard_normal((11, config.primary_size, 11)).astype(np.float32)
    window = np.concatenate([np.zeros(0, int), *(rng.permutation(11)[:n] for n in sizes)])
    count = rng.integers(1, 4, len(window)).astype(np.float32)
    weight = rng.random(len(window)).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    fast, slow = both(lambda: make_static(config, capsules, window, count, weight, offsets))
    np.testing.assert_allclose(fast, slow, rtol=0, atol=2e-5)


def nodes_of(code: str, language: str, comments: bool) -> Tree:
    return parse_code(code, language, comments=comments)


@needs_loops
@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_nodes_of_files(path: Path, comments: bool) -> None:
    code, language = path.read_text(), language_of_file(path.name).name
    fast, slow = both(lambda: nodes_of(code, language, comments))
    assert fast == slow


@needs_loops
@given(st.text("(){};=#/* \n\"'aé1:"), st.sampled_from(["python", "java", "c", "kotlin"]))
def test_nodes_of_anything(code: str, language: str) -> None:
    fast, slow = both(lambda: nodes_of(code, language, False))
    assert fast == slow


@needs_loops
def test_what_a_cursor_raises_is_raised() -> None:
    class Cursor:
        node = None

        def goto_first_child(self) -> bool:
            raise KeyError("down")

        goto_next_sibling = goto_parent = goto_first_child

    assert LOOPS is not None
    with pytest.raises(AttributeError, match="kind_id"):
        LOOPS.flatten(Cursor(), b"", False)
    with pytest.raises(AttributeError, match="goto_first_child"):
        LOOPS.flatten(None, b"", False)
    Cursor.node = SimpleNamespace(kind_id=0, start_byte=0, end_byte=1)  # type: ignore[assignment]
    with pytest.raises(KeyError, match="down"):
        LOOPS.flatten(Cursor(), b"", False)


LONGS, FLOATS = np.zeros(4, np.int64), np.zeros(8, np.float32)
OFFSETS = np.array([0, 2, 4])
WRONG: dict[str, list[tuple[Any, ...]]] = {
    "number_distinct": [
        (LONGS, LONGS.copy()),
        (LONGS, LONGS[:3].copy(), LONGS.copy()),
        (FLOATS, LONGS.copy(), LONGS.copy()),
        (LONGS[::2], LONGS.copy(), LONGS.copy()),
        (np.frombuffer(bytes(33), np.int64, offset=1), LONGS.copy(), LONGS.copy()),
    ],
    "number_texts": [
        (b"abc", LONGS, LONGS + 4, LONGS.copy(), LONGS.copy()),
        (b"abc", LONGS - 1, LONGS, LONGS.copy(), LONGS.copy()),
        (b"abc", LONGS + 2, LONGS + 1, LONGS.copy(), LONGS.copy()),
    ],
    "number_subtrees": [
        (LONGS, LONGS, LONGS + 4, np.array([0, 4, 4, 4, 4]), LONGS.copy(), LONGS.copy()),
        (LONGS, LONGS, LONGS, np.array([0, 5, 5, 5, 5]), LONGS.copy(), LONGS.copy()),
        (LONGS, LONGS, LONGS, np.array([0, 4, 3, 4, 4]), LONGS.copy(), LONGS.copy()),
        (LONGS, LONGS, LONGS, OFFSETS, LONGS.copy(), LONGS.copy()),
    ],
    "sum_runs": [
        (2, FLOATS, LONGS + 4, OFFSETS, FLOATS[:4].copy(), FLOATS[:4]),
        (2, FLOATS, LONGS - 1, OFFSETS, FLOATS[:4].copy(), FLOATS[:4]),
        (2, FLOATS, LONGS, OFFSETS + 1, FLOATS[:4].copy(), FLOATS[:4]),
        (2, FLOATS, LONGS, OFFSETS, FLOATS[:5].copy(), FLOATS[:4]),
        (2, FLOATS, LONGS, OFFSETS, FLOATS[:4].copy(), FLOATS[:3]),
        (0, FLOATS, LONGS, OFFSETS, FLOATS[:4].copy(), FLOATS[:4]),
        (2, FLOATS, LONGS, OFFSETS, FLOATS[:4].copy()),
        (1 << 61, FLOATS[:0], LONGS[:0], np.zeros(9, np.int64), FLOATS[:0].copy(), FLOATS[:0]),
    ],
    "route_channels": [
        (2, 2, 1, 1, 0, FLOATS, FLOATS[:4], LONGS + 2, FLOATS[:4], FLOATS[:4], OFFSETS, FLOATS),
        (2, 2, 1, 1, 0, FLOATS, FLOATS[:3], LONGS, FLOATS[:4], FLOATS[:4], OFFSETS, FLOATS),
        (1 << 16, 1 << 16, 1, 1, 0, *[FLOATS[:0]] * 2, *[LONGS[:0]] * 4, FLOATS[:0]),
        (2, 2, 1, 1 << 17, 0, FLOATS, FLOATS[:4], LONGS, FLOATS[:4], FLOATS[:4], OFFSETS, FLOATS),
        (2, 2, 17, 1, 0, FLOATS, FLOATS[:4], LONGS, FLOATS[:4], FLOATS[:4], OFFSETS, FLOATS),
        (2, 2, 1, 1, 0, FLOATS, FLOATS[:4], LONGS, FLOATS[:4], FLOATS[:4], OFFSETS, FLOATS[1:]),
    ],
}


@needs_loops
@pytest.mark.parametrize(("name", "place"), [(n, p) for n in WRONG for p in range(len(WRONG[n]))])
def test_arrays_that_do_not_fit_are_refused(name: str, place: int) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        getattr(LOOPS, name)(*WRONG[name][place])
