"""/openapi.json describes every route and nothing else, and its schemas are true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from sparkmirror.rest.authentication.bearer_tokens import BearerTokens
from sparkmirror.rest.http.router import Route
from sparkmirror.rest.openapi.document import openapi_document
from sparkmirror.rest.openapi.operations import OPERATIONS
from sparkmirror.rest.server_options import RestOptions
from tests.support.rest.all_routes import all_routes, public_routes
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestClient, running_rest_client
from tests.support.rest.scripted_herder import ScriptedHerder

HERDER = ScriptedHerder()
ROUTES = public_routes(HERDER)
DOCUMENT: Any = json.loads(json.dumps(openapi_document(ROUTES, basic=False, bearer=False)))
RECORDINGS = [
    *("01-empty-worker", "02-plugin-config", "03-lifecycle-identity", "04-supplement"),
    *("05-lifecycle-default-policy", "08-exactly-once-worker", "09-degraded", "10-two-workers"),
]


def test_every_route_and_method_is_described_and_nothing_else() -> None:
    described = {
        (method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    assert described == set(OPERATIONS)


def test_the_routes_between_workers_are_not_described() -> None:
    described = openapi_document(all_routes(HERDER), basic=False, bearer=False)
    assert json.loads(json.dumps(described)) == DOCUMENT


def test_a_route_without_a_description_is_a_fault() -> None:
    unknown = Route(method="GET", path="/unknown", handler=ROUTES[0].handler)
    with pytest.raises(KeyError):
        openapi_document([unknown], basic=False, bearer=False)


def test_a_route_that_reads_a_body_describes_it() -> None:
    for route in ROUTES:
        operation = DOCUMENT["paths"][route.path][route.method.lower()]
        assert ("requestBody" in operation) == route.reads_body, route


def test_path_parameters_are_those_of_the_path() -> None:
    for path, item in DOCUMENT["paths"].items():
        for operation in item.values():
            names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert names == re.findall(r"\{(\w+)\}", path)


def test_operation_ids_are_unique() -> None:
    ids = [
        operation["operationId"]
        for item in DOCUMENT["paths"].values()
        for operation in item.values()
    ]
    assert len(set(ids)) == len(ids) == len(ROUTES)


def test_every_schema_is_json_schema_and_is_used() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema_rs.meta.validate(schema)
        assert f'"#/components/schemas/{name}"' in json.dumps(DOCUMENT), name


def test_the_server_serves_the_description(client: RestClient) -> None:
    answer = client.request("GET", "/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["openapi"] == "3.1.0"
    assert "/connectors/{connector}/fence" not in answer.json["paths"]
    assert answer.json["security"] == []
    assert "/connectors/{connector}/groups" not in answer.json["paths"], "no monitor, no route"


def test_the_description_says_which_credentials_are_needed(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ci: a-token-of-the-ci-system\n")
    options = RestOptions(tokens=BearerTokens(tokens), access_log=False)
    with running_rest_client(ScriptedHerder(), options) as client:
        authorized = {"Authorization": "Bearer a-token-of-the-ci-system"}
        described = client.request("GET", "/openapi.json", headers=authorized).json
    assert described["security"] == [{"bearer": []}]
    assert list(described["components"]["securitySchemes"]) == ["bearer"]
    assert "text/plain" in described["paths"]["/"]["get"]["responses"]["401"]["content"]


# -- the recordings of the Java worker conform to the description ----------------------------------


def operation_of(exchange: RecordedExchange) -> Any:
    """The described operation of a recorded exchange; None if its path is not described."""
    segments = exchange.path.partition("?")[0].rstrip("/").split("/")[1:]
    for path, item in DOCUMENT["paths"].items():
        pattern = path.rstrip("/").split("/")[1:]
        if len(pattern) == len(segments) and all(
            expected == given or expected.startswith("{")
            for expected, given in zip(pattern, segments, strict=True)
        ):
            return item.get(exchange.method.lower())
    return None


def answer_schema(operation: Any, status: int) -> Any:
    response = operation["responses"].get(str(status), operation["responses"]["default"])
    content = response.get("content", {}).get("application/json")
    if content is None:
        return None
    return {**content["schema"], "components": DOCUMENT["components"]}


def test_the_recorded_answers_of_java_conform_to_the_schemas() -> None:
    checked = 0
    for exchange in (one for file in RECORDINGS for one in recorded_exchanges(file)):
        operation = operation_of(exchange)
        if operation is None or not isinstance(exchange.body, dict | list):
            continue
        schema = answer_schema(operation, exchange.status)
        assert schema is not None, (exchange.name, exchange.status)
        jsonschema_rs.validate(schema, exchange.body)
        checked += 1
    assert checked > 300


def test_the_recorded_bodies_that_java_accepted_conform_to_the_schemas() -> None:
    checked = 0
    for exchange in (one for file in RECORDINGS for one in recorded_exchanges(file)):
        operation = operation_of(exchange)
        if operation is None or exchange.status >= 300 or not exchange.request:
            continue
        if "requestBody" not in operation:
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        sent = json.loads(exchange.request)
        jsonschema_rs.validate({**schema, "components": DOCUMENT["components"]}, sent)
        checked += 1
    assert checked > 30
