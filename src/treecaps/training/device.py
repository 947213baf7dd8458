"""Where a network trains."""

import torch

from treecaps.errors import UsageError
from treecaps.training.processes import ALONE, Processes


def check_device(name: str, processes: Processes = ALONE) -> torch.device:
    """Return the device of a name, or raise ``UsageError`` if this computer cannot use it.

    Args:
        name: As PyTorch names devices, or ``auto``: a GPU if there is one.
        processes: Those that train. Each gets a GPU of its own.
    """
    if name == "auto":
        name = _best()
    try:
        device = torch.device(name)
        if processes.size > 1:
            device = _own_device(device, processes)
        torch.zeros(1, device=device).item()
    # Torch has one exception for each way in which a device may be missing.
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"there is no device {name!r} to train on: {reason}", arguments=("device",)
        ) from None
    return device


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _own_device(device: torch.device, processes: Processes) -> torch.device:
    """Return the device for one of several processes."""
    if device.type == "cpu":
        return device
    if device.type != "cuda" or device.index is not None:
        raise UsageError(
            f"several processes cannot train on {str(device)!r}: choose 'cpu', or 'cuda', where"
            " each takes a GPU of its own",
            arguments=("device",),
        )
    gpus = torch.cuda.device_count()
    if 0 < gpus < processes.local_size:
        raise UsageError(
            f"{processes.local_size} processes need a GPU each, and this machine has {gpus}:"
            " start fewer, or choose 'cpu'",
            arguments=("device=cpu",),
        )
    return torch.device("cuda", processes.local_rank)
