"""One HTTP request as ASGI delivers it, and the ASGI messages of its response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class ClientDisconnected(Exception):
    """The client closed the connection before the request was complete."""


class HttpRequest:
    """The request line, the headers and the body of one request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.method: str = scope["method"]
        self.raw_path: str = scope["raw_path"].decode("ascii", errors="replace")
        """The path as sent, with its escapes."""
        self.query_string: str = scope["query_string"].decode("latin-1")
        self.headers = _join_headers(scope["headers"])
        """By name in lower case. Values of one name are joined with a comma."""
        self.http_version: str = scope["http_version"]
        self.scheme: str = scope["scheme"]
        self.server: tuple[str, int] | None = scope["server"]
        """The local address of the connection. None if uvicorn does not know it."""
        client: tuple[str, int] | None = scope["client"]
        self.client_host = client[0] if client else "-"

    @property
    def target(self) -> str:
        """The path and the query, as sent."""
        return f"{self.raw_path}?{self.query_string}" if self.query_string else self.raw_path

    @property
    def query(self) -> dict[str, list[str]]:
        """The decoded query parameters, in the order of the query."""
        return parse_qs(self.query_string, keep_blank_values=True)

    async def body_parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises ClientDisconnected."""
        more_body = True
        while more_body:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            more_body = message.get("more_body", False)
            yield message.get("body", b"")


async def send_response(
    send: Send, status: int, headers: list[tuple[str, str]], content: bytes
) -> None:
    """Send a whole response. The names of headers keep their case."""
    # Scripts of operators look for `Location:`, not for `location:`.
    encoded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": content})


def _join_headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers
