"""The event loop behind the server: accepts connections until it is told to stop.

uvicorn's connections do the HTTP; its own main loop is not used, because it looks for work ten
times a second and cannot be told how long stopping may take.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from uvicorn.config import Config
from uvicorn.server import ServerState

from sparkmirror.rest.http.application import RestApplication
from sparkmirror.rest.http.connection import HttpConnection, connection_class
from sparkmirror.rest.options import RestLimits

_CANCEL_TIMEOUT_S = 0.5
"""How long those who are cut off may take to be told so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """What is served on one socket."""

    listening_socket: socket.socket
    application: RestApplication
    tls: ssl.SSLContext | None


class HttpServer:
    """Serves some sites in the thread that calls `run`, until another one calls `stop`."""

    def __init__(self, sites: Iterable[BoundListener], limits: RestLimits) -> None:
        self._bound_listeners = tuple(sites)
        self._limits = limits
        self._state = ServerState()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Future[float] | None = None

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve; `on_ready` is called once every socket is listened to."""
        asyncio.run(self._serve(on_ready))

    def stop(self, within_s: float) -> None:
        """Accept nothing more, let what is under way end within this time, then end. At once."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._request_stop, within_s)

    def _request_stop(self, within_s: float) -> None:
        assert self._stop_requested is not None
        if not self._stop_requested.done():
            self._stop_requested.set_result(within_s)

    async def _serve(self, on_ready: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop_requested = self._loop.create_future()
        listening = [await self._listen(site) for site in self._bound_listeners]
        on_ready()
        within_s = await self._stop_requested
        for each in listening:
            each.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._finish_requests(within_s)
        for connection in list(self._state.connections):
            connection.transport.abort()

    async def _listen(self, site: BoundListener) -> asyncio.Server:
        config = _uvicorn_config(site.application, self._limits)
        connection = connection_class(self._limits.headers_timeout_s)

        def accept() -> HttpConnection:
            return connection(config, self._state, {})

        assert self._loop is not None
        return await self._loop.create_server(accept, sock=site.listening_socket, ssl=site.tls)

    async def _finish_requests(self, within_s: float) -> None:
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=within_s)
        for task in self._state.tasks:
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_CANCEL_TIMEOUT_S)


def _uvicorn_config(application: RestApplication, limits: RestLimits) -> Config:
    config = Config(
        application,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=limits.keep_alive_s,
    )
    config.load()
    return config
