from itertools import combinations
from pathlib import Path

import pytest

import treecaps
from tests.search.examples import PROGRAMS, embedder, write_files
from tests.search.test_copies import COPY, HONEST, ORIGINAL
from treecaps.search import comparison as module
from treecaps.search.collection import Collection
from treecaps.search.comparison import Comparison, alike, compare
from treecaps.search.copies import Work
from treecaps.search.parts import matching_parts
from treecaps.search.units import Unit, join_submissions, read_units
from treecaps.syntax.functions import find_functions

NAMES = ("gcd/gcd.py", "gcd/gcd.c", "bubble-sort/bubble_sort.py", "bubble-sort/BubbleSort.java")


def read(folder: Path, files: list[str], *, functions: bool = False) -> list[Unit]:
    units, failures = read_units(folder, files, embedder(), functions=functions, workers=1)
    assert not failures
    return units


def lay_open(units: list[Unit], old: list[Unit] | None = None, copied: float = 0.8) -> Comparison:
    return compare(Collection(embedder(), units, old or []), embedder(), None, copied, workers=1)


@pytest.fixture(scope="module")
def files() -> Comparison:
    return lay_open(read(PROGRAMS, list(NAMES)))


def test_every_pair_of_a_few_works_has_its_matching_parts(files: Comparison) -> None:
    assert {(one.left, one.right) for one in files.pairs} == set(combinations(range(4), 2))
    trees = [treecaps.parse_file(PROGRAMS / name) for name in NAMES]
    for one in files.pairs:
        assert one.parts == matching_parts(trees[one.left], trees[one.right])
        assert (one.pair.left.path, one.pair.right.path) == (NAMES[one.left], NAMES[one.right])
    assert any(one.lines for one in files.pairs)


def test_figures_are_those_of_all_pairs(files: Comparison) -> None:
    pairs = Collection(embedder(), files.units).pairs()
    for number, unit in enumerate(files.units):
        mine = [pair for pair in pairs if unit in (pair.left, pair.right)]
        assert files.highest[number] == (
            max(pair.copied for pair in mine),
            max(alike(pair) for pair in mine),
        )
    for percent in (0, 13, 50, 100):
        assert files.above[0][percent] == sum(
            round(pair.copied, 4) >= percent / 100 for pair in pairs
        )
    assert files.above[0][0] == files.above[1][0] == 6


def test_the_functions_of_a_file_are_shown_with_their_lines() -> None:
    found = lay_open(read(PROGRAMS, list(NAMES), functions=True))
    (number,) = (place for place, unit in enumerate(found.units) if unit.function == "sort")
    (source,) = found.sources[number]
    unit = found.units[number]
    assert unit.line is not None
    text = (PROGRAMS / NAMES[3]).read_text()
    lines = text.splitlines(keepends=True)[unit.line - 1 : unit.last_line]
    assert (source.indent + source.tree.text).decode() + "\n" == "".join(lines)
    assert source.line == unit.line
    assert source.indent == b"    "
    functions = find_functions(treecaps.parse_file(PROGRAMS / NAMES[3]))
    assert source.tree.text in [one.tree.text for one in functions]


def test_submissions_of_several_files(tmp_path: Path) -> None:
    texts = {"a/one.py": ORIGINAL, "a/two.py": HONEST, "b/x.py": HONEST, "b/y.py": COPY}
    write_files(tmp_path, texts)
    found = lay_open(join_submissions(read(tmp_path, list(texts))))
    (pair,) = found.pairs
    assert [source.name for source in found.sources[0]] == ["a/one.py", "a/two.py"]
    whole = [part for part in pair.parts if part.program == (1, 0)]
    assert [(part.line, part.last_line[0]) for part in whole] == [((2, 2), HONEST.count("\n"))]
    assert {part.program for part in pair.parts} == {(0, 1), (1, 0)}


def test_new_works_with_old_ones_only(tmp_path: Path) -> None:
    write_files(tmp_path, {"new/a.py": ORIGINAL, "new/b.py": HONEST, "old/a.py": COPY})
    new, old = read(tmp_path / "new", ["a.py", "b.py"]), read(tmp_path / "old", ["a.py"])
    found = lay_open(new, old)
    assert (found.new, [(one.left, one.right) for one in found.pairs]) == (2, [(0, 2), (1, 2)])
    assert found.sources[2][0].tree.text.decode() == COPY


def test_the_template_is_not_looked_for(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": ORIGINAL + "print(1)\n", "b.py": ORIGINAL + HONEST})
    units = read(tmp_path, ["a.py", "b.py"])
    given = [treecaps.parse_code(ORIGINAL, "python")]
    collection = Collection(embedder(), units, [], [Work.from_trees(given)])
    assert lay_open(units).pairs[0].parts
    (pair,) = compare(collection, embedder(), template=given, workers=1).pairs
    assert (pair.parts, pair.lines) == ([], [])


def test_a_file_that_changed_meanwhile_or_is_too_large_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a.py": ORIGINAL, "b.py": COPY, "c.py": ORIGINAL})
    functions = read(tmp_path, ["a.py", "b.py", "c.py"], functions=True)
    (tmp_path / "a.py").unlink()
    (tmp_path / "b.py").write_text("\n\n" + COPY)
    found = lay_open(functions)
    shown = {unit.path for unit, own in zip(found.units, found.sources, strict=True) if own}
    assert shown == {"c.py"}
    assert all(not one.parts for one in found.pairs)
    monkeypatch.setattr(module, "LARGEST", 20)
    assert lay_open(functions).sources == [[] for _ in functions]


def test_of_many_pairs_the_copied_and_the_nearest_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number}.py" for number in range(6)]
    texts = [ORIGINAL, ORIGINAL.replace("values", "xs"), COPY, HONEST, "x = 1\n", "def f(): pass\n"]
    write_files(tmp_path, dict(zip(names, texts, strict=True)))
    units = read(tmp_path, names)
    monkeypatch.setattr(module, "PAIRS", 7)
    few = lay_open(units)
    assert len(few.pairs) == 7
    assert few.above[0][0] == 15
    assert (few.pairs[0].left, few.pairs[0].right) == (0, 1)
    assert {work for one in few.pairs for work in (one.left, one.right)} == set(range(6))
    assert few.found
    monkeypatch.setattr(module, "EVERY", 5)
    above = lay_open(units)
    assert above.floor == module.FLOOR
    assert 0 < len(above.pairs) < 7 or above.above[0][0] < 15
    assert all(
        one.pair.copied >= module.FLOOR or one.pair.similarity >= embedder().alike
        for one in above.pairs
    )


def test_one_work_has_no_pairs(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": ORIGINAL})
    found = lay_open(read(tmp_path, ["a.py"]))
    assert (found.pairs, found.highest, found.found) == ([], [(0.0, 0.0)], False)
    assert lay_open([]).pairs == []
