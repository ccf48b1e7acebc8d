"""When the certificates expire that this worker uses: of its listeners and of the clients of tasks.

A store is read again only when its file has changed. Any thread may call.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sparkmirror.errors import ConfigError
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.metrics.sparkmirror_metrics import CERTIFICATE_EXPIRY
from sparkmirror.security.tls.certificate_expiry import certificate_ends
from sparkmirror.security.tls.reloading_ssl_context import FileState, file_states
from sparkmirror.security.tls.ssl_config import SECURITY_PROTOCOL, SslConfig

log = logging.getLogger(__name__)

LISTENERS = "listeners"
"""What stands for the cluster where the certificates are those of the worker's own listeners."""

TlsUsers = Mapping[str, Mapping[str, str]]
"""The properties of clients or listeners with TLS, by the alias of the cluster."""


def uses_tls(properties: Mapping[str, str]) -> bool:
    """Whether a client with these properties uses TLS."""
    return "SSL" in properties.get(SECURITY_PROTOCOL, "").upper().split("_")


@dataclass(frozen=True, slots=True)
class _Known:
    properties: Mapping[str, str] = field(repr=False)
    files: tuple[FileState, ...]
    ends: Mapping[str, float]


class CertificateFigures:
    """Reads the stores of all clusters that the worker knows."""

    def __init__(
        self, get_clients: Callable[[], TlsUsers], listeners: SslConfig | None = None
    ) -> None:
        """`get_clients` returns the client properties of clusters, by alias."""
        self._get_clients = get_clients
        self._listeners = listeners
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def figures(self) -> Iterator[Figure]:
        """Yield the end of each store. A store that cannot be read has none."""
        with self._lock:
            found = {
                alias: self._ends_of_client(alias, properties)
                for alias, properties in self._get_clients().items()
                if uses_tls(properties)
            }
            if self._listeners is not None:
                found[LISTENERS] = self._ends(LISTENERS, {}, self._listeners)
        for alias, ends in found.items():
            for store, end_s in ends.items():
                labels = {"cluster": jmx_sanitize(alias), "store": store}
                yield Figure(definition=CERTIFICATE_EXPIRY, labels=labels, value=end_s)

    def _ends_of_client(self, alias: str, properties: Mapping[str, str]) -> Mapping[str, float]:
        try:
            config = SslConfig.from_properties(properties)
        except ConfigError:
            return {}  # the connector has failed with this error
        return self._ends(alias, properties, config)

    def _ends(
        self, alias: str, properties: Mapping[str, str], config: SslConfig
    ) -> Mapping[str, float]:
        files = file_states(config.store_locations)
        known = self._known.get(alias)
        if known is None or known.files != files or known.properties != properties:
            known = self._known[alias] = _Known(properties, files, _read(alias, config))
        return known.ends


def _read(alias: str, config: SslConfig) -> Mapping[str, float]:
    try:
        return certificate_ends(config)
    except ConfigError as error:
        log.warning(
            "Cluster %s: the expiry of its certificates is unknown and not in /metrics: %s",
            alias,
            error,
        )
        return {}
