import os
from pathlib import Path

from treecaps.models.files import write_files


def test_what_lies_in_the_way_of_a_new_file_is_removed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a.json.building").symlink_to(other)
    os.mkfifo(folder / "b.json.building")
    write_files(folder, {"a.json": b"1", "b.json": b"2"})
    assert other.read_text() == "mine"
    assert not (folder / "a.json").is_symlink()
    assert [(folder / name).read_bytes() for name in ("a.json", "b.json")] == [b"1", b"2"]
    assert len(list(folder.iterdir())) == 2
