"""From NumPy arrays to tensors and back."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from treecaps.inputs.base import Input


class ToTensor:
    """Makes tensors of NumPy arrays, on a device.

    Args:
        device: Where they go; the CPU by default.
        dtype: What floating-point arrays become; whole numbers stay what they are.
    """

    def __init__(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.device, self.dtype = torch.device(device), dtype

    def __call__(self, array: NDArray[Any]) -> Tensor:
        """Return a tensor; on the CPU it shares the array's memory if the type stays."""
        # Under a default device of torch, `as_tensor` would go there.
        tensor = torch.from_numpy(array)
        return tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)


def to_tensors(inputs: Input, like: Tensor) -> Any:
    """Return what a forward pass takes, on the device and of the type of a weight."""
    return inputs.to_tensors(ToTensor(like.device, like.dtype))


def to_numpy(tensor: Tensor) -> NDArray[Any]:
    """Return the values of a tensor, from whatever device."""
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array
