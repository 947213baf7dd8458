"""How memory is taken from the system and given back."""

import ctypes
import sys
from typing import Any

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # as malloc.h numbers them


def tune_malloc() -> None:
    """Keep freed memory for the next step instead of handing it back to the system.

    By default glibc gives every large tensor back as soon as it is freed and has the system
    clear fresh pages for the next one, which takes a good part of the time of a training step.
    Commands call this once; it changes the whole process, so the library never does by itself.
    """
    libc = _libc()
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(_TRIM_THRESHOLD, 1 << 30)
        libc.mallopt(_TOP_PAD, 1 << 26)


def give_back_memory() -> None:
    """Hand back to the system what is free, however much ``tune_malloc`` keeps."""
    libc = _libc()
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def _libc() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
