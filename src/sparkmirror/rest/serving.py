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

from sparkmirror.rest.application import Application
from sparkmirror.rest.connection import Connection, connection_class
from sparkmirror.rest.options import Limits

_LAST_WORDS_S = 0.5
"""How long those who are cut off may take to be told so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is served on one socket."""

    bound: socket.socket
    application: Application
    tls: ssl.SSLContext | None


class Serving:
    """Serves some sites in the thread that calls `run`, until another one calls `stop`."""

    def __init__(self, sites: Iterable[Site], limits: Limits) -> None:
        self._sites = tuple(sites)
        self._limits = limits
        self._state = ServerState()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Future[float] | None = None

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve; `on_ready` is called once every socket is listened to."""
        asyncio.run(self._serve(on_ready))

    def stop(self, within_s: float) -> None:
        """Accept nothing more, let what is under way end within this time, then end. At once."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._heed, within_s)

    def _heed(self, within_s: float) -> None:
        assert self._stopping is not None
        if not self._stopping.done():
            self._stopping.set_result(within_s)

    async def _serve(self, on_ready: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = self._loop.create_future()
        listening = [await self._listen(site) for site in self._sites]
        on_ready()
        within_s = await self._stopping
        for each in listening:
            each.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._end_requests(within_s)
        for connection in list(self._state.connections):
            connection.transport.abort()

    async def _listen(self, site: Site) -> asyncio.Server:
        config = _config(site.application, self._limits)
        connection = connection_class(self._limits.headers_s)

        def accept() -> Connection:
            return connection(config, self._state, {})

        assert self._loop is not None
        return await self._loop.create_server(accept, sock=site.bound, ssl=site.tls)

    async def _end_requests(self, within_s: float) -> None:
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=within_s)
        for task in self._state.tasks:
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_LAST_WORDS_S)


def _config(application: Application, limits: Limits) -> Config:
    config = Config(
        application,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=limits.idle_s,
    )
    config.load()
    return config
