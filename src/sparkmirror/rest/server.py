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

from sparkmirror.connect.herding import Herding
from sparkmirror.connect.watching import Watching
from sparkmirror.errors import ConfigError
from sparkmirror.rest.application import Application
from sparkmirror.rest.connectors import connector_routes
from sparkmirror.rest.internal import internal_routes
from sparkmirror.rest.listener import Listener
from sparkmirror.rest.loggers import admin_routes
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.plugins import plugin_routes
from sparkmirror.rest.route import Route, Router
from sparkmirror.rest.serving import Serving, Site
from sparkmirror.rest.watching import watching_routes
from sparkmirror.rest.worker import worker_routes

log = logging.getLogger(__name__)

_LAST_MOMENTS_S = 1.0


def routes(herding: Herding) -> tuple[Route, ...]:
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
        herding: Herding,
        listeners: Sequence[Listener],
        options: RestOptions,
        watching: Watching | None = None,
    ) -> None:
        """With `watching`, what Connect's API does not have is served too."""
        self._herding = herding
        self._watching = watching
        self._listeners = tuple(listeners)
        self._options = options
        self._sites: list[Site] = []
        self._addresses: list[str] = []
        self._serving: Serving | None = None
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
        options, admin = self._options, admin_routes(self._herding)
        public = (*routes(self._herding), *internal_routes(options.flows))
        if self._watching is not None:
            public = (*public, *watching_routes(self._herding, self._watching))
        if options.admin_listeners is None:
            public = (*public, *admin)
        try:
            self._prepare(self._listeners, public, options.tls, decorated=True)
            self._prepare(options.admin_listeners or (), admin, options.admin_tls, decorated=False)
        except ConfigError:
            for site in self._sites:
                site.bound.close()
            raise
        self._serve()

    def stop(self, within_s: float) -> None:
        """Take no more requests, let those under way be answered within this time, and end."""
        if self._serving is None or self._thread is None:
            return
        self._serving.stop(within_s)
        self._thread.join(within_s + _LAST_MOMENTS_S)
        log.info("REST server stopped")

    def _prepare(
        self,
        listeners: Sequence[Listener],
        served: Sequence[Route],
        tls: ssl.SSLContext | None,
        *,
        decorated: bool,
    ) -> None:
        application = Application(Router(served), self._options, decorated=decorated)
        for listener in listeners:
            secured = listener.protocol == "https"
            if secured and tls is None:
                key = "listeners.https.ssl.keystore.location"
                raise ConfigError.of("listeners", f"listener {listener} needs a key: set {key}")
            bound = listener.bind()
            site = Site(bound=bound, application=application, tls=tls if secured else None)
            self._sites.append(site)
            self._addresses.append(_address(listener, bound.getsockname()[1]))

    def _serve(self) -> None:
        self._serving = serving = Serving(self._sites, self._options.limits)
        ready = threading.Event()

        def run() -> None:
            try:
                serving.run(ready.set)
            finally:
                ready.set()  # whoever waits must not wait for a thread that has failed

        self._thread = threading.Thread(target=run, name="rest-server", daemon=True)
        self._thread.start()
        ready.wait()


def _address(listener: Listener, port: int) -> str:
    host = listener.host or "localhost"
    return str(Listener(protocol=listener.protocol, host=host, port=port))
