"""Loops for which NumPy has no function, compiled from ``_compiled.c`` when treecaps is installed.

Without a compiler, or where an older one is left, ``loops`` is ``None``. Whatever calls one has
another way in NumPy; results are equal, those of sums up to rounding.
"""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_VERSION = 1

loops: ModuleType | None = None
with suppress(ModuleNotFoundError):
    _found = import_module("treecaps._compiled")
    if getattr(_found, "VERSION", 0) == _VERSION:
        loops = _found


def number(
    loop: Callable[..., int], size: int, *arguments: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ``[size]``, the numbers that a loop gives, and for each the first place that has it.

    Args:
        loop: One of those that give equal things one number.
        size: How many things there are.
        arguments: What it looks at.
    """
    numbers, first = np.empty((2, size), np.int64)
    return numbers, first[: loop(*arguments, numbers, first)].copy()
