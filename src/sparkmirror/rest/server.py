"""The REST server: what is served where, in a thread of its own.

    listeners         /, /health, /connectors, /connector-plugins, and /admin unless it has its own
    admin listeners   /admin

`start` returns when every address is taken and listened to; whether the worker is ready is the
worker's to say (`/health`).
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Sequence

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.connect.herder.monitoring import MirrorMonitor
from sparkmirror.errors import ConfigError
from sparkmirror.rest.http.application import RestApplication
from sparkmirror.rest.http.http_server import BoundListener, HttpServer
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.router import RestRouter, Route
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.routes.admin_routes import admin_routes
from sparkmirror.rest.routes.connector_routes import connector_routes
from sparkmirror.rest.routes.internal_routes import internal_routes
from sparkmirror.rest.routes.monitoring_routes import monitoring_routes
from sparkmirror.rest.routes.plugin_routes import plugin_routes
from sparkmirror.rest.routes.worker_routes import worker_routes

log = logging.getLogger(__name__)

_JOIN_GRACE_S = 1.0


def public_routes(herding: Herder) -> tuple[Route, ...]:
    """Make every public route but /admin, for one herding."""
    return (
        *worker_routes(herding),
        *connector_routes(herding),
        *plugin_routes(herding),
    )


class RestServer:
    """Serves one herding. Started once, stopped once."""

    def __init__(
        self,
        herding: Herder,
        listeners: Sequence[RestListener],
        options: RestOptions,
        watching: MirrorMonitor | None = None,
    ) -> None:
        """With `watching`, what Connect's API does not have is served too."""
        self._herder = herding
        self._monitoring = watching
        self._listeners = tuple(listeners)
        self._options = options
        self._bound_listeners: list[BoundListener] = []
        self._addresses: list[str] = []
        self._http_server: HttpServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it listens, admin listeners last, with the ports that the system chose."""
        return tuple(self._addresses)

    @property
    def address(self) -> str:
        """Where it listens first of all."""
        return self._addresses[0]

    def start(self) -> None:
        """Take every address and begin to answer. ConfigError if one cannot be had."""
        options, admin = self._options, admin_routes(self._herder)
        public = (*public_routes(self._herder), *internal_routes(options.flows))
        if self._monitoring is not None:
            public = (*public, *monitoring_routes(self._herder, self._monitoring))
        if options.admin_listeners is None:
            public = (*public, *admin)
        try:
            self._bind(self._listeners, public, options.tls, decorated=True)
            self._bind(options.admin_listeners or (), admin, options.admin_tls, decorated=False)
        except ConfigError:
            for site in self._bound_listeners:
                site.listening_socket.close()
            raise
        self._start_thread()

    def stop(self, within_s: float) -> None:
        """Take no more requests, let those under way be answered within this time, and end."""
        if self._http_server is None or self._thread is None:
            return
        self._http_server.stop(within_s)
        self._thread.join(within_s + _JOIN_GRACE_S)
        log.info("REST server stopped")

    def _bind(
        self,
        listeners: Sequence[RestListener],
        served: Sequence[Route],
        tls: ssl.SSLContext | None,
        *,
        decorated: bool,
    ) -> None:
        application = RestApplication(RestRouter(served), self._options, decorated=decorated)
        for listener in listeners:
            secured = listener.protocol == "https"
            if secured and tls is None:
                key = "listeners.https.ssl.keystore.location"
                raise ConfigError.of("listeners", f"listener {listener} needs a key: set {key}")
            bound = listener.bind()
            site = BoundListener(
                listening_socket=bound, application=application, tls=tls if secured else None
            )
            self._bound_listeners.append(site)
            self._addresses.append(_address(listener, bound.getsockname()[1]))

    def _start_thread(self) -> None:
        self._http_server = serving = HttpServer(self._bound_listeners, self._options.limits)
        ready = threading.Event()

        def run() -> None:
            try:
                serving.run(ready.set)
            finally:
                ready.set()  # whoever waits must not wait for a thread that has failed

        self._thread = threading.Thread(target=run, name="rest-server", daemon=True)
        self._thread.start()
        ready.wait()


def _address(listener: RestListener, port: int) -> str:
    host = listener.host or "localhost"
    return str(RestListener(protocol=listener.protocol, host=host, port=port))
