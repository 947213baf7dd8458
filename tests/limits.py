"""Calls that must fail soon: a mistake in what is tested neither hangs nor fills memory."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

_SECONDS = 30
_BYTES = 1 << 30


def make_hole(path: Path, size: int) -> None:
    """Make a file that claims to be large and takes no room."""
    with open(path, "wb") as file:
        file.truncate(size)


in_place_of_a_file = pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "is a FIFO, not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device or socket, not a file"),
        (os.mkdir, "is a folder, not a file"),
        (lambda path: make_hole(path, 1 << 40), "is larger than"),
    ],
)
"""What a stranger may put where a file of bounded size should be, and what is said of it."""


def error_of(call: Callable[[], object]) -> Exception:
    """Return the error that a call raises; fail if it takes long or more than some memory."""
    caught: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:
            caught.append(error)

    # If it never ends it is left behind, and does not keep the tests from ending.
    thread = Thread(target=run, daemon=True)
    with _little_memory():
        thread.start()
        thread.join(_SECONDS)
    assert not thread.is_alive(), "it does not end"
    assert caught, "it raises nothing"
    return caught[0]


@contextmanager
def _little_memory() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _BYTES, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))
