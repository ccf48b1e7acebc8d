"""uvicorn's HTTP connection, with a timeout for headers and Connect's error body for bad requests.

Without the timeout a client that sends single bytes, or nothing, would hold its connection forever.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any, ClassVar

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from sparkmirror.rest.http.call import JSON, error_reply

log = logging.getLogger(__name__)

_uvicorn_log = logging.getLogger("uvicorn.error.connection")
_uvicorn_log.setLevel(logging.ERROR)  # it warns of bad requests without the client's address


class HttpConnection(H11Protocol):
    """A connection whose client must send the headers of a request in time."""

    headers_timeout_s: ClassVar[float]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _uvicorn_log
        self._headers_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        # asyncio does this only for sockets that were made with the protocol number. Without it
        # every response on a kept connection waits 40 ms for an acknowledgement.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._arm_headers_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._arm_headers_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_headers_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP. uvicorn calls this."""
        log.warning(
            "REST server: the client at %s sent bytes that are not HTTP, or headers that are too"
            " large. If it is a Kafka client, its bootstrap.servers names this REST port",
            self.client[0] if self.client else "an unknown address",
        )
        self._send_error(400, "The request is not valid HTTP, or its headers are too large")

    def _arm_headers_timer(self) -> None:
        # A response that does not need the body ends before the body does. uvicorn discards the
        # rest, and the timer limits how long.
        awaits_headers = self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE
        if not awaits_headers or self.transport.is_closing():
            self._cancel_headers_timer()
        elif self._headers_timer is None:
            self._headers_timer = self.loop.call_later(
                self.headers_timeout_s, self._on_headers_timeout
            )

    def _cancel_headers_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _on_headers_timeout(self) -> None:
        self._headers_timer = None
        self._send_error(
            408, f"The headers of the request did not arrive within {self.headers_timeout_s:g} s"
        )

    def _send_error(self, status: int, message: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = error_reply(status, message).content
            headers = [
                ("Content-Type", JSON),
                ("Content-Length", str(len(content))),
                ("Connection", "close"),
            ]
            self._send_event(h11.Response(status_code=status, headers=headers, reason=b""))
            self._send_event(h11.Data(data=content))
            self._send_event(h11.EndOfMessage())
        if self.cycle is not None:
            # A handler that still runs, or still reads the body, has no client to answer any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _send_event(self, event: h11.Event) -> None:
        self.transport.write(self.conn.send(event) or b"")


def connection_class(timeout_s: float) -> type[HttpConnection]:
    """Return a connection class with this timeout for headers."""

    class ConnectionWithTimeout(HttpConnection):
        headers_timeout_s = timeout_s

    return ConnectionWithTimeout
