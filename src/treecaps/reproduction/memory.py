"""How much memory this process takes, as far as the system tells."""

from contextlib import suppress
from pathlib import Path

from treecaps.nn.memory import give_back_memory

_STATUS = Path("/proc/self/status")


def forget_peak() -> float:
    """Let the peak of memory begin anew from what is in use, and return that in MB."""
    give_back_memory()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _read("VmRSS")


def peak() -> float:
    """Return the peak of memory since, in MB."""
    return _read("VmHWM")


def _read(name: str) -> float:
    try:
        return int(_STATUS.read_text().split(f"{name}:")[1].split()[0]) / 1024
    except (OSError, IndexError, ValueError):
        return 0.0
