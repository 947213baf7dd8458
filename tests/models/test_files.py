from pathlib import Path

import pytest

from treecaps.errors import ModelError
from treecaps.models.files import write_files


def test_what_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    for folder, reason in (("file", "file exists"), ("file/below", "not a directory")):
        with pytest.raises(ModelError) as caught:
            write_files(tmp_path / folder, {"a.json": b"{}"})
        assert str(caught.value) == (
            f"cannot write into {tmp_path / folder}: {reason};"
            " what was there before is whole, make room or choose another folder"
        )
    assert (tmp_path / "file").read_bytes() == b"mine"
