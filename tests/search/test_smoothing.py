import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cli.test_cli import run
from tests.conftest import EXAMPLES
from tests.search.examples import PROGRAMS, open_index, update
from treecaps.errors import UsageError
from treecaps.models.calibration import Calibration
from treecaps.search import Index, smoothing
from treecaps.search.build import update_index

CALIBRATION = Calibration(temperature=0.06, threshold=0.6)


def rank_slowly(query: NDArray[np.float64], candidates: NDArray[np.float64]) -> list[float]:
    """Return the similarity of each candidate after smoothing, the long and obvious way."""

    def move(vector: NDArray[np.float64], others: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        near = sorted(others, key=lambda other: -float(vector @ other))[: smoothing.NEIGHBOURS]
        moved = vector.copy()
        for other in near:
            moved += float(CALIBRATION.same(float(vector @ other))) * other
        unit: NDArray[np.float64] = moved / np.sqrt((moved**2).sum())
        return unit

    every = list(candidates)
    asked = move(query, every)
    return [
        float(asked @ move(vector, every[:place] + every[place + 1 :]))
        for place, vector in enumerate(every)
    ]


@pytest.mark.parametrize("size", [1, 3, 11, 80])
def test_the_order_is_that_of_smoothing_one_by_one(size: int) -> None:
    rng = np.random.default_rng(size)
    centres = rng.normal(size=(4, 16))
    vectors = centres[rng.integers(4, size=size + 1)] + 0.6 * rng.normal(size=(size + 1, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query, candidates = vectors[0], vectors[1:]
    found = smoothing.rank(
        query.astype(np.float32), candidates.astype(np.float32), CALIBRATION.same
    )
    values = rank_slowly(query, candidates)
    assert sorted(found.tolist()) == list(range(size))
    np.testing.assert_allclose(np.array(values)[found], sorted(values, reverse=True), atol=1e-5)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("smooth") / "index"
    update_index(PROGRAMS, path, functions=False)
    return path


def test_matches_have_the_similarity_of_before(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Index.open(index)
    monkeypatch.setattr(smoothing, "CANDIDATES", 20)
    for query in opened.vectors[:5]:
        plain = {match.path: match for match in opened.search(query, 20)}
        found = opened.search(query, 8, smooth=True)
        assert len(found) == 8
        for match in found:
            assert match.similarity == pytest.approx(plain[match.path].similarity, abs=1e-5)


def test_what_is_farther_away_keeps_its_place(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Index.open(index)
    monkeypatch.setattr(smoothing, "CANDIDATES", 12)
    plain = opened.search(opened.vectors[0], 40)
    found = opened.search(opened.vectors[0], 40, smooth=True)
    assert {match.path for match in found[:12]} == {match.path for match in plain[:12]}
    assert [match.path for match in found[12:]] == [match.path for match in plain[12:]]


def test_the_command(index: Path) -> None:
    words = ("search", index, EXAMPLES[0], "--top", "4", "--json")
    plain, smooth = (json.loads(run(*words, *more).stdout) for more in ((), ("--smooth",)))
    assert len(smooth["matches"]) == 4
    assert smooth["matches"][0] == plain["matches"][0]


def test_other_models_cannot(tmp_path: Path) -> None:
    update(PROGRAMS, tmp_path / "index")
    opened = open_index(tmp_path / "index")
    with pytest.raises(UsageError, match="only a model that was trained for similarity can smooth"):
        opened.search(opened.vectors[0], smooth=True)
