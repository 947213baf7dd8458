"""Connections that do not wait for ever for a request."""

import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from treecaps.server.limits import RefusedError
from treecaps.server.middleware import HEADERS, encode, refuse_head


class Connection(H11Protocol):
    """A connection that ends if the head of a request is not there in time.

    uvicorn only ends one on which nothing comes after an answer. Others may be silent from the
    beginning, send a head byte by byte, or go on with a body that nobody reads.

    Args:
        seconds: How long a head may take, from the beginning or from the answer before.
        others: What uvicorn tells every connection.
    """

    def __init__(self, *, seconds: float, **others: Any) -> None:
        super().__init__(**others)
        self._seconds = seconds
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take what comes, and throw away what comes after an error."""
        if self.conn.their_state is not h11.ERROR:
            super().data_received(data)

    def handle_events(self) -> None:
        """Look at what has come; a head that is complete has met its deadline."""
        super().handle_events()
        if self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY):
            self._deadline.cancel()

    def on_response_complete(self) -> None:
        """Wait for the next head, which may be there already."""
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self._seconds, self._give_up)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._deadline.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or a head without end, in the form of all errors."""
        # uvicorn calls this while it handles the error, and passes on no more than its own words.
        if getattr(sys.exception(), "error_status_hint", 400) == 431:
            self._refuse(refuse_head())
        else:
            self._refuse(RefusedError(400, "invalid", "this is no HTTP request"))

    def _give_up(self) -> None:
        unread, _ = self.conn.trailing_data
        if unread and self.conn.our_state is h11.IDLE:
            said = f"the head of the request took longer than {self._seconds:g} s to arrive"
            self._refuse(RefusedError(408, "timeout", said))
        self.transport.close()

    def _refuse(self, refusal: RefusedError) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # else an answer has begun
            headers, body = encode(refusal)
            start = h11.Response(
                status_code=refusal.status,
                headers=[*headers, *HEADERS, (b"connection", b"close")],
                reason=HTTPStatus(refusal.status).phrase.encode(),
            )
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        if self._deadline.cancelled():
            self.transport.close()
        else:
            # Closing now would throw away the answer for who still sends.
            self.transport.write_eof()
