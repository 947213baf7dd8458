"""Layers that Numba compiles, where it is installed and works; elsewhere PyTorch computes them."""

from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

LARGEST_SIZE = 64
"""Of a capsule: loops over its numbers become straight code; larger ones take long to compile."""


@cache
def find_compiled(name: str) -> ModuleType | None:
    """Return a module that Numba compiles, or nothing where it is missing or does not work."""
    try:
        return import_module(f"treecaps.nn.{name}")
    except (ImportError, RuntimeError):
        return None


def is_plain(values: Tensor) -> bool:
    """Whether compiled code can take a tensor: its numbers are those of NumPy."""
    return values.device.type == "cpu" and values.dtype in {torch.float32, torch.float64}
