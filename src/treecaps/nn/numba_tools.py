"""What compiled layers share: an exponential that becomes vector instructions, and threads.

Numba keeps what it compiled on disk, by the date of the file of the outermost function. After a
change here, change the date of those that use it too.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_Result = TypeVar("_Result")
LOG2_E = math.log2(math.e)
MATH = {"contract", "nnan", "ninf", "nsz", "arcp", "afn"}
"""What the compiler may assume of floating-point numbers. Reordering sums would spoil the rounding
in ``exp2``, so it is not among it."""
# Added to a number below 2**22 and taken away again, it rounds; the low bits of the sum are the
# rounded number.
_ROUND = np.float32(3 << 22)
# Of the series of 2**x; for |x| <= 1/2 it is right to 2e-7.
_C = tuple(np.float32(np.log(2.0) ** k / np.prod(np.arange(1.0, k + 1))) for k in range(7))
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = _C


@intrinsic
def _add_exponent(context: Any, value: Any, rounded: Any) -> Any:
    """Multiply a value by 2 to the power of what is in the low bits of ``rounded``."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        whole = ir.IntType(32)
        value, power = (builder.bitcast(one, whole) for one in arguments)
        shifted = builder.shl(power, ir.Constant(whole, 23))
        return builder.bitcast(builder.add(value, shifted), ir.FloatType())

    return types.float32(types.float32, types.float32), generate


@numba.njit(inline="always")
def exp2(x: Any) -> Any:
    """Return 2**x for |x| < 120."""
    rounded = x + _ROUND
    rest = x - (rounded - _ROUND)
    value = _C6 * rest + _C5
    value = value * rest + _C4
    value = value * rest + _C3
    value = value * rest + _C2
    value = value * rest + _C1
    value = value * rest + _C0
    return _add_exponent(value, rounded)  # type: ignore[call-arg]  # Numba adds the context


def in_threads(run: Callable[[int], _Result], threads: int) -> list[_Result]:
    """Call with the number of each thread, all at the same time, and return all results."""
    waiting = [_pool().submit(run, part) for part in range(1, threads)]
    return [run(0), *(one.result() for one in waiting)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="routing")


# A forked process has no threads but its own.
os.register_at_fork(after_in_child=_pool.cache_clear)
