import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.limits import error_of
from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, UsageError
from treecaps.training.vectors.kind_vectors import KindVectors


def make(**changes: Any) -> KindVectors:
    values = {
        "vocabulary": Vocabulary(["for", "if", "näme", "while"]),
        "values": np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [2, 1]], np.float32),
        "counts": np.array([0, 5, 9, 1, 5]),
        "method": "parent",
        "data": "train.jsonl",
        "seed": 3,
        "version": "0.1.0",
    }
    return KindVectors(**{**values, **changes})


def test_vectors_are_found_by_kind() -> None:
    vectors = make()
    assert vectors.size == 2
    assert vectors.vector("while").tolist() == [2, 1]
    assert vectors.vector("no such kind").tolist() == [0, 0]
    other = Vocabulary(["until", "if", "do"])
    assert vectors.for_vocabulary(other).tolist() == [[0, 0], [0, 0], [0, 1], [0, 0]]


def test_neighbours_come_by_cosine() -> None:
    vectors = make()
    found = vectors.neighbours("for")
    assert [kind for kind, _ in found] == ["while", "if", "näme"]
    assert found[0][1] == pytest.approx(2 / 5**0.5)
    assert vectors.neighbours("for", top=1) == found[:1]
    # A vector of zeros points nowhere.
    assert make(values=np.zeros((5, 2), np.float32)).neighbours("if")[0][1] == 0


def test_kinds_come_by_frequency() -> None:
    assert make().by_frequency() == ["if", "for", "while", "näme"]


def test_unknown_kinds_have_no_neighbours_but_likely_names() -> None:
    with pytest.raises(UsageError, match=r"no vector for the kind 'whil'; did you mean while\?"):
        make().neighbours("whil")
    with pytest.raises(UsageError, match="there are vectors for if, for, while, "):
        make().neighbours("xyz")
    with pytest.raises(UsageError, match="no vector"):
        make().neighbours("<unknown>")


def test_files_give_back_what_was_written(tmp_path: Path) -> None:
    vectors = make()
    file = tmp_path / "some.safetensors"
    vectors.save(file)
    vectors.save(str(file))
    assert list(tmp_path.iterdir()) == [file]
    again = KindVectors.load(str(file))
    assert again.vocabulary == vectors.vocabulary
    assert np.array_equal(again.values, vectors.values)
    assert np.array_equal(again.counts, vectors.counts)
    for name in ("method", "data", "seed", "version"):
        assert getattr(again, name) == getattr(vectors, name)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write .*: no such file or directory"):
        make().save(tmp_path / "none" / "some.safetensors")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"cannot write .*: is a directory"):
        make().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*: no such file"):
        KindVectors.load(tmp_path / "none.safetensors")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"cannot read .*folder: is a folder, not a file"):
        KindVectors.load(tmp_path / "folder")
    file = tmp_path / "some.safetensors"
    make().save(file)
    whole = file.read_bytes()
    for cut in (0, 1, 8, 20, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="damaged"):
            KindVectors.load(file)
    file.write_text("PK: something else altogether")
    with pytest.raises(DataError, match="damaged"):
        KindVectors.load(file)
    save_file({"weight": np.zeros(3, np.float32)}, file)
    with pytest.raises(DataError, match="holds no vectors of kinds"):
        KindVectors.load(file)


@pytest.mark.parametrize(
    ("about", "tensors", "why"),
    [
        ({"format": 2, "version": "9.9"}, {}, "written by a newer treecaps, 9.9"),
        ({"format": "x"}, {}, "damaged"),
        ({"kinds": None}, {}, "damaged: not a vocabulary"),
        ({"kinds": ["<unknown>", "b", "a"]}, {}, "damaged: not a vocabulary"),
        ({"kinds": ["<unknown>", "a"]}, {}, "do not fit its 2 kinds"),
        ({"seed": "x"}, {}, "damaged"),
        ({"seed": float("inf")}, {}, "damaged"),
        ({}, {"values": np.zeros((3, 0), np.float32)}, "do not fit"),
        ({}, {"values": np.zeros((3, 2))}, "do not fit"),
        ({}, {"values": np.zeros(3, np.float32)}, "do not fit"),
        ({}, {"values": np.full((3, 2), np.nan, np.float32)}, "do not fit"),
        ({}, {"counts": np.zeros(4, np.int64)}, "do not fit"),
    ],
)
def test_altered_files_are_refused(
    tmp_path: Path, about: dict[str, Any], tensors: dict[str, Any], why: str
) -> None:
    good = {
        "format": 1,
        "kinds": ["<unknown>", "a", "b"],
        "method": "parent",
        "data": "",
        "seed": 0,
        "version": "0.1.0",
    }
    arrays: dict[str, Any] = {
        "values": np.zeros((3, 2), np.float32),
        "counts": np.zeros(3, np.int64),
    }
    file = tmp_path / "some.safetensors"
    save_file(arrays, file, {"treecaps-vectors": json.dumps(good)})
    assert KindVectors.load(file).size == 2
    save_file({**arrays, **tensors}, file, {"treecaps-vectors": json.dumps({**good, **about})})
    with pytest.raises(DataError, match=why):
        KindVectors.load(file)


@pytest.mark.parametrize("damage", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_anything_but_a_file_is_refused_at_once(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / "some.safetensors")
    error = error_of(lambda: KindVectors.load(tmp_path / "some.safetensors"))
    assert isinstance(error, DataError)
    assert "not a file" in str(error)


def test_a_file_without_its_arrays_or_facts_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "some.safetensors"
    for text in ("[1]", "{", "3", "{}", '{"format": 1}', "[" * 100_000):
        save_file({"values": np.zeros((3, 2), np.float32)}, file, {"treecaps-vectors": text})
        with pytest.raises(DataError, match="damaged"):
            KindVectors.load(file)
