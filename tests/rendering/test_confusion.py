import errno
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from treecaps.errors import DataError, UsageError
from treecaps.inference.confusion import Confusion
from treecaps.inference.evaluate import Evaluation
from treecaps.rendering.confusion import draw_confusion, to_svg
from treecaps.rendering.pictures import check_picture


def scores_of(labels: list[str]) -> Evaluation:
    """Return scores in which each class is right ten times, and once taken for the next."""
    size = len(labels)
    confusion = tuple(
        tuple(10 * (row == column) + ((row + 1) % size == column) for column in range(size))
        for row in range(size)
    )
    return Evaluation(10 / 11, 0.9, 11 * size, 0, 0, {}, (), tuple(labels), confusion, 1.0, ())


def texts(file: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", file.read_text("utf-8"))


@pytest.mark.parametrize("classes", [1, 4, 10, 104])
def test_every_class_is_named_on_both_sides(tmp_path: Path, classes: int) -> None:
    file = tmp_path / "picture.svg"
    labels = [f"class {number}" for number in range(classes)]
    draw_confusion(scores_of(labels), file, title="some data")
    found = texts(file)
    assert all(found.count(label) == 2 for label in labels)
    assert found.count("10") == (classes if 1 < classes < 104 else 0)
    assert "some data" in found
    assert "what the model answered" in found


def test_pictures_repeat_and_come_in_both_kinds(tmp_path: Path) -> None:
    first, again, png = (tmp_path / name for name in ("first.svg", "again.SVG", "picture.png"))
    for file in (first, again, png):
        draw_confusion(scores_of(["a", "b"]), file)
    assert first.read_bytes() == again.read_bytes()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_numbers_stand_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    draw_confusion(scores_of(["100", "20", "3"]), file)
    found = texts(file)
    assert [text for text in found if text in ("3", "20", "100")][:3] == ["3", "20", "100"]


def test_pages_show_the_same_classes_in_the_same_order(tmp_path: Path) -> None:
    labels, counts = ("100", "20", "200", "3"), ((9, 1, 0, 0), (0, 9, 0, 1), (0,) * 4, (1, 0, 0, 9))
    page = to_svg(Confusion(labels, counts))
    assert re.findall(r'text-anchor="end"[^>]*>([^<]*)<', page) == ["3", "20", "100"]
    titles = re.findall("<title>([^<]*)</title>", page)
    assert {"100 as 20: 1", "20 as 3: 1", "3 as 100: 1"} < set(titles)
    assert len(titles) == 6
    file = tmp_path / "picture.svg"
    draw_confusion(replace(scores_of(list(labels)), confusion=counts), file)
    assert [text for text in texts(file) if text in labels] == ["3", "20", "100"] * 2


def test_a_page_has_room_for_few_names_and_so_many_cells() -> None:
    labels = tuple(f"<{number}>" for number in range(200))
    page = to_svg(Confusion(labels, ((1,) * 200,) * 200))
    assert page.count("<rect") == 5000
    assert "<text" not in page
    assert "&lt;99&gt; as &lt;99&gt;: 1" in page
    assert to_svg(Confusion((), ())).count("<rect") == 0


def test_names_are_other_peoples_words(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    names = ["$x^{$", "<b>&amp;", "a" * 200, "\u4e2d\u6587", "b\x1b[1m\nc"]
    draw_confusion(scores_of(names), file, title="$\\frac{$")
    found = texts(file)
    assert "$x^{$" in found
    assert "&lt;b&gt;&amp;amp;" in found
    assert "a" * 27 + "…" in found
    assert "\u4e2d\u6587" in found
    assert "b\ufffd[1m\ufffdc" in found
    draw_confusion(scores_of(names), tmp_path / "picture.png")


def test_a_full_disk_leaves_the_old_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "picture.svg"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="no space left"):
        draw_confusion(scores_of(["a", "b"]), file)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"picture.svg": "old"}


def test_other_endings_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        check_picture(tmp_path / "picture.pdf")
    with pytest.raises(DataError, match=r"there is no folder .*none"):
        check_picture(tmp_path / "none" / "picture.svg")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        draw_confusion(scores_of(["a", "b"]), tmp_path / "folder.png")
