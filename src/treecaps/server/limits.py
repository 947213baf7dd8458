"""What a server takes on, and how it refuses more."""

import os
from dataclasses import dataclass, field

from treecaps.errors import Failure


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes on.

    Args:
        max_bytes: The largest body of a request.
        max_nodes: The largest tree of a program.
        seconds: How long a request may take, from its first byte to its answer.
        waiting: How many requests may be under way; more are refused.
        batch: How many programs the network looks at together, at most.
        workers: How many processes parse.
    """

    max_bytes: int = 1_000_000
    max_nodes: int = 100_000
    seconds: float = 30.0
    waiting: int = 1000
    batch: int = 32
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)


class RefusedError(Exception):
    """A request that gets an error for its answer.

    Args:
        status: The status of the answer.
        code: One word for programs.
        message: One line for people.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def to_dict(self) -> dict[str, dict[str, str]]:
        """Return plain values for JSON; all errors of the server have this form."""
        return {"error": {"code": self.code, "message": self.message}}


_STATUS = {"too-large": 413, "too-many-nodes": 413, "timeout": 503}


def refuse(failure: Failure) -> RefusedError:
    """Make a refusal of what is wrong with a program."""
    return RefusedError(_STATUS.get(failure.code, 422), failure.code, failure.message)
