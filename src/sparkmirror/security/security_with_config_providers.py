"""Security settings with values of config providers, which each connection reads again.

A password that has changed is used by the next connection, without a restart. While a provider
cannot be read, or gives what cannot be used, connections use the last good settings.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from sparkmirror.errors import ConfigError
from sparkmirror.security.client_security import ClientSecurity, SecuritySource
from sparkmirror.security.reloading_key_stores import ReloadingKeyStores

log = logging.getLogger(__name__)


class SecurityWithConfigProviders:
    """A SecuritySource. Equal properties give the same settings object. Thread-safe."""

    def __init__(
        self,
        cluster: str,
        read: Callable[[], Mapping[str, str]],
        build: Callable[[Mapping[str, str]], SecuritySource] = ReloadingKeyStores.from_properties,
    ) -> None:
        """`read` returns the properties of now, `build` their settings; both raise ConfigError."""
        self._cluster = cluster
        self._read = read
        self._build = build
        self._lock = threading.Lock()
        self._properties = dict(read())
        self._source = build(self._properties)
        self._problem = ""

    @property
    def protocol(self) -> str:
        """`security.protocol`."""
        return self._source.protocol

    def current(self) -> ClientSecurity:
        """Return the settings for the next connection; the last good ones if they fail."""
        with self._lock:
            try:
                self._reload()
            except ConfigError as error:
                self._warn(str(error))
            else:
                self._problem = ""
            source = self._source
        return source.current()

    def _reload(self) -> None:
        properties = dict(self._read())
        if properties != self._properties:
            self._source = self._build(properties)
            self._properties = properties
            log.info("%s: new connections use changed values of config providers", self._cluster)

    def _warn(self, problem: str) -> None:
        """Log a problem once, until it changes or ends."""
        if problem != self._problem:
            self._problem = problem
            log.warning(
                "%s: new connections use the security settings of before, because those of now"
                " cannot be used: %s",
                self._cluster, problem,
            )  # fmt: skip
