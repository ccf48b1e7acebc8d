"""The codes on the REST page are those of the server and of the recorded Connect worker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.rest.all_routes import public_routes
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import JSON_HEADERS, RestClient
from tests.support.rest.scripted_herder import ScriptedHerder

PAGE = (Path(__file__).parents[3] / "docs" / "rest.md").read_text("utf-8")
FOR_ANY_REQUEST = {401, 405, 406, 408, 413, 415, 500, 503}
RECORDINGS = [
    *("01-empty-worker", "02-plugin-config", "03-lifecycle-identity", "04-supplement"),
    *("05-lifecycle-default-policy", "08-exactly-once-worker", "09-degraded", "10-two-workers"),
]
ENDPOINT_ROW = re.compile(r"\| `([A-Z]+) (/[^`]*)`(?: \*\*ours\*\*)? \|.*\| ([^|]*) \|")
NOT_IN_CONNECT = {("GET", "/metrics")}
"""Connect was asked for these and answered 404."""


def codes_of(text: str) -> set[int]:
    return {int(code) for code in re.findall(r"\b[2-5]\d\d\b", text)}


def documented_endpoints() -> dict[tuple[str, str], set[int]]:
    """The codes of each method and path of the page. A parameter of a path is `*`."""
    return {
        (row[1], re.sub(r"\{\w+\}", "*", row[2])): codes_of(row[3])
        for row in map(ENDPOINT_ROW.fullmatch, PAGE.splitlines())
        if row
    }


def documented_errors() -> dict[int, str]:
    """The text of each code in the table of errors."""
    rows = re.findall(r"^\| ([0-9, ]+) \| (.+) \|$", PAGE.partition("## Errors")[2], re.MULTILINE)
    return {code: text for codes, text in rows for code in codes_of(codes)}


def test_the_page_has_every_endpoint_and_no_other() -> None:
    routes = public_routes(ScriptedHerder())
    served = {(route.method, re.sub(r"\{\w+\}", "*", route.path)) for route in routes}
    assert set(documented_endpoints()) == served


def recorded() -> list[tuple[RecordedExchange, set[int]]]:
    """The recorded exchanges of documented endpoints, with the codes of the page."""
    patterns = {
        (method, re.compile(path.replace("*", "[^/]+"))): codes
        for (method, path), codes in documented_endpoints().items()
        if (method, path) not in NOT_IN_CONNECT
    }
    return [
        (exchange, codes)
        for file in RECORDINGS
        for exchange in recorded_exchanges(file)
        for (method, path), codes in patterns.items()
        if method == exchange.method and path.fullmatch(exchange.path.partition("?")[0])
    ]


def test_a_code_that_java_answered_is_on_the_page() -> None:
    found = recorded()
    assert len(found) > 300
    missing = {
        (exchange.method, exchange.path, exchange.status)
        for exchange, codes in found
        if exchange.status not in codes | FOR_ANY_REQUEST
        and exchange.body is not None
        and not str(exchange.body).startswith("<html>")  # Jetty refuses the path
    }
    assert missing == set()
    assert set(documented_errors()) >= FOR_ANY_REQUEST


NAME = '{"name": "c", "config": {}'
OFFSETS = "/connectors/c/offsets"
BODIES = [
    ("POST", "/connectors", NAME.encode(), 500, "is not JSON"),
    ("POST", "/connectors", b'{"name": "\xff"}', 500, "is not UTF-8"),
    ("POST", "/connectors", f'{NAME}, "x": 1}}'.encode(), 500, "an unknown field"),
    ("POST", "/connectors", b'{"name": [], "config": {}}', 500, "a value of a wrong type"),
    ("PUT", "/connectors/c/config", b"{", 500, "is not JSON"),
    ("PUT", "/connectors/c/config", b'{"a": "\xff"}', 500, "is not UTF-8"),
    ("PUT", "/connectors/c/config", b'{"a": []}', 500, "a value of a wrong type"),
    ("PUT", "/connectors/c/config", b'{"name": "d"}', 400, "the name in the body"),
    ("PATCH", "/connectors/c/config", b"]", 500, "is not JSON"),
    ("PATCH", OFFSETS, b"{", 500, "is not JSON"),
    ("PATCH", OFFSETS, b'{"offsets": [], "x": 1}', 500, "an unknown field"),
    ("PATCH", OFFSETS, b'{"offsets": "x"}', 500, "a value of a wrong type"),
    ("PATCH", OFFSETS, b"{}", 400, "a request for offsets names none"),
    ("PUT", "/connector-plugins/p/config/validate", b"{", 500, "is not JSON"),
    ("PUT", "/admin/loggers/l", b"{", 500, "is not JSON"),
    ("PUT", "/admin/loggers/l", b'{"level": []}', 500, "a value of a wrong type"),
]


@pytest.mark.parametrize(("method", "path", "body", "code", "text"), BODIES)
def test_a_faulty_body_gets_the_code_of_the_page(
    client: RestClient,
    herder: ScriptedHerder,
    method: str,
    path: str,
    body: bytes,
    code: int,
    text: str,
) -> None:
    herder.set_response(200, None)
    answer = client.request(method, path, body, JSON_HEADERS)
    assert (answer.status, herder.calls) == (code, [])
    assert answer.message
    assert text in documented_errors()[code]


@pytest.mark.parametrize(
    ("method", "path", "headers", "code"),
    [
        ("GET", "/nope", {}, 404),
        ("PATCH", "/connectors", {}, 405),
        ("GET", "/connectors", {"Accept": "text/html"}, 406),
        ("POST", "/connectors", {"Content-Length": "2"}, 415),
        ("GET", "/connectors/%FF", {}, 400),
    ],
)
def test_a_faulty_request_gets_the_code_of_the_page(
    client: RestClient, method: str, path: str, headers: dict[str, Any], code: int
) -> None:
    body = b"{}" if "Content-Length" in headers else None
    assert client.request(method, path, body, headers).status == code
    assert code in documented_errors()
