"""What stands before the application: limits, security headers and metrics for every request."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treecaps.server.limits import Limits, RefusedError
from treecaps.server.metrics import Metrics

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        b" img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)
MAX_HEAD = 16_384
"""How many bytes the first line and the headers of a request may have."""
_GONE = 499


class LimitsMiddleware:
    """Lets requests through to an application as far as the limits allow.

    Args:
        app: The application.
        limits: What is taken on.
        metrics: Is told of every request.
        paths: The paths that metrics are kept of; others share one name.
        hosts: The names that requests may call the server by; ``None`` for any. A page from
            elsewhere can lead a name of its own to a loopback address, and would read the answers.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        paths: Iterable[str],
        hosts: frozenset[str] | None,
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._paths, self._hosts = frozenset(paths), hosts
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = perf_counter()
        answer = _Answer(send)
        try:
            _check_head(scope)
            self._check_host(scope)
            if scope["method"] == "POST":
                await self._post(scope, receive, answer)
            else:
                if scope["method"] == "HEAD":  # uvicorn leaves the body out
                    scope = {**scope, "method": "GET"}
                await self._app(scope, receive, answer.send)
        except RefusedError as refusal:
            await answer.refuse(refusal)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.requests.labels(path, str(answer.status)).inc()
            self._metrics.seconds.labels(path).observe(perf_counter() - begun)

    def _check_host(self, scope: Scope) -> None:
        name = _header(scope, b"host").decode("latin-1").lower()
        host = name.rpartition(":")[0] if not name.endswith("]") and ":" in name else name
        if self._hosts is not None and host not in self._hosts:
            raise RefusedError(
                421, "host", "this server answers on loopback only; to others with --host"
            )

    async def _post(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Take the whole body, then let the application answer while the client stays there."""
        limits = self._limits
        if self._under_way >= limits.waiting:
            raise RefusedError(
                429,
                "busy",
                f"{self._under_way:,} requests are under way, and this server takes"
                f" {limits.waiting:,} at a time (--waiting): try again in a moment",
            )
        self._enter(1)
        try:
            deadline = asyncio.get_running_loop().time() + limits.seconds
            try:
                async with asyncio.timeout_at(deadline):
                    body = await self._read(scope, receive, answer)
            except TimeoutError:
                raise RefusedError(
                    408, "timeout", f"the request took longer than {limits.seconds:g} s to arrive"
                ) from None
            if body is not None:
                await self._run(scope, receive, answer, body, deadline)
        finally:
            self._enter(-1)

    def _enter(self, change: int) -> None:
        self._under_way += change
        self._metrics.under_way.set(self._under_way)

    async def _read(self, scope: Scope, receive: Receive, answer: "_Answer") -> bytes | None:
        """Read a body, or return nothing if it is too large or the client hangs up."""
        most = self._limits.max_bytes
        told = _header(scope, b"content-length")
        body = bytearray()
        if not told.isdigit() or int(told) <= most:
            while len(body) <= most:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
            if len(body) <= most:
                return bytes(body)
        refusal = RefusedError(
            413,
            "too-large",
            f"the request is larger than the {most / 1e6:g} MB that this server takes (--max-mb)",
        )
        # Many clients send all before they listen. What still comes is thrown away, piece by
        # piece: closing the connection would throw away the answer.
        waits = _header(scope, b"expect")
        await answer.refuse(refusal, None if waits else partial(_ended, receive))
        return None

    async def _run(
        self, scope: Scope, receive: Receive, answer: "_Answer", body: bytes, deadline: float
    ) -> None:
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return parts.pop() if parts else await asyncio.Future()

        answering = asyncio.ensure_future(self._app(scope, replay, answer.send))
        leaving = asyncio.ensure_future(_leave(receive))
        try:
            left = deadline - asyncio.get_running_loop().time()
            await asyncio.wait((answering, leaving), timeout=left, return_when="FIRST_COMPLETED")
        finally:
            leaving.cancel()
            unfinished = not answering.done()
            # What waits for its turn is given up; nobody would hear the answer.
            answering.cancel()
        if unfinished:
            with suppress(asyncio.CancelledError):
                await answering
            if not leaving.done() or leaving.cancelled():
                raise RefusedError(
                    503,
                    "timeout",
                    f"no answer within {self._limits.seconds:g} s (--seconds): try again later,"
                    " or with a smaller program",
                )
        else:
            answering.result()


class _Answer:
    """An answer on its way out: gets headers, and remembers its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = _GONE

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await self._send(message)

    async def refuse(
        self, refusal: RefusedError, then: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Send a refusal, and wait for something else before the connection may end."""
        if self.status != _GONE:  # the answer has begun, and cannot be another
            return
        headers, body = encode(refusal)
        await self.send(
            {"type": "http.response.start", "status": refusal.status, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body, "more_body": bool(then)})
        if then:
            try:
                await then()
            finally:
                await self.send({"type": "http.response.body", "body": b""})


def encode(refusal: RefusedError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and the body of a refusal."""
    body = json.dumps(refusal.to_dict()).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    return headers, body


def refuse_head() -> RefusedError:
    """Make a refusal of a head that is too large."""
    said = f"the head of the request is larger than the {MAX_HEAD:,} bytes that this server takes"
    return RefusedError(431, "too-large", said)


def _check_head(scope: Scope) -> None:
    # The parser only counts what has come of a head that is incomplete.
    size = len(scope["raw_path"]) + len(scope["query_string"])
    if size + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MAX_HEAD:
        raise refuse_head()


async def _ended(receive: Receive) -> None:
    """Throw away what comes until nothing does."""
    while (await receive()).get("more_body", False):
        pass


async def _leave(receive: Receive) -> None:
    """Wait until the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")
