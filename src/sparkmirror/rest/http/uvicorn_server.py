"""One `uvicorn.Server` per bound listener, all on the event loop of one thread."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from uvicorn import Config, Server

from sparkmirror.rest.http.application import RestApplication
from sparkmirror.rest.http.uvicorn_h11_protocol import connection_class
from sparkmirror.rest.server_options import RestLimits

_STARTED_POLL_S = 0.01
_CANCEL_TIMEOUT_S = 0.5
"""How long a cancelled request may take to send its 503."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listening socket and the application that answers on it."""

    listening_socket: socket.socket
    application: RestApplication
    tls: ssl.SSLContext | None


class UvicornServer:
    """Serves bound listeners in the thread that calls `run`, until another thread calls `stop`."""

    def __init__(self, listeners: Iterable[BoundListener], limits: RestLimits) -> None:
        self._servers = [
            (_ListenerServer(_uvicorn_config(listener, limits)), listener.listening_socket)
            for listener in listeners
        ]

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until `stop`. Calls `on_ready` once every listener accepts connections.

        If one listener fails, all end and its error is raised. Closes the listening sockets.
        """
        try:
            asyncio.run(self._serve(on_ready))
        finally:
            for _, listening_socket in self._servers:
                listening_socket.close()

    def stop(self, timeout_s: float) -> None:
        """Make `run` end. Does not block; any thread may call it.

        Listeners accept no more connections. Requests in progress get `timeout_s`, in whole seconds
        rounded up; then they are answered with 503.
        """
        for server, _ in self._servers:
            server.config.timeout_graceful_shutdown = math.ceil(timeout_s)
            server.should_exit = True

    async def _serve(self, on_ready: Callable[[], None]) -> None:
        try:
            async with asyncio.TaskGroup() as serving:
                for server, listening_socket in self._servers:
                    serving.create_task(server.serve(sockets=[listening_socket]))
                while not all(server.started for server, _ in self._servers):
                    await asyncio.sleep(_STARTED_POLL_S)
                on_ready()
        finally:
            for server, _ in self._servers:
                server.close()


class _ListenerServer(Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers: signals belong to the worker."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # uvicorn cancels late requests and returns. Wait until each has sent its 503.
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_CANCEL_TIMEOUT_S)
        self.close()

    def close(self) -> None:
        """Stop listening and abort every connection. May be called again."""
        for server in self.servers if self.started else ():
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _uvicorn_config(listener: BoundListener, limits: RestLimits) -> Config:
    tls = listener.tls
    return Config(
        listener.application,
        http=connection_class(limits.headers_timeout_s),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=limits.keep_alive_s,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )
