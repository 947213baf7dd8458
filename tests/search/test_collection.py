from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.search.examples import PROGRAMS, embedder, slow_groups, write_files
from tests.search.test_copies import COPY, HONEST, ORIGINAL
from treecaps.errors import UsageError
from treecaps.search import collection as module
from treecaps.search.collection import Collection
from treecaps.search.copies import Copies, Work
from treecaps.search.units import Unit, join_submissions, read_units


def read(folder: Path, *, functions: bool = True) -> list[Unit]:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    units, failures = read_units(folder, files, embedder(), functions=functions, workers=1)
    assert not failures
    return units


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    found = read(PROGRAMS)
    return [*found, found[3]]


@pytest.mark.parametrize(("threshold", "copied"), [(0.99, 0.35), (0.97, 0.9), (0.98, 0.5)])
def test_groups_are_those_of_comparing_each_with_each(
    threshold: float, copied: float, units: list[Unit]
) -> None:
    place = {(unit.path, unit.line): number for number, unit in enumerate(units)}
    found = Collection(embedder(), units).groups(threshold, copied)
    groups = {frozenset(place[one.path, one.line] for one in group.members) for group in found}
    copies = Copies([unit.work for unit in units])
    slow = slow_groups(
        range(len(units)),
        lambda one, other: (
            float(units[one].vector @ units[other].vector) >= threshold
            or copies.compare(one, other) >= copied
        ),
    )
    last = len(units) - 1  # stands twice
    assert groups == {
        frozenset(place[units[one].path, units[one].line] for one in group) for group in slow
    }
    assert any(last in group for group in slow)
    for group in found:
        assert group.copied == min(one.copied or 0 for one in group.members)
        assert group.similarity == min(one.similarity for one in group.members)
        numbers = [place[one.path, one.line] for one in group.members]
        for index, (one, number) in enumerate(zip(group.members, numbers, strict=True)):
            others = numbers[:index] + numbers[index + 1 :]
            products = [float(units[number].vector @ units[other].vector) for other in others]
            assert one.similarity == pytest.approx(max(products), abs=1e-5)


def test_many_equal_functions_are_one_group(units: list[Unit]) -> None:
    many = [replace(units[0], line=number) for number in range(1, 100_001)]
    (group,) = Collection(embedder(), [*many, units[40]]).groups(1, 1)
    assert len(group.members) == 100_000
    assert group.copied == 1
    assert group.similarity == pytest.approx(1)


def test_of_many_equal_functions_some_are_in_every_pair(
    units: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [replace(units[0], line=number) for number in range(1, 100_001)]
    collection = Collection(embedder(), [*many, units[40]])
    pairs = collection.pairs(0.999, 0.9)
    assert collection.num_left_out == 99_900
    assert len(pairs) == 4950 + 99_900
    assert {pair.copied for pair in pairs} == {1.0}
    assert {one.line for pair in pairs for one in (pair.left, pair.right)} == set(range(1, 100_001))
    few = [*units[:4], *(replace(units[0], line=number) for number in range(1, 6))]
    every = {(pair.left.name, pair.right.name) for pair in Collection(embedder(), few).pairs()}
    monkeypatch.setattr(module, "EQUAL", 3)
    found = {(pair.left.name, pair.right.name) for pair in Collection(embedder(), few).pairs()}
    # Of six equal ones, three are compared with all, and three with the first.
    assert len(every) == 36
    assert found < every
    assert len(found) == 15 + 3
    assert len(Collection(embedder(), few, units[4:6]).pairs()) == 6 * 2


def test_every_pair_is_listed(units: list[Unit]) -> None:
    pairs = Collection(embedder(), units[:20]).pairs()
    assert len(pairs) == 190
    copies = Copies([unit.work for unit in units[:20]])
    place = {unit.name: number for number, unit in enumerate(units[:20])}
    for pair in pairs:
        left, right = place[pair.left.name], place[pair.right.name]
        assert pair.copied == pytest.approx(copies.compare(left, right))
        product = float(pair.left.vector @ pair.right.vector)
        assert pair.similarity == pytest.approx(product, abs=1e-6)
    assert [pair.copied for pair in pairs] == sorted((pair.copied for pair in pairs), reverse=True)


def test_many_pairs_are_listed_above_thresholds_only(
    units: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Collection(embedder(), units).pairs()
    expected = [pair for pair in every if pair.copied >= 0.4 or pair.similarity >= 0.98]
    found = Collection(embedder(), units).pairs(0.98, 0.4)
    names = [{pair.left.name, pair.right.name} for pair in found]
    assert 1 < len(found) < len(every)
    assert names == [{pair.left.name, pair.right.name} for pair in expected]
    monkeypatch.setattr(module, "EVERY", 3)
    assert len(Collection(embedder(), units).pairs()) < len(every)


def test_new_units_are_compared_with_old_ones(units: list[Unit]) -> None:
    pairs = Collection(embedder(), units[:3], units[3:10]).pairs()
    assert len(pairs) == 21
    assert {pair.left.name for pair in pairs} == {unit.name for unit in units[:3]}
    found = Collection(embedder(), units[:4], units[4:]).pairs(0.99, 0.9)
    assert [(pair.left.name, pair.right.name) for pair in found if pair.copied == 1] == [
        (units[3].name, units[3].name)
    ]


def test_submissions_are_folders_and_single_files(tmp_path: Path) -> None:
    files = {"a/x.py": ORIGINAL, "a/y/z.py": HONEST, "b/one.py": HONEST, "c.py": COPY}
    write_files(tmp_path, files)
    joined = join_submissions(read(tmp_path, functions=False))
    assert [unit.name for unit in joined] == ["a", "b", "c.py"]
    assert [np.linalg.norm(unit.vector) for unit in joined] == pytest.approx([1, 1, 1], abs=1e-5)
    shares = {
        (pair.left.name, pair.right.name): pair.copied
        for pair in Collection(embedder(), joined).pairs()
    }
    assert shares["a", "b"] > 0.9
    assert shares["a", "c.py"] > 0.7
    assert shares["b", "c.py"] < 0.3


def test_what_is_only_template_is_like_nothing(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(ORIGINAL)
    units = read(tmp_path, functions=False)
    template = [Work.join([units[0].work, units[0].work])]
    assert [len(group.members) for group in Collection(embedder(), units).groups()] == [2]
    assert Collection(embedder(), units, template=template).groups() == []
    (pair,) = Collection(embedder(), units, template=template).pairs()
    assert (pair.copied, pair.similarity) == (0, 0)


def test_nothing_to_compare() -> None:
    assert Collection(embedder(), []).pairs() == []
    assert Collection(embedder(), []).groups() == []


@pytest.mark.parametrize("value", [0, -1, 1.5, float("nan")])
def test_thresholds_that_cannot_be(value: float, units: list[Unit]) -> None:
    for thresholds in ((value, 0.5), (0.5, value)):
        with pytest.raises(UsageError, match="above 0 and at most 1"):
            Collection(embedder(), units).groups(*thresholds)
        with pytest.raises(UsageError, match="above 0 and at most 1"):
            Collection(embedder(), units).pairs(*thresholds)
