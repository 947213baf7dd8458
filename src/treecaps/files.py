"""Files: read if they are regular and of bounded size, written whole or not at all, and locked."""

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

_BLOCK = 1 << 20
_PAUSE = 0.05  # seconds between two attempts to take a lock
_DEEPEST = 100
"""How deep JSON may be nested: what is deeper than Python's stack cannot be compared or written."""


def read_regular_file(path: str | Path, max_bytes: int) -> bytes:
    """Return the contents of a file; raise ``OSError`` if it is too large, or not a file."""
    # Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # so says the system of a socket
            raise _not_a_file(stat.S_IFSOCK) from None
        raise
    try:
        status = os.fstat(descriptor)
        check_regular(status, max_bytes)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(status.st_size)
            if more := file.read(1):  # it has grown, or is one of /proc, whose size is 0
                content += more + file.read(max_bytes - len(content))
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise too_large(len(content), max_bytes)
    return content


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the contents of a file some at a time, because it may be large."""
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            yield block


def check_regular(status: os.stat_result, max_bytes: int) -> None:
    """Raise ``OSError`` unless this is the status of a regular file of bounded size."""
    if not stat.S_ISREG(status.st_mode):
        raise _not_a_file(status.st_mode)
    if status.st_size > max_bytes:
        raise too_large(status.st_size, max_bytes)


@contextmanager
def atomic_path(path: Path, *, alone: bool = False) -> Iterator[Path]:
    """Give another name to write a file under; it replaces what is at ``path`` when complete.

    If anything fails, what was there stays as it was, and nothing of the new file is left.

    Args:
        path: The file; a link is replaced, not followed.
        alone: Whether no other process writes this file meanwhile. The other name is then always
            the same, so that the next write removes what a killed one left.
    """
    # A name must not be too long for the system where that of the file is not.
    name = f"{path.name}.building" if alone else f"{path.name[:40]}.building-{uuid4().hex}"
    building = path.with_name(name)
    try:
        building.unlink(missing_ok=True)  # a link would lead elsewhere, a FIFO would wait
        yield building
        building.replace(path)
    finally:
        with suppress(OSError):
            building.unlink(missing_ok=True)


@contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write; it replaces what is at ``path`` when it is complete and on the disk."""
    with atomic_path(path) as building, _open_synced(building) as file:
        yield file


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files that belong together; all of them, or on a full disk none.

    They take their names when all are on the disk, in the order given, so the last one may vouch
    for the others. Nobody else may write them meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for name in reversed(list(contents)):  # what is entered last is left first
            building = stack.enter_context(atomic_path(folder / name, alone=True))
            with _open_synced(building) as file:
                file.write(contents[name])
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # makes the new names last through a loss of power
    finally:
        os.close(descriptor)


@contextmanager
def _open_synced(path: Path) -> Iterator[IO[bytes]]:
    with open(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


class FileLock:
    """A lock that one process holds at a time; the system takes it back when the process ends.

    Args:
        path: The file that stands for the lock; it is removed when the lock is released.
        seconds: How long to wait for another process that holds the lock before
            ``BlockingIOError`` is raised.
    """

    def __init__(self, path: Path, seconds: float = 0.0) -> None:
        self._path = path
        until = time.monotonic() + seconds
        while True:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._descriptor)
                if time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE)
                continue
            except OSError:
                return  # a file system without locks
            # The process before may have removed the file after it was opened here.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), path.stat()):
                    return
            os.close(self._descriptor)

    def close(self) -> None:
        """Release the lock."""
        with suppress(OSError):
            self._path.unlink()
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # worker processes have it open too
        os.close(self._descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def load_json(content: bytes | str) -> Any:
    """Return the value of a JSON text; raise ``ValueError`` if it is none, or nested too deep."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None
    parts = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        if not parts:
            return value
        parts = [
            part
            for whole in parts
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, dict | list)
        ]
    raise ValueError("nested too deep")


def too_large(size: int, max_bytes: int) -> OSError:
    """Return the error for a file of more bytes than are allowed."""
    return OSError(
        errno.EFBIG, f"is larger than {max_bytes / 1e6:g} MB ({size / 1e6:.1f} MB or more)"
    )


def _not_a_file(mode: int) -> OSError:
    if stat.S_ISDIR(mode):
        return OSError(errno.EISDIR, "is a folder, not a file")
    if stat.S_ISFIFO(mode):
        return OSError(errno.ESPIPE, "is a FIFO, not a file")
    return OSError(errno.EINVAL, "is a device or socket, not a file")
