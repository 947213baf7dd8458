"""Processes that train one model together: ``torchrun`` starts them, gloo or NCCL connects them."""

import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from treecaps.errors import ProcessError
from treecaps.inputs.distinct import Longs

_STEP = timedelta(minutes=5)
"""How long a step may wait for the others: one that ends closes its connections and is known to be
gone at once, but a machine may vanish without."""
_WHILE = timedelta(days=7)
"""The same where the first process prepares data that the others wait for."""


@dataclass(frozen=True)
class Processes:
    """The processes of a training, and which of them this is. One alone waits for nobody.

    All must call the same methods in the same order, as in ``torch.distributed``.

    Args:
        rank: The number of this process.
        size: How many there are.
        local_rank: Its number among those of this machine.
        local_size: How many this machine has.
        patient: The group in which others are waited for longer.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    patient: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run a block in the first process of each machine, then in the others.

        These find what it left on disk.
        """
        if self.local_rank:
            self._wait()
        yield
        if not self.local_rank:
            self._wait()
        self._wait()

    def gather_values(self, value: Any) -> list[Any]:
        """Return what each process gave: values of JSON."""
        if self.size == 1:
            return [value]
        content = json.dumps(value).encode()
        sizes = self._counts([len(content)], self.patient)[:, 0].tolist()
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        padded[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        found = [torch.zeros_like(padded) for _ in sizes]
        with _noticing_loss():
            dist.all_gather(found, padded, group=self.patient)
        every = zip(found, sizes, strict=True)
        return [json.loads(one.numpy().tobytes()[:size]) for one, size in every]

    def take_over(self, content: bytes) -> bytes:
        """Return the bytes that the first process gave."""
        size = self._counts([len(content)], self.patient)[0, 0]
        held = torch.zeros(int(size), dtype=torch.uint8)
        if self.is_first:
            held = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        with _noticing_loss():
            dist.broadcast(held, 0, group=self.patient)
        return held.numpy().tobytes()

    def split(self, sizes: Longs) -> slice:
        """Return which of the programs of a batch are those of this process.

        All processes have about as much to compute. One that no program is left for reads the
        first, since it must take part in what all do; see ``Part``.

        Args:
            sizes: ``[B]``, how much there is to compute for each.
        """
        count = len(sizes)
        if self.size == 1:
            return slice(None)
        if count < self.size:
            begin = self.rank if self.rank < count else 0
            return slice(begin, begin + 1)
        middle = np.cumsum(sizes) - sizes / 2
        wanted = sizes.sum() * np.arange(self.size + 1) / self.size
        # Every process gets one program, whatever the sizes are.
        number = np.arange(self.size + 1)
        spare = np.maximum.accumulate(np.searchsorted(middle, wanted) - number)
        begin, end = (np.clip(spare, 0, count - self.size) + number)[self.rank :][:2].tolist()
        return slice(begin, end)

    def place_rows(self, counts: Sequence[int]) -> list[tuple[int, int]]:
        """Return where this process's rows begin among those of all, and how many these are.

        Args:
            counts: How many rows of each of several kinds this process has.
        """
        every = self._counts(counts)
        begins, ends = every[: self.rank].sum(0).tolist(), every.sum(0).tolist()
        return list(zip(begins, ends, strict=True))

    def gather(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors with the rows of all processes, ``[N, ...]`` each, with a gradient.

        What is computed of them, every process computes. ``average`` then finds the gradients of
        all weights, whether they come before or after.
        """
        places = self.place_rows([len(one) for one in tensors])
        found: list[Tensor] = [
            _Gather.apply(one, *place, self.size)  # type: ignore[no-untyped-call]
            for one, place in zip(tensors, places, strict=True)
        ]
        return found

    def average(self, gradients: Sequence[Tensor]) -> None:
        """Put the mean over all processes in place of each gradient."""
        if self.size == 1:
            return
        every = torch.cat([gradient.flatten() for gradient in gradients])
        with _noticing_loss():
            dist.all_reduce(every)
        every /= self.size
        sizes = [gradient.numel() for gradient in gradients]
        parts = every.split(sizes)  # type: ignore[no-untyped-call]
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def leave_to_first(self) -> None:
        """Wait until the first process has ended, where all end for the same reason.

        If another ended sooner, ``torchrun`` would end the first in the midst of its work.
        """
        if not self.is_first:
            self._wait()

    def is_to_tell(self) -> bool:
        """Whether this process is the first of its machine that has an error to tell of.

        The others end because of it, or have the same.
        """
        if self.size == 1:
            return True
        try:
            store = dist.distributed_c10d._get_default_store()
            return int(store.add(f"error/{platform.node()}", 1)) == 1
        except RuntimeError:  # what kept count is gone as well
            return True

    def _wait(self) -> None:
        """Wait until all processes are there."""
        if self.size > 1:
            self._counts([0], self.patient)

    def _counts(self, counts: Sequence[int], group: Any = None) -> Longs:
        """Return ``[processes, counts]``, some whole numbers of each process."""
        own = torch.tensor(counts, dtype=torch.int64)
        every = [torch.zeros_like(own) for _ in range(self.size)]
        with _noticing_loss():
            dist.all_gather(every, own, group=group)
        found: Longs = torch.stack(every).numpy()
        return found


ALONE = Processes()
_JOINED = ContextVar("joined", default=ALONE)


@contextmanager
def join() -> Iterator[Processes]:
    """Join the processes that ``torchrun`` started with this one, until the block ends.

    Within another such block, they are joined already.
    """
    if _JOINED.get() is not ALONE or not _is_one_of_several():
        yield _JOINED.get()
        return
    with _noticing_loss():
        if ours := not dist.is_initialized():
            gpus = torch.cuda.is_available() and dist.is_nccl_available()
            backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
            dist.init_process_group(backend, timeout=_STEP)
        patient = dist.new_group(backend="gloo", timeout=_WHILE)
    processes = Processes(
        dist.get_rank(),
        dist.get_world_size(),
        int(os.environ.get("LOCAL_RANK", "0")),
        int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        patient,
    )
    joined = _JOINED.set(processes)
    try:
        yield processes
    finally:
        _JOINED.reset(joined)
        with suppress(RuntimeError):
            dist.destroy_process_group(None if ours else patient)


def _is_one_of_several() -> bool:
    if not dist.is_available():
        return False
    if dist.is_initialized():
        return dist.get_world_size() > 1
    return bool(dist.is_torchelastic_launched()) and int(os.environ["WORLD_SIZE"]) > 1


@contextmanager
def _noticing_loss() -> Iterator[None]:
    """Turn what PyTorch says when a process is gone into an error for people."""
    try:
        yield
    except RuntimeError as error:
        raise lost_process() from error


def lost_process() -> ProcessError:
    """Return the error of a training that lost one of its processes."""
    return ProcessError(
        "another process of this training ended, or cannot be reached; go on with resume=True,"
        " with as many processes as you like",
        arguments=("resume",),
    )


class _Gather(torch.autograd.Function):
    """``Processes.gather`` of one tensor."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, begin: int, every: int, size: int) -> Tensor:
        ctx.begin, ctx.rows, ctx.size = begin, len(values), size
        # Processes have different numbers of rows, so each fills its own, and these are added.
        whole = values.new_zeros(every, *values.shape[1:])
        whole[begin : begin + len(values)] = values
        with _noticing_loss():
            dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # All have the same gradient here. The mean over processes will divide it by their number.
        own = gradients[0][ctx.begin : ctx.begin + ctx.rows]
        return ctx.size * own, None, None, None
