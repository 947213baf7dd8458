"""A batch shared by several processes: each runs the network on its part, all see what comes out.

So a loss is computed of the whole batch, whatever it is a mean of and whichever programs it
compares, and a task need not know that there are several processes. Nor need it know in which
precision the network computes: what comes out is float32.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from treecaps.models.network import Model
from treecaps.nn.dropout import Dropout
from treecaps.training.processes import Processes


@dataclass(frozen=True)
class Part:
    """The part of a batch that is for this process.

    Args:
        batch: Some of the programs, as a network takes them.
        programs: How many the whole batch has.
        spare: Whether none is left for this process, so what it computes of one does not count.
    """

    batch: Any
    programs: int
    spare: bool

    def __len__(self) -> int:
        return self.programs


class DataParallel:
    """A model that takes a ``Part`` and returns the outputs for the whole batch.

    That goes for every method that takes a batch first. All else is that of the model.

    Args:
        model: The model.
        processes: The processes.
        bf16: Whether it multiplies matrices in bfloat16 while it learns.
    """

    def __init__(self, model: Model, processes: Processes, *, bf16: bool = False) -> None:
        self._model, self._processes, self._bf16 = model, processes, bf16

    @property  # type: ignore[misc]
    def __class__(self) -> type[Model]:  # type: ignore[override]
        """What tasks ask for that train certain models only."""
        return type(self._model)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        return self._gathering(found) if inspect.ismethod(found) else found

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run the forward pass."""
        return self._gathering(self._model)(*arguments, **options)

    def _gathering(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that computes with a part what ``method`` does with the batch."""

        def call(*arguments: Any, **options: Any) -> Any:
            if not (arguments and isinstance(arguments[0], Part)):
                return method(*arguments, **options)
            part, *others = arguments
            with self._shared_draws(), self._autocast():
                found = method(part.batch, *others, **options)
            tensors = [
                one.float() if one.dtype == torch.bfloat16 else one for one in _tensors_of(found)
            ]
            if self._processes.size > 1:
                cut = [one[:0] if part.spare else one for one in tensors]
                tensors = self._processes.gather(cut)
            return _with_tensors(found, tensors)

        return call

    def _autocast(self) -> torch.autocast:
        """Let PyTorch choose what it computes in bfloat16; weights stay float32."""
        device = next(self._model.parameters()).device.type
        return torch.autocast(device, torch.bfloat16, enabled=self._bf16 and self._model.training)

    @contextmanager
    def _shared_draws(self) -> Iterator[None]:
        """Let dropout draw for the whole batch."""
        layers = []
        if self._processes.size > 1:
            layers = [layer for layer in self._model.modules() if isinstance(layer, Dropout)]
        for layer in layers:
            layer.place = lambda rows: self._processes.place_rows([rows])[0]
        try:
            yield
        finally:
            for layer in layers:
                layer.place = None


def _tensors_of(found: Any) -> Iterator[Tensor]:
    """Yield the tensors of an output: itself, those of a tuple, or those of a dataclass."""
    if isinstance(found, torch.Tensor):
        yield found
        return
    for part in vars(found).values() if is_dataclass(found) else found:
        if part is not None:
            yield part


def _with_tensors(found: Any, tensors: Sequence[Tensor]) -> Any:
    """Return an output with other tensors in place of its own."""
    left = iter(tensors)
    if isinstance(found, torch.Tensor):
        return next(left)
    if is_dataclass(found) and not isinstance(found, type):
        names = [name for name, part in vars(found).items() if part is not None]
        return replace(found, **dict(zip(names, left, strict=True)))
    return type(found)(*(part if part is None else next(left) for part in found))
