import re
from pathlib import Path

import numpy as np
import pytest

from tests.training.vectors.examples import java_trees
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, UsageError
from treecaps.rendering.vectors import _place, draw_vectors
from treecaps.training.vectors.kind_vectors import KindVectors
from treecaps.training.vectors.learn import learn_vectors


def by_chance(names: list[str], size: int = 30) -> KindVectors:
    vocabulary = Vocabulary(names)
    values = np.random.default_rng(0).standard_normal((len(vocabulary), size), np.float32)
    counts = np.arange(len(vocabulary))
    return KindVectors(vocabulary, values, counts, "random", "", 0, "0.1.0")


def test_every_kind_is_named_once_and_pictures_repeat(tmp_path: Path) -> None:
    vectors = learn_vectors(java_trees(), "random")
    first, again = tmp_path / "first.svg", tmp_path / "again.SVG"
    draw_vectors(vectors, first)
    draw_vectors(vectors, again)
    assert first.read_bytes() == again.read_bytes()
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", first.read_text("utf-8"))
    for kind in vectors.vocabulary.kinds[1:]:
        escaped = kind.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert escaped in labels


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("kinds", [1, 2, 4, 5])
def test_few_kinds_and_short_vectors_can_be_drawn(tmp_path: Path, kinds: int, size: int) -> None:
    file = tmp_path / "picture.svg"
    draw_vectors(by_chance([f"kind_{number}" for number in range(kinds)], size), file)
    assert f"kind_{kinds - 1}" in file.read_text()


def test_names_are_other_peoples_words(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    draw_vectors(by_chance(["$x^{$", "<b>&amp;", "a" * 200, '"$"', '"\\"']), file)
    text = file.read_text("utf-8")
    assert "$x^{$" in text
    assert "&lt;b&gt;&amp;amp;" in text
    assert "a" * 39 + "…" in text


def test_labels_cover_neither_labels_nor_points() -> None:
    chance = np.random.default_rng(1)
    points = chance.uniform(0, 900, (120, 2))
    extents = np.stack([chance.uniform(20, 90, 120), np.full(120, 10.0)], 1)
    taken = np.array([[0.0, 0, 80, 60]])
    bounds = np.array([-50.0, -50, 950, 950])
    places = _place(points, extents, np.arange(120), taken, bounds)
    boxes = [*np.hstack([places, places + extents]), *taken]
    for number, (left, bottom, right, top) in enumerate(boxes[:-1]):
        for other in boxes[number + 1 :]:
            assert right <= other[0] or other[2] <= left or top <= other[1] or other[3] <= bottom
        inside = ((points > (left, bottom)) & (points < (right, top))).all(1)
        assert not inside.any()
        assert left >= -50
        assert bottom >= -50
        assert right <= 950
        assert top <= 950


def test_other_endings_and_missing_folders_are_refused(tmp_path: Path) -> None:
    vectors = by_chance(["a", "b"])
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        draw_vectors(vectors, tmp_path / "picture.pdf")
    with pytest.raises(DataError, match=r"cannot write .*: there is no folder"):
        draw_vectors(vectors, tmp_path / "none" / "picture.svg")
