"""An HTTP client of workers: one connection per request, http or https, one try.

Between workers https uses the stores of the worker's own listeners: its trust store decides which
workers it trusts, its key store identifies it where a listener asks for a certificate. The command
line has no stores: it trusts the authorities of the system.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sparkmirror.errors import ConfigError, RequestFailed
from sparkmirror.security.tls.reloading_ssl_context import ReloadingSslContext, client_ssl_factory
from sparkmirror.security.tls.ssl_config import SslConfig

CONNECT_TIMEOUT_S = 3.0
MAX_RESPONSE_BYTES = 64 * 1024 * 1024


class WorkerUnreachable(RequestFailed):
    """No connection to a worker: it has not received the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResponse:
    """The answer of a worker."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    """By name in lower case; the last of a name."""
    content: bytes = field(repr=False)


class RestClient:
    """Sends requests to workers. Any thread may call it."""

    def __init__(self, ssl_config: SslConfig | None = None) -> None:
        """`ssl_config` has the stores of this worker's own https listeners, if it has any.

        The first request with https reads the stores.
        """
        self._ssl_config = ssl_config
        self._lock = threading.Lock()
        self._tls: ReloadingSslContext | None = None

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_s: float,
    ) -> WorkerResponse:
        """Send a request and return the whole response, whatever its status.

        `timeout_s` limits each wait for the worker. Raises WorkerUnreachable if the worker cannot
        have received the request, else RequestFailed.
        """
        worker, target = _split(url)
        connection = self._connect(worker, timeout_s)
        try:
            connection.request(method, target, body or None, dict(headers))
            response = connection.getresponse()
            content = response.read(MAX_RESPONSE_BYTES + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RequestFailed(
                f"the worker at {worker} did not answer {method} {target}: {_text(error)}"
            ) from error
        finally:
            connection.close()
        if len(content) > MAX_RESPONSE_BYTES:
            raise RequestFailed(
                f"the worker at {worker} answered {method} {target} with too many bytes"
            )
        found = {name.lower(): value for name, value in response.getheaders()}
        return WorkerResponse(status=response.status, headers=found, content=content)

    def _connect(self, worker: str, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(worker)
        host, connect_s = parts.hostname or "", min(CONNECT_TIMEOUT_S, timeout_s)
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, parts.port, timeout=connect_s, context=self._tls_context()
            )
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=connect_s)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise WorkerUnreachable(f"no connection to {worker}: {_text(error)}") from error
        connection.sock.settimeout(timeout_s)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _tls_context(self) -> ssl.SSLContext | None:
        """Return the context of the next connection; None: the system's authorities."""
        if self._ssl_config is None:
            return None
        with self._lock:
            if self._tls is None:
                try:
                    self._tls = client_ssl_factory(self._ssl_config)
                except ConfigError as error:
                    raise RequestFailed(f"no request to a worker with https: {error}") from error
        return self._tls.current()


def _split(url: str) -> tuple[str, str]:
    """Return the worker's own URL, and the path with the query."""
    parts = urlsplit(url)
    target = parts.path or "/"
    return f"{parts.scheme}://{parts.netloc}", f"{target}?{parts.query}" if parts.query else target


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
