import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from tests.reproduction.loops import write_data
from treecaps.data.corpus import Corpus
from treecaps.models.trained import TrainedModel
from treecaps.reproduction.timing import ROUNDS, TIMED_PROGRAMS, time_programs
from treecaps.syntax.parse import parse_code
from treecaps.syntax.tree import Tree


class Slow:
    """A model that takes a millisecond for each node, and now and then a second more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.seen: list[int] = []
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def read_trees(self, trees: Sequence[Tree]) -> list[Tree]:
        self.now += 0.001 * sum(map(len, trees)) / 2
        return list(trees)

    def scores(self, inputs: Any) -> None:
        assert len(inputs) == 1
        self.seen.append(len(inputs[0]))
        self.now += 0.001 * len(inputs[0]) / 2 + (len(self.seen) % 3 == 1)


def test_the_median_of_programs_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.build(write_data(tmp_path / "data") / "java-sort" / "test.jsonl")
    model = Slow(monkeypatch)
    found = time_programs(cast("TrainedModel", model), corpus)
    sizes = sorted(len(tree) for tree in corpus)
    assert model.seen == ROUNDS * [len(tree) for tree in corpus]
    assert len(sizes) == 8
    assert found == pytest.approx((sizes[3] + sizes[4]) / 2)


def test_of_many_programs_some_are_taken_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (parse_code("x = 1\n" * count, "python") for count in (1, 2))
    trees = [small] * 301 + [large] * 300
    model = Slow(monkeypatch)
    time_programs(cast("TrainedModel", model), cast("Corpus", trees))
    seen = model.seen[: len(model.seen) // ROUNDS]
    assert model.seen == ROUNDS * seen
    assert TIMED_PROGRAMS / 2 <= len(seen) <= TIMED_PROGRAMS
    assert abs(seen.count(len(small)) - seen.count(len(large))) <= 1
    assert sum(first != second for first, second in pairwise(seen)) == 1
