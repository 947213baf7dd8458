"""Starting a server, and ending it."""

import gc
import os
import signal
import socket
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from treecaps.errors import MissingExtraError, UsageError
from treecaps.server.limits import Limits

if TYPE_CHECKING:
    from treecaps.search.place import Place
    from treecaps.server.engine import Engine
    from treecaps.server.metrics import Metrics

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
_BACKLOG = 2048
_GRACE = 5.0
"""How much longer than a request may take the server waits for the last ones."""
_HEAD_SECONDS = 10.0
"""How long the head of a request may take; where requests must be shorter, it must be, too."""


def serve(
    model: str | Path,
    index: "Place | None",
    host: str,
    port: int,
    limits: Limits,
    ready: Callable[[str], None],
) -> None:
    """Serve until the process is told to end (SIGINT, SIGTERM), and finish what is under way.

    A process that is told so twice ends at once.

    Args:
        model: The folder of a trained model, or the name of a bundled one. It makes embeddings
            too, unless it is the default: then ``similar`` does, or the model of the index.
        index: What is searched.
        host: The address to listen on.
        port: The port; 0 for any that is free.
        limits: How much is taken on.
        ready: Is called with the server's address as soon as it answers.
    """
    _check_packages()
    with _listen(host, port) as listener:
        from treecaps.inference.embed import Embedder
        from treecaps.models.bundled import DEFAULT, SIMILAR
        from treecaps.models.engine import set_num_threads
        from treecaps.models.trained import load
        from treecaps.nn.memory import tune_malloc
        from treecaps.server.engine import Engine
        from treecaps.server.following import FollowedIndex
        from treecaps.server.metrics import Metrics

        set_num_threads(1)  # the other cores parse
        tune_malloc()
        loaded = load(model)
        followed = FollowedIndex(index) if index else None
        if followed:
            embedder = followed.embedder
        else:
            embedder = Embedder(SIMILAR if str(model) == DEFAULT else loaded)
        metrics = Metrics()
        engine = Engine(loaded, embedder, followed, limits, metrics)
        address = listener.getsockname()
        local = address[0] in ("127.0.0.1", "::1")
        server = _new_server(engine, metrics, limits, Path(model).name, local=local)
        engine.wait()
        _end_on_signals(server)
        gc.freeze()  # what is loaded stays, and need not be looked through again and again
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        ready(f"http://{shown}:{address[1]}")
        try:
            server.run([listener])
        finally:
            engine.close()


def _check_packages() -> None:
    # Only looked for: to import them takes long, and is done while other processes start.
    if not all(map(find_spec, ("uvicorn", "fastapi", "prometheus_client"))):
        raise MissingExtraError("the server", "serve")


def _new_server(
    engine: "Engine", metrics: "Metrics", limits: Limits, model: str, *, local: bool
) -> Any:
    """Return a server that does not listen yet; a local one refuses other host names."""
    from treecaps.server.app import create_app
    from treecaps.server.connections import Connection
    from treecaps.server.middleware import MAX_HEAD, LimitsMiddleware

    app = create_app(engine, metrics, model)
    paths = [path for route in app.routes if (path := getattr(route, "path", None))]
    hosts = _LOOPBACK if local else None
    uvicorn = import_module("uvicorn")
    config = uvicorn.Config(
        LimitsMiddleware(app, limits, metrics, paths, hosts),
        http=partial(Connection, seconds=max(1.0, min(_HEAD_SECONDS, limits.seconds))),
        h11_max_incomplete_event_size=MAX_HEAD,
        lifespan="off",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds + _GRACE),
    )
    return uvicorn.Server(config)


def _end_on_signals(server: Any) -> None:
    """Let the first signal end a server when it has finished, and a second one at once."""

    def end(number: int, _: FrameType | None) -> None:
        if server.should_exit:
            os._exit(128 + number)
        server.should_exit = True

    # uvicorn would hear only the first SIGTERM, and none while the engine closes.
    server.capture_signals = nullcontext
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _listen(host: str, port: int) -> socket.socket:
    try:
        ((family, _, _, _, address), *_) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # Listening at once, before the model is loaded, keeps others from the port.
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except socket.gaierror:
        raise UsageError(
            f"{host} is no address of this computer: choose another host", arguments=("host",)
        ) from None
    except OSError as error:
        said = os.strerror(error.errno).lower() if error.errno else str(error)
        raise UsageError(
            f"cannot serve on port {port} of {host}: {said}; choose another port",
            arguments=("port",),
        ) from None
    # Connections take this over: without it, the end of an answer waits 40 ms to be sent.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listener
