"""Connectors with unusual names can be created and then addressed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import JSON_HEADERS, RestClient
from tests.support.rest.scripted_herder import ScriptedHerder

NAMES = [
    "a/b",
    "a%b",
    "a%2Fb",
    "a\\b",
    "a->b",
    "source->target.MirrorSourceConnector",
    "a b",
    "a;b",
    "a?b#c",
    "..",
    "{x}",
    "ü😀",
    '"q"',
]
REFUSED_BY_JETTY = [
    exchange
    for exchange in recorded_exchanges("03-lifecycle-identity")
    if exchange.status == 400 and "text/html" in exchange.response_headers.get("content-type", "")
]


def created(name: str) -> Any:
    return {"name": name, "config": {"name": name}, "tasks": [], "type": "source"}


@pytest.mark.parametrize("name", NAMES)
def test_the_location_of_a_new_connector_is_its_path(
    name: str, client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(201, created(name))
    answer = client.send_json("POST", "/connectors", {"name": name, "config": {}})
    assert answer.status == 201
    assert herder.calls == [("create", name, {"name": name}, None)]

    herder.set_response(200, created(name))
    location = urlsplit(answer.headers["location"])
    assert client.request("GET", location.path).json == created(name)
    assert herder.calls == [("info", name)]


@pytest.mark.parametrize("exchange", REFUSED_BY_JETTY, ids=lambda each: f"{each.seq}")
def test_a_path_that_jetty_refuses_is_answered(
    exchange: RecordedExchange, client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(404, {"error_code": 404, "message": "No such connector"})
    answer = client.request(exchange.method, exchange.path)
    assert (answer.status, answer.message) == (404, "No such connector")
    assert answer.headers["content-type"] == "application/json"
    ((_, name),) = herder.calls
    assert name in ("a/b", "a%b", "a%2Fb", "a\\b", "a->b")


def test_a_path_with_an_empty_segment_is_refused_in_json(client: RestClient) -> None:
    answer = client.request("GET", "//")
    assert (answer.status, answer.message) == (400, "Ambiguous URI empty segment")


def test_a_malformed_content_type_is_refused_in_json(client: RestClient) -> None:
    answer = client.request("POST", "/connectors", "{}", {"Content-Type": "json"})
    assert answer.status == 400
    assert "use application/json" in answer.message


def test_the_name_in_the_config_must_be_the_name_in_the_path(
    client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(200, None)
    answer = client.send_json("PUT", "/connectors/a-%3Eb/config", {"name": "c"})
    assert answer.status == 400
    assert answer.message == (
        "Connector name configuration (c) doesn't match connector name in the URL (a->b)"
    )
    assert herder.calls == []


@pytest.mark.parametrize("sent", [{"x": "1"}, {"name": None, "x": "1"}])
def test_a_config_without_a_name_gets_the_name_of_the_connector(
    sent: dict[str, Any], client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(200, created("a->b"))
    client.send_json("PUT", "/connectors/a->b/config", sent)
    assert herder.calls == [("put_config", "a->b", {"x": "1", "name": "a->b"})]


def test_a_patch_may_rename(client: RestClient, herder: ScriptedHerder) -> None:
    herder.set_response(200, created("x"))
    assert client.send_json("PATCH", "/connectors/x/config", {"name": "y"}).status == 200
    assert herder.calls == [("patch_config", "x", {"name": "y"})]


def test_a_null_patch_of_an_existing_connector_is_an_error(
    client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(200, created("x"))
    answer = client.request("PATCH", "/connectors/x/config", "null", JSON_HEADERS)
    assert (answer.status, "not null" in answer.message) == (500, True)


def test_the_location_has_the_host_of_the_request(
    client: RestClient, herder: ScriptedHerder
) -> None:
    herder.set_response(201, created("x"))
    headers = {**JSON_HEADERS, "Host": "connect.example:8083"}
    answer = client.request("POST", "/connectors", '{"name":"x","config":{}}', headers)
    assert answer.headers["location"] == "http://connect.example:8083/connectors/x"


def test_a_malformed_host_is_not_repeated(client: RestClient, herder: ScriptedHerder) -> None:
    herder.set_response(201, created("x"))
    headers = {**JSON_HEADERS, "Host": "evil/path?"}
    answer = client.request("POST", "/connectors", '{"name":"x","config":{}}', headers)
    assert answer.headers["location"] == f"{client.address}/connectors/x"


def test_tasks_are_listed_in_order(client: RestClient, herder: ScriptedHerder) -> None:
    state = {"state": "RESTARTING", "worker_id": "w", "version": "4.3.0"}
    status = {
        "name": "x",
        "connector": state,
        "tasks": [{"id": number, **state} for number in (10, 1, 2)],
        "type": "source",
    }
    herder.set_response(202, status)
    answer = client.request("POST", "/connectors/x/restart?includeTasks=true")
    assert [task["id"] for task in answer.json["tasks"]] == [1, 2, 10]
