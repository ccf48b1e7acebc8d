"""An HTTP client for the REST server. It adds no header and follows no redirect."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from sparkmirror.connect.herder.herder import Herder
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions

JSON_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestResponse:
    """One response."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case; the last of a name wins."""
    content: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.content)

    @property
    def message(self) -> str:
        """The message of an error body. Its error code must be the status."""
        body = self.json
        assert list(body) == ["error_code", "message"]
        assert body["error_code"] == self.status
        return str(body["message"])


class RestClient:
    """One connection, kept open between requests."""

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

    def request(
        self,
        method: str,
        path: str,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RestResponse:
        """Send a request and return the response."""
        data = body.encode("utf-8") if isinstance(body, str) else body
        self._connection.request(method, path, data, dict(headers or {}))
        response = self._connection.getresponse()
        return RestResponse(
            status=response.status,
            headers={name.lower(): value for name, value in response.getheaders()},
            content=response.read(),
        )

    def send_json(self, method: str, path: str, value: Any) -> RestResponse:
        """Send JSON."""
        return self.request(method, path, json.dumps(value), JSON_HEADERS)

    @property
    def local_port(self) -> int:
        """The local port of the connection."""
        return int(self._connection.sock.getsockname()[1])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def request_once(
    address: str,
    method: str,
    path: str,
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> RestResponse:
    """Send one request on a new connection."""
    client = RestClient(address, tls)
    try:
        return client.request(method, path, headers=headers)
    finally:
        client.close()


@contextmanager
def running_rest_server(
    herder: Herder, options: RestOptions | None = None, listener: str = "http://127.0.0.1:0"
) -> Iterator[RestServer]:
    """A server for a herder, on a free port, until the end of the block."""
    server = RestServer(
        herder, [RestListener.parse(listener)], options or RestOptions(access_log=False)
    )
    server.start()
    try:
        yield server
    finally:
        server.stop(1.0)


@contextmanager
def running_rest_client(herder: Herder, options: RestOptions | None = None) -> Iterator[RestClient]:
    """A server for a herder, and a client of it."""
    with running_rest_server(herder, options) as server:
        client = RestClient(server.address)
        try:
            yield client
        finally:
            client.close()


@contextmanager
def server_that_answers(answer: bytes) -> Iterator[str]:
    """A server that reads once, answers with these bytes, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(50)
