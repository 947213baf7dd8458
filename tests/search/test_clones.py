from pathlib import Path

import numpy as np
import pytest

import treecaps
from tests.search.examples import PROGRAMS, copy_programs, embedder, open_index, slow_groups, update
from treecaps.errors import UsageError
from treecaps.search import Index
from treecaps.search.clones import find_clones
from treecaps.syntax.functions import find_functions


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    path = tmp_path_factory.mktemp("clones") / "index"
    update(PROGRAMS, path)
    return open_index(path)


def slow_clones(threshold: float, min_lines: int) -> set[frozenset[tuple[str, int]]]:
    """Compare each function with each other."""
    functions = {}
    for file in sorted(path for path in PROGRAMS.rglob("*") if path.is_file()):
        for function in find_functions(treecaps.parse_file(file)):
            if len(function.tree.text.rstrip().split(b"\n")) >= min_lines:
                vector = embedder().embed_trees([function.tree])[0].astype("float64")
                functions[str(file.relative_to(PROGRAMS)), function.line] = vector
    return slow_groups(
        functions, lambda one, other: float(functions[one] @ functions[other]) >= threshold
    )


def between_pairs(index: Index) -> float:
    """Return a threshold that some pairs pass and none comes near to."""
    likeness = index.vectors @ index.vectors.T
    values = np.sort(likeness[np.triu_indices(len(likeness), 1)])[::-1][60:120]
    widest = int(np.argmax(values[:-1] - values[1:]))
    return float(values[widest] + values[widest + 1]) / 2


@pytest.mark.parametrize("min_lines", [1, 5])
def test_groups_are_those_of_comparing_each_with_each(min_lines: int, index: Index) -> None:
    threshold = between_pairs(index)
    found = find_clones(index, threshold, min_lines=min_lines)
    places = {frozenset((one.path, one.line or 0) for one in group.members) for group in found}
    assert places == slow_clones(threshold, min_lines)
    assert len(places) > 1
    for group in found:
        assert group.similarity == min(one.similarity for one in group.members) >= threshold


def test_all_blocks_are_compared(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    threshold = between_pairs(index)
    whole = find_clones(index, threshold, min_lines=1)
    monkeypatch.setattr("treecaps.search.clones._BLOCK", 7)
    blocks = find_clones(index, threshold, min_lines=1)
    places = [[(one.path, one.line) for one in group.members] for group in blocks]
    assert places == [[(one.path, one.line) for one in group.members] for group in whole]


def test_copies_of_a_file_are_clones_even_at_1(tmp_path: Path) -> None:
    folder = copy_programs(tmp_path / "programs")
    code = "int f(int a)\n{\n    int b = a;\n    b++;\n    return b;\n}\n"
    (folder / "one.c").write_text(code)
    (folder / "two.c").write_text(code)
    (folder / "three.c").write_text("/* other contents */\n" + code)
    update(folder, tmp_path / "index")
    (group,) = find_clones(open_index(tmp_path / "index"), 1)
    assert [(one.path, one.line) for one in group.members] == [
        ("one.c", 1),
        ("three.c", 2),
        ("two.c", 1),
    ]
    assert group.to_dict()["members"][0]["function"] == "f"


def test_short_functions_are_left_out(index: Index) -> None:
    for group in find_clones(index, 0.9, min_lines=8):
        for one in group.members:
            assert one.last_line is not None
            assert one.line is not None
            assert one.last_line - one.line >= 7


@pytest.mark.parametrize("threshold", [0, -1, 1.5, float("nan")])
def test_a_threshold_that_cannot_be(threshold: float, index: Index) -> None:
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        find_clones(index, threshold)
