"""What several processes of one command print."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from treecaps.errors import TreeCapsError

if TYPE_CHECKING:
    from treecaps.training.processes import Processes

log = logging.getLogger("treecaps")


@contextmanager
def one_speaks(processes: "Processes") -> Iterator[None]:
    """Let only the first of several processes print, and only one of a machine tell of an error.

    When one fails, ``torchrun`` ends the others by SIGTERM, which is an error here like any other.
    """
    if processes.size == 1:
        yield
        return
    from treecaps.training.processes import lost_process

    owner = os.getpid()

    def end(*_: Any) -> None:
        if os.getpid() != owner:  # a process that parses
            os._exit(1)
        raise lost_process()

    before = signal.signal(signal.SIGTERM, end)
    try:
        with ExitStack() as stack:
            if not processes.is_first:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(redirect_stdout(nowhere))
                stack.enter_context(redirect_stderr(nowhere))
                stack.callback(log.setLevel, log.level)
                log.setLevel(logging.CRITICAL)
            yield
    except TreeCapsError:
        if not processes.is_to_tell():
            raise SystemExit(2) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
