"""An HTTP client for the REST server: says exactly what it is told to, and shows the answer."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from sparkmirror.connect.herding import Herding
from sparkmirror.rest.listener import Listener
from sparkmirror.rest.options import RestOptions
from sparkmirror.rest.server import RestServer

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case; the last of a name counts."""
    content: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.content)

    @property
    def message(self) -> str:
        """The words of an error; its code must be the status."""
        body = self.json
        assert list(body) == ["error_code", "message"]
        assert body["error_code"] == self.status
        return str(body["message"])


class Client:
    """One connection, kept for one request after the other."""

    def __init__(
        self, address: str, tls: ssl.SSLContext | None = None, timeout_s: float = 50
    ) -> None:
        self.address = address
        parts = urlsplit(address)
        assert parts.hostname is not None
        self._connection = (
            HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
            if tls is None
            else HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=tls)
        )

    def ask(
        self,
        method: str,
        path: str,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and read its answer."""
        data = body.encode("utf-8") if isinstance(body, str) else body
        self._connection.request(method, path, data, dict(headers or {}))
        response = self._connection.getresponse()
        return Answer(
            status=response.status,
            headers={name.lower(): value for name, value in response.getheaders()},
            content=response.read(),
        )

    def send(self, method: str, path: str, value: Any) -> Answer:
        """Send JSON."""
        return self.ask(method, path, json.dumps(value), JSON)

    @property
    def port(self) -> int:
        """Our own end of the connection."""
        return int(self._connection.sock.getsockname()[1])

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def ask_once(address: str, method: str, path: str, tls: ssl.SSLContext | None = None) -> Answer:
    """Send one request on a connection of its own."""
    client = Client(address, tls)
    try:
        return client.ask(method, path)
    finally:
        client.close()


@contextmanager
def served(
    herding: Herding, options: RestOptions | None = None, listener: str = "http://127.0.0.1:0"
) -> Iterator[RestServer]:
    """Serve a herding on a port of the system's choice for as long as the block lasts."""
    server = RestServer(
        herding, [Listener.parse(listener)], options or RestOptions(access_log=False)
    )
    server.start()
    try:
        yield server
    finally:
        server.stop(1.0)


@contextmanager
def client_of(herding: Herding, options: RestOptions | None = None) -> Iterator[Client]:
    """Serve a herding and call it."""
    with served(herding, options) as server:
        client = Client(server.address)
        try:
            yield client
        finally:
            client.close()
