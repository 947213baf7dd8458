"""Metrics for TensorBoard."""

import logging
from pathlib import Path
from typing import Any

from treecaps.errors import describe_os_error

log = logging.getLogger("treecaps")


class Logs:
    """Writes the metrics of a network's epochs into a folder, after those of its history."""

    def __init__(self, folder: Path, history: list[dict[str, Any]]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = None
        # A killed training may have logged an epoch that it did not keep.
        first = len(history) + 1 if history else None
        try:
            self._writer = SummaryWriter(str(folder), purge_step=first)
        except Exception as error:
            # Whatever it is (it cannot write names that are no UTF-8, for one), logs are a help;
            # what is learned goes on.
            log.warning("there will be no logs for TensorBoard: %s", _tell(error))

    def add(self, metrics: dict[str, Any]) -> None:
        """Write the metrics of one epoch."""
        if self._writer is None:
            return
        try:
            for name, value in metrics.items():
                if name != "epoch" and value is not None:
                    self._writer.add_scalar(name, value, metrics["epoch"])
            self._writer.flush()
        except Exception as error:
            log.warning("no more logs for TensorBoard: %s", _tell(error))
            self._writer = None

    def __enter__(self) -> "Logs":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An interrupt in the midst of an entry may leave the writer waiting for it for ever; what
        # there is of the file is whole up to the last epoch.
        if kind is None or issubclass(kind, Exception):
            self.close()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is None:
            return
        try:
            self._writer.close()
        except Exception as error:
            log.warning("the logs for TensorBoard are not whole: %s", _tell(error))


def _tell(error: Exception) -> str:
    return describe_os_error(error) if isinstance(error, OSError) else str(error)
