import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limits import error_of
from treecaps.errors import tell
from treecaps.files import load_json, read_regular_file


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"", b"x" * 99, b"x" * 100):
        path.write_bytes(content)
        assert read_regular_file(path, 100) == content
        assert read_regular_file(str(path), 100) == content
    path.write_bytes(b"x" * 101)
    with pytest.raises(OSError, match=r"is larger than 0.0001 MB \(0.0 MB or more\)") as caught:
        read_regular_file(path, 100)
    assert caught.value.errno == errno.EFBIG


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"contents")
    (tmp_path / "link").symlink_to("file")
    assert read_regular_file(tmp_path / "link", 100) == b"contents"


def test_what_the_status_does_not_tell_is_bounded_too() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert read_regular_file(path, 1_000_000).startswith(b"Name:")
    with pytest.raises(OSError, match="is larger than"):
        read_regular_file(path, 100)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "is a FIFO, not a file"),
        (os.mkdir, "is a folder, not a file"),
        (make_socket, "is a device or socket, not a file"),
        (lambda path: os.symlink("/dev/zero", path), "is a device or socket, not a file"),
        (lambda path: os.symlink(path, path), "is a symbolic link that leads back to itself"),
        (lambda path: None, "no such file or directory"),
    ],
)
def test_anything_else_is_refused_at_once(
    make: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    make(tmp_path / "it")
    before = len(os.listdir("/proc/self/fd"))
    error = error_of(lambda: read_regular_file(tmp_path / "it", 1 << 40))
    assert isinstance(error, OSError)
    assert tell(error) == words
    assert len(os.listdir("/proc/self/fd")) == before


def test_json_is_read_up_to_some_depth() -> None:
    assert load_json(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert load_json("3") == 3
    assert load_json("[" * 99 + "]" * 99)
    for text in ("[" * 100 + "]" * 100, '{"a":' * 100 + "1" + "}" * 100, "[" * 100_000):
        with pytest.raises(ValueError, match="nested too deep"):
            load_json(text)
    with pytest.raises(ValueError, match="Expecting"):
        load_json("{")
