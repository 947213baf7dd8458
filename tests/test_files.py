import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.limits import error_of
from treecaps.errors import describe_os_error
from treecaps.files import (
    FileLock,
    atomic_path,
    is_locked,
    load_json,
    open_atomic,
    read_regular_file,
    write_together,
)


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
    assert describe_os_error(error) == words
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


def kill_in_the_midst(script: str, *words: Path) -> None:
    """Run a script that prints a line when it is where it shall be killed."""
    command = [sys.executable, "-c", script, *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("alone", [False, True])
def test_a_new_file_replaces_the_old_one_when_complete(tmp_path: Path, alone: bool) -> None:
    path = tmp_path / "file"
    for content in (b"first", b"second"):
        before = path.read_bytes() if path.exists() else None
        with atomic_path(path, alone=alone) as building:
            building.write_bytes(content)
            assert building.parent == tmp_path
            assert (path.read_bytes() if path.exists() else None) == before
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    def write() -> None:
        with open_atomic(path) as file:
            file.write(b"new")
            file.flush()
            raise error

    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(type(error)):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), open_atomic(tmp_path / "folder") as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "\U0001f333" * 63):
        with open_atomic(tmp_path / name) as file:
            file.write(b"new")
        assert (tmp_path / name).read_bytes() == b"new"


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("other")
    with open_atomic(tmp_path / "link") as file:
        file.write(b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "other").read_bytes() == b"mine"


_WRITES = """
import sys, time
from pathlib import Path
from treecaps.files import atomic_path

with atomic_path(Path(sys.argv[1]), alone=sys.argv[2] == "alone") as building:
    building.write_bytes(b"half")
    print("now", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("way", "left"), [("alone", 0), ("shared", 1)])
def test_a_killed_write_leaves_the_old_file(tmp_path: Path, way: str, left: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    kill_in_the_midst(_WRITES, path, Path(way))
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.glob("file.building*"))) == 1
    with atomic_path(path, alone=way == "alone") as building:
        building.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert len(list(tmp_path.glob("file.building*"))) == left


def test_files_are_written_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some" / "folder"
    write_together(folder, {"a": b"1", "b": b"1", "c": b"1"})
    real, synced = os.fsync, []

    def full(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        if len(synced) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_together(folder, {"a": b"2", "b": b"2", "c": b"2"})
    assert sorted(synced) == ["a.building", "b.building", "c.building"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a": b"1",
        "b": b"1",
        "c": b"1",
    }


def test_the_last_of_files_written_together_gets_its_name_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, named = Path.replace, []

    def replace(path: Path, target: Path) -> Path:
        named.append(target.name)
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    write_together(tmp_path, {"b": b"", "a": b"", "c": b""})
    assert named == ["b", "a", "c"]


def test_what_lies_in_the_way_of_new_files_is_removed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.building").symlink_to(other)
    os.mkfifo(folder / "b.building")
    write_together(folder, {"a": b"1", "b": b"2"})
    assert other.read_text() == "mine"
    assert not (folder / "a").is_symlink()
    assert [(folder / name).read_bytes() for name in ("a", "b")] == [b"1", b"2"]
    assert len(list(folder.iterdir())) == 2


_HOLDS = """
import sys
from pathlib import Path
from treecaps.files import FileLock

lock = FileLock(Path(sys.argv[1]))
print("now", flush=True)
sys.stdin.read()
lock.close()
"""


def test_one_process_holds_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    command = [sys.executable, "-c", _HOLDS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"now\n"
            assert is_locked(path)
            before = len(os.listdir("/proc/self/fd"))
            with pytest.raises(BlockingIOError):
                FileLock(path)
            begun = time.monotonic()
            with pytest.raises(BlockingIOError):
                FileLock(path, 0.2)
            assert time.monotonic() - begun >= 0.2
            assert len(os.listdir("/proc/self/fd")) == before
            assert path.exists()
            process.communicate()
        finally:
            process.kill()
    assert process.returncode == 0
    assert not path.exists()
    assert not is_locked(path)
    with closing(FileLock(path)):
        assert is_locked(path)
    assert not path.exists()


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", _HOLDS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.stdin.close()
        with closing(FileLock(path, 60)):
            assert is_locked(path)


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    kill_in_the_midst(_HOLDS, path)
    assert path.exists()
    assert not is_locked(path)
    with closing(FileLock(path)):
        assert is_locked(path)


_COUNTS = """
import sys
from contextlib import closing
from pathlib import Path
from treecaps.files import FileLock

lock, count = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(50):
    with closing(FileLock(lock, 60)):
        number = int(count.read_text())
        count.write_text(str(number + 1))
"""


def test_removing_the_file_never_gives_a_lock_to_two(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    script = f"import treecaps.files; treecaps.files._PAUSE = 0.0001; {_COUNTS}"
    command = [sys.executable, "-c", script, str(tmp_path / "lock"), str(path)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert path.read_text() == "200"
    assert os.listdir(tmp_path) == ["count"]


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "lock", fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        path.unlink()  # as a process does that releases the lock just now
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    before = len(os.listdir("/proc/self/fd"))
    with closing(FileLock(path)):
        assert is_locked(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_file_systems_without_locks_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with closing(FileLock(tmp_path / "lock")):
        assert not is_locked(tmp_path / "lock")
    assert not os.listdir(tmp_path)
