"""Workers with CORS, extra headers, and separate or no admin listeners.

Compared with the recordings of such workers, in all headers that these settings affect.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sparkmirror.rest.http.cors import Cors
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.response_headers import ResponseHeaderRules
from sparkmirror.rest.server_options import RestOptions
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestClient, running_rest_server
from tests.support.rest.scripted_herder import ScriptedHerder

RECORDED = recorded_exchanges("07-worker-variants")
CONFIGURED = [each for each in RECORDED if each.seq <= 26]
WITHOUT_ADMIN = [each for each in RECORDED if each.seq > 26]
COMPARED = (
    "vary",
    "access-control-allow-origin",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
    "x-added",
    "x-set",
    "content-type",
    "allow",
)


def exchange_id(exchange: RecordedExchange) -> str:
    return f"{exchange.seq}-{exchange.name}"


@pytest.fixture(scope="module")
def herder() -> ScriptedHerder:
    return ScriptedHerder()


@pytest.fixture(scope="module")
def configured_server(herder: ScriptedHerder) -> Iterator[tuple[str, ...]]:
    """The address and the admin address of a server with the settings of 07's first worker."""
    options = RestOptions(
        admin_listeners=(RestListener.parse("http://127.0.0.1:0"),),
        cors=Cors(origin="http://example.org", methods="PUT,POST,GET"),
        response_headers=ResponseHeaderRules.parse("add X-Added: one, set X-Set: two", time.time),
        access_log=False,
    )
    with running_rest_server(herder, options) as server:
        yield server.addresses


@pytest.fixture(scope="module")
def server_without_admin(herder: ScriptedHerder) -> Iterator[str]:
    """A server without /admin."""
    with running_rest_server(herder, RestOptions(admin_listeners=(), access_log=False)) as server:
        yield server.address


def assert_same_as_recorded(
    exchange: RecordedExchange, address: str, herder: ScriptedHerder
) -> None:
    herder.set_response(exchange.status, exchange.body)
    client = RestClient(address)
    answer = client.request(
        exchange.method, exchange.path, exchange.request, exchange.request_headers
    )
    client.close()
    assert answer.status == exchange.status
    if exchange.raw_body is not None:
        assert answer.content == exchange.raw_body.encode()
    else:
        assert answer.json == exchange.body
    ours = {name: answer.headers.get(name) for name in COMPARED}
    assert ours == {name: exchange.response_headers.get(name) for name in COMPARED}


@pytest.mark.parametrize("exchange", CONFIGURED, ids=exchange_id)
def test_headers_and_listeners_are_as_recorded(
    exchange: RecordedExchange, configured_server: tuple[str, ...], herder: ScriptedHerder
) -> None:
    is_admin_listener = "on-admin-listener" in exchange.name
    assert_same_as_recorded(exchange, configured_server[1 if is_admin_listener else 0], herder)


@pytest.mark.parametrize("exchange", WITHOUT_ADMIN, ids=exchange_id)
def test_without_admin_listeners_there_is_no_admin(
    exchange: RecordedExchange, server_without_admin: str, herder: ScriptedHerder
) -> None:
    assert_same_as_recorded(exchange, server_without_admin, herder)


def test_any_origin_may_be_allowed() -> None:
    headers = dict(Cors(origin="*").headers("GET", {"origin": "http://a.example"}))
    assert headers["Access-Control-Allow-Origin"] == "http://a.example"


def test_without_an_allowed_origin_there_are_no_cors_headers() -> None:
    assert Cors().headers("GET", {"origin": "http://a.example"}) == ()


def test_several_origins_may_be_allowed() -> None:
    cors = Cors(origin="http://a.example, http://b.example")
    assert ("Access-Control-Allow-Origin", "http://b.example") in cors.headers(
        "GET", {"origin": "http://b.example"}
    )
    assert cors.headers("GET", {"origin": "http://c.example"}) == (("Vary", "Origin"),)


def test_a_preflight_gets_the_default_methods() -> None:
    request = {"origin": "http://a.example", "access-control-request-method": "POST"}
    headers = dict(Cors(origin="*").headers("OPTIONS", request))
    assert headers["Access-Control-Allow-Methods"] == "GET,POST,HEAD"


def test_an_extra_header_never_replaces_one_of_the_reply(herder: ScriptedHerder) -> None:
    rules = ResponseHeaderRules.parse(
        "set Content-Type: text/html, set Content-Length: 7", time.time
    )
    herder.set_response(200, [])
    with running_rest_server(
        herder, RestOptions(response_headers=rules, access_log=False)
    ) as server:
        client = RestClient(server.address)
        answer = client.request("GET", "/connectors")
        client.close()
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == b"[]"
