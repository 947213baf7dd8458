"""Files from elsewhere: they are read if they are regular files of bounded size."""

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20
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
