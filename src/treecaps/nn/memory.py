"""How memory is taken from the system and given back."""

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # as malloc.h numbers them


def keep_memory() -> None:
    """Keep freed memory for the next step instead of handing it back to the system.

    By default glibc gives every large tensor back as soon as it is freed and has the system
    clear fresh pages for the next one, which takes a good part of the time of a training step.
    Commands call this once; it changes the whole process, so the library never does by itself.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(_TRIM_THRESHOLD, 1 << 30)
        libc.mallopt(_TOP_PAD, 1 << 26)
