"""The REST server: binds the listeners and serves their routes in one thread.

    listeners           /, /health, /metrics, /connectors, /connector-plugins, /openapi.json; /admin
                        without admin listeners
    admin listeners     /admin
    metrics listeners   /, /metrics

`start` returns when every listener accepts connections. `/health` says whether the worker is ready.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Sequence

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.connect.herder.mirror_monitor_api import MirrorMonitor
from sparkmirror.errors import ConfigError
from sparkmirror.rest.authentication import bearer_tokens
from sparkmirror.rest.authentication.authenticator import Authenticator
from sparkmirror.rest.http.application import RestApplication
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.router import RestRouter, Route
from sparkmirror.rest.http.uvicorn_server import BoundListener, UvicornServer
from sparkmirror.rest.routes import metrics_routes
from sparkmirror.rest.routes.connector_routes import connector_routes
from sparkmirror.rest.routes.internal_routes import internal_routes
from sparkmirror.rest.routes.metrics_routes import metrics_listener_routes
from sparkmirror.rest.routes.openapi_routes import with_openapi_route
from sparkmirror.rest.routes.partition_event_and_group_routes import monitoring_routes
from sparkmirror.rest.routes.worker_routes import admin_routes, plugin_routes, worker_routes
from sparkmirror.rest.server_options import RestOptions

log = logging.getLogger(__name__)

_JOIN_GRACE_S = 2.0
"""For rounding the timeout up, and for the 503 of cancelled requests."""


class RestServer:
    """Serves the REST API of one herder. It is started once and stopped once.

    With a `monitor` it also serves the partitions and groups of mirrors.
    """

    def __init__(
        self,
        herder: Herder,
        listeners: Sequence[RestListener],
        options: RestOptions,
        monitor: MirrorMonitor | None = None,
    ) -> None:
        self._herder = herder
        self._monitor = monitor
        self._listeners = tuple(listeners)
        self._options = options
        self._bound_listeners: list[BoundListener] = []
        self._addresses: list[str] = []
        self._http_server: UvicornServer | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._failure: BaseException | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The URLs of the listeners, then of the admin and metrics listeners, with bound ports."""
        return tuple(self._addresses)

    @property
    def address(self) -> str:
        """The URL of the first listener."""
        return self._addresses[0]

    def start(self) -> None:
        """Bind every listener and start the thread. Blocks until all accept connections.

        Raises ConfigError if one cannot be bound, and the error of a thread that fails to start.
        Then every listener is closed.
        """
        options, admin = self._options, admin_routes(self._herder)
        public = self._public_routes()
        if options.admin_listeners is None:
            public = (*public, *admin)
        public = with_openapi_route(
            public, basic=options.users is not None, bearer=options.tokens is not None
        )
        try:
            self._bind(self._listeners, public, options.tls, adds_headers=True)
            self._bind(options.admin_listeners or (), admin, options.admin_tls, adds_headers=False)
            self._bind_metrics()
            self._start_thread()
            self._warn_of_open_listeners()
        except BaseException:
            for bound in self._bound_listeners:
                bound.listening_socket.close()
            raise

    def _bind_metrics(self) -> None:
        options, bound = self._options, len(self._addresses)
        if options.get_figures is None:
            return
        routes = metrics_listener_routes(options.get_figures)
        self._bind(options.metrics_listeners, routes, options.tls, adds_headers=False)
        for address in self._addresses[bound:]:
            log.info("Metrics are served at %s%s", address, metrics_routes.PATH)

    def _warn_of_open_listeners(self) -> None:
        options = self._options
        if Authenticator(options.users, options.tokens).is_required:
            return
        for listeners, tls in (
            (self._listeners, options.tls),
            (options.admin_listeners or (), options.admin_tls),
        ):
            for listener in listeners:
                if listener.is_on_all_interfaces and not _needs_certificate(listener, tls):
                    log.warning(
                        "REST API at %s is open: every client that reaches this computer may"
                        " change connectors and read their configs. Set %s or %s, or listen on"
                        " one address: listeners=http://127.0.0.1:%d",
                        listener,
                        "rest.extension.classes",
                        bearer_tokens.KEY,
                        listener.port,
                    )

    def stop(self, timeout_s: float) -> None:
        """Stop accepting requests and end the thread. Blocks until requests in progress end.

        A request that is still in progress after `timeout_s` is answered with 503.
        """
        if self._http_server is None or self._thread is None:
            return
        self._stopping = True
        self._http_server.stop(timeout_s)
        self._thread.join(timeout_s + _JOIN_GRACE_S)
        log.info("REST server stopped")

    def _public_routes(self) -> tuple[Route, ...]:
        herder, monitor, groups = self._herder, self._monitor, self._options.groups
        figures = self._options.get_figures
        return (
            *worker_routes(herder),
            *(() if figures is None else metrics_routes.metrics_routes(figures)),
            *connector_routes(herder),
            *plugin_routes(herder),
            *internal_routes(groups, monitor),
            *(() if monitor is None else monitoring_routes(herder, monitor, groups)),
        )

    def _bind(
        self,
        listeners: Sequence[RestListener],
        routes: Sequence[Route],
        tls: ssl.SSLContext | None,
        *,
        adds_headers: bool,
    ) -> None:
        application = RestApplication(RestRouter(routes), self._options, adds_headers=adds_headers)
        for listener in listeners:
            is_https = listener.protocol == "https"
            if is_https and tls is None:
                key = "listeners.https.ssl.keystore.location"
                raise ConfigError.of(listener.key, f"listener {listener} needs a key: set {key}")
            listening_socket = listener.bind()
            self._bound_listeners.append(
                BoundListener(
                    listening_socket=listening_socket,
                    application=application,
                    tls=tls if is_https else None,
                )
            )
            self._addresses.append(_address(listener, listening_socket.getsockname()[1]))

    def _start_thread(self) -> None:
        self._http_server = http_server = UvicornServer(self._bound_listeners, self._options.limits)
        ready = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(http_server, ready), name="rest-server", daemon=True
        )
        thread.start()
        self._thread = thread
        ready.wait()
        if self._failure is not None:
            raise self._failure

    def _run(self, http_server: UvicornServer, ready: threading.Event) -> None:
        try:
            http_server.run(ready.set)
        except BaseException as error:  # noqa: BLE001  `start` raises it, or it is logged only
            self._failure = error
        if self._failure is not None or not self._stopping:
            log.error(
                "REST server at %s ended unexpectedly. It answers no requests until the worker"
                " restarts",
                ", ".join(self._addresses),
                exc_info=self._failure,
            )
        ready.set()  # `start` must not wait for a thread that has failed


def _needs_certificate(listener: RestListener, tls: ssl.SSLContext | None) -> bool:
    return listener.protocol == "https" and tls is not None and tls.verify_mode is ssl.CERT_REQUIRED


def _address(listener: RestListener, port: int) -> str:
    host = listener.host or "localhost"
    return str(RestListener(protocol=listener.protocol, host=host, port=port))
