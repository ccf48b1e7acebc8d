"""One request through the ASGI application, without a connection."""

from __future__ import annotations

import asyncio

import pytest

from sparkmirror.rest.http.application import RestApplication
from sparkmirror.rest.http.asgi_request import Message, Scope
from sparkmirror.rest.http.call import Call, Reply
from sparkmirror.rest.http.router import RestRouter, Route
from sparkmirror.rest.server_options import RestOptions


@pytest.mark.parametrize(
    ("server", "base_url"),
    [
        (("10.0.0.1", 8083), "http://10.0.0.1:8083"),
        (("::1", 8083), "http://[::1]:8083"),
        (None, "http://localhost"),
    ],
)
def test_a_malformed_host_header_is_replaced_by_the_local_address(
    server: tuple[str, int] | None, base_url: str
) -> None:
    base_urls: list[str] = []

    def handler(call: Call) -> Reply:
        base_urls.append(call.base_url)
        return Reply(status=200, content=b"{}")

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        pass

    scope: Scope = {
        "method": "GET",
        "raw_path": b"/x",
        "query_string": b"",
        "headers": [(b"host", b"a/b c")],
        "http_version": "1.1",
        "scheme": "http",
        "server": server,
        "client": None,
    }
    route = Route(method="GET", path="/x", handler=handler)

    async def request_once() -> None:
        application = RestApplication(
            RestRouter([route]), RestOptions(access_log=False), adds_headers=False
        )
        await application(scope, receive, send)

    asyncio.run(request_once())
    assert base_urls == [base_url]
