"""Work for the nodes of a Ray cluster, in the place of processes of this machine."""

import logging
import os
import pickle
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

import treecaps
from treecaps._version import __version__
from treecaps.errors import DataError, TreeCapsError, UsageError, describe_os_error, naming_extra
from treecaps.workers import NO_ITEM, Pending, Pool, WorkerLostError

if TYPE_CHECKING:
    import ray

Task = TypeVar("Task")
Result = TypeVar("Result")

LOCAL = "local"
"""The address of a cluster of this machine alone, which starts and ends with the work."""

_HOST_AND_PORT = re.compile(r"(?P<host>\[[\da-fA-F:.]+\]|[^\s/:\[\]]+):(?P<port>\d{1,5})")
_START = "start one with: ray start --head"
_ALONE = ("ray=local",)
_SETTINGS = b"\4"
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0" + _SETTINGS + b"\0\0\0\0\0"
"""How a connection of gRPC, which Ray speaks, begins; so does the answer, after three bytes."""
_SECONDS = 5.0
"""How long a cluster has to answer."""
_RETRIES = 3
"""How often Ray does a task again whose node or process has died."""
_PATIENCE = 30.0
"""After so many seconds without a result, people are told what is waited for."""
_RESIZE = 64
"""After so many tasks it is looked up whether the cluster has grown."""

log = logging.getLogger("treecaps")


class NodeWork(ABC, Generic[Task, Result]):
    """What does tasks in a process of a node."""

    @abstractmethod
    def do(self, task: Task) -> Result:
        """Do a task."""

    @abstractmethod
    def close(self) -> None:
        """End what was started for it."""


class RayCluster:
    """A Ray cluster, to be given as ``workers``.

    It is connected to when there is something to do. If ``ray.init`` was called before, that
    connection is used and stays open.

    Args:
        address: ``local`` for a cluster of this machine alone, ``auto`` for one that this machine
            is a node of, or the host and port of one's head; this machine must be a node of it.
        workers: How many processes a local cluster has; as many as there are cores by default.
    """

    def __init__(self, address: str = LOCAL, workers: int | None = None) -> None:
        check_address(address)
        if workers and address != LOCAL:
            raise UsageError(
                "a cluster that runs has the workers that it has; leave out their number",
                arguments=("workers",),
            )
        self.address, self._workers = address, workers
        self._connected = False

    def __enter__(self) -> "RayCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; one of this machine alone ends."""
        if self._connected:
            import ray

            ray.shutdown()
            self._connected = False

    def pool(self, start: Callable[[], NodeWork[Task, Result]]) -> "RayPool[Task, Result]":
        """Return a pool of the cluster's processes.

        Args:
            start: Called once in each of them; returns what does tasks there. It is sent with all
                that it refers to.
        """
        self._connect()
        return RayPool(start)

    def _connect(self) -> None:
        # These are read when Ray is imported: by default it reports to its makers, tries for
        # minutes to reach what is no cluster, and does for ever again what needs more memory than
        # a node has.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "2")
        os.environ.setdefault("RAY_task_oom_retries", str(_RETRIES))
        with naming_extra("a Ray cluster"):
            import ray
        if ray.is_initialized():
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        # Ray has the nodes import from the folder that the driver stands in, where programs of
        # strangers may be called like packages. This one is imported from anyway.
        with chdir(Path(treecaps.__file__).parent.parent):
            if self.address == LOCAL:
                cores = self._workers or os.cpu_count()
                ray.init(LOCAL, num_cpus=cores, include_dashboard=False, **quiet)
            else:
                _join(self.address, **quiet)
        self._connected = True


def _join(address: str, **options: Any) -> None:
    import ray

    _check_answers(address)
    try:
        ray.init(address, **options)
    except (Exception, SystemExit) as error:  # Ray ends the process of what fails late
        reason = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise UsageError(
            f"cannot join the Ray cluster at {address} ({reason}); this machine must be a node of"
            " it: ray start --address HOST:PORT",
            arguments=_ALONE,
        ) from None


def check_address(address: str) -> None:
    """Raise ``UsageError`` if an address is none of a cluster."""
    if address not in (LOCAL, "auto") and not _HOST_AND_PORT.fullmatch(address):
        raise UsageError(
            f"{address} is no address of a Ray cluster; give HOST:PORT, auto or local",
            arguments=_ALONE,
        )


def _check_answers(address: str) -> None:
    """Raise ``UsageError`` if nobody answers at an address."""
    if not (found := _HOST_AND_PORT.fullmatch(address)):
        return
    place = found["host"].strip("[]"), int(found["port"])
    try:
        with socket.create_connection(place, _SECONDS) as connection:
            connection.settimeout(_SECONDS)
            connection.sendall(_HELLO)
            answer = connection.recv(9)
        # Ray would wait for more than a minute. Encrypted, nobody else can tell who answers.
        if answer[3:4] == _SETTINGS or os.environ.get("RAY_USE_TLS") == "1":
            return
        reason = "something else answers there"
    except (OSError, OverflowError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else "there is no such port"
    raise UsageError(f"no Ray cluster answers at {address}: {reason}; {_START}", arguments=_ALONE)


class RayPool(Pool[Task, Result]):
    """Processes of a Ray cluster that do tasks.

    Ray sends a task to any node that has a core to spare, and to another one if that node dies.
    """

    def __init__(self, start: Callable[[], NodeWork[Task, Result]]) -> None:
        import ray

        self._do = ray.remote(max_retries=_RETRIES)(_do)
        self._run = uuid4().hex
        # In a list it is not sent again with each task.
        self._start = [ray.put(ray.cloudpickle.dumps(start))]  # type: ignore[no-untyped-call]
        self._submitted = self._cores = 0

    @property
    def size(self) -> int:
        """How many cores the cluster has; it may grow and shrink."""
        if not self._submitted % _RESIZE:
            import ray

            self._cores = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        return max(1, self._cores)

    def submit(self, task: Task) -> "Pending[Result]":
        """Have a process do a task."""
        self._submitted += 1
        return _Pending(self._do.remote(__version__, self._run, self._start, pickle.dumps(task)))

    def close(self) -> None:
        """Forget what was sent; processes end what they had for it when they are needed again."""
        self._start.clear()


class _Pending(Generic[Result]):
    """A task that was sent to a cluster."""

    def __init__(self, reference: "ray.ObjectRef[bytes]") -> None:
        self._reference = reference

    def result(self) -> Result:
        """Wait for the result; ``WorkerLostError`` if Ray has given up to get one."""
        import ray
        from ray import exceptions

        told = False
        while True:
            try:
                found: Result = pickle.loads(ray.get(self._reference, timeout=_PATIENCE))
            except exceptions.GetTimeoutError:
                if not told:
                    free = ray.available_resources().get("CPU", 0)  # type: ignore[no-untyped-call]
                    log.warning("waiting for the Ray cluster, which has %d cores free", free)
                told = True
            except exceptions.RayTaskError as error:
                raise _explain(error) from None
            except (
                exceptions.WorkerCrashedError,
                exceptions.NodeDiedError,
                exceptions.OutOfMemoryError,
                exceptions.ObjectLostError,
            ):
                raise WorkerLostError(NO_ITEM, timed_out=False) from None
            except exceptions.RayError as error:
                reason = str(error).strip().partition("\n")[0]
                raise DataError(f"the Ray cluster failed: {reason}; run it again") from None
            else:
                return found


def _explain(error: "ray.exceptions.RayTaskError") -> Exception:
    """Return what to tell people of an error in a node."""
    cause = error.cause
    if isinstance(cause, TreeCapsError):
        return cause
    if isinstance(cause, ImportError | AttributeError):
        return DataError(
            f"a node cannot do it ({cause}); install treecaps {__version__} on all nodes, with the"
            " extras that are installed here"
        )
    return error


_running: dict[str, NodeWork[Any, Any]] = {}
"""In a process of a node: what does the tasks of the run that it works for."""


def _do(version: str, run: str, start: "list[ray.ObjectRef[bytes]]", task: bytes) -> bytes:
    """Do a task in a process of a node.

    What a task and its result are is packed, so that a node with another version of treecaps says
    so before it reads anything, and so that results do not stay in the memory that Ray shares.
    """
    import ray

    try:
        if version != __version__:
            raise DataError(f"has treecaps {__version__}; install {version} there, as it is here")
        work = _running.get(run)
        if work is None:
            while _running:
                _running.popitem()[1].close()
            work = _running[run] = pickle.loads(ray.get(start[0]))()
        return pickle.dumps(work.do(pickle.loads(task)))
    except TreeCapsError as error:
        node = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        raise DataError(f"node {node}: {error}", arguments=error.arguments) from None


Workers = int | RayCluster
"""How many processes of this machine work, or the cluster that works instead."""
