"""The responses are those of the recorded Connect worker, for every recorded exchange.

The herder is scripted: it returns the values of the recording. Status, Content-Type, Location and
Allow are compared, and the body byte for byte. Intended differences are listed here.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestClient, RestResponse
from tests.support.rest.scripted_herder import ScriptedHerder

FILES = [
    "01-empty-worker",
    "02-plugin-config",
    "03-lifecycle-identity",
    "04-supplement",
    "05-lifecycle-default-policy",
    "08-exactly-once-worker",
    "09-degraded",
    "10-two-workers",
]
RECORDED_AT = re.compile(r"^http://127\.0\.0\.1:31[01]83(?=/)")
COMPARED_HEADERS = ("content-type", "location", "allow")

JAVA_SPECIFIC_MESSAGES = (
    "REDACTED (`StreamReadFeature",  # Jackson
    "Cannot invoke ",  # NullPointerException
)
"""Errors in a body: status and members of the response are the same, the message is not."""

PATHS_JETTY_REFUSES = ("%2F", "%25", "%5C", "->b")
"""Java can create names with `/`, `%` or `\\` but refuses their paths afterwards."""

CORRECTED_LOCATIONS = {
    "/connectors/a/b": "/connectors/a%2Fb",
    "/connectors/a%2Fb": "/connectors/a%252Fb",
    "/connectors/a;b": "/connectors/a%3Bb",
}
"""Java's own server does not find the connector at the location that it sends."""

TESTED_ELSEWHERE = {
    ("01-empty-worker", "root-double-slash"),  # HTML in Java
    ("01-empty-worker", "post-invalid-content-type"),  # HTML in Java
    ("03-lifecycle-identity", "patch-null"),  # a NullPointerException in Java
    ("05-lifecycle-default-policy", "restart-all"),  # tasks in no order in Java
}
HERDER_CALLS = {
    ("GET", "/"): "worker",
    ("GET", "/health"): "health",
    ("GET", "/connectors"): "connectors",
    ("POST", "/connectors"): "create",
    ("GET", "/connectors/*"): "info",
    ("DELETE", "/connectors/*"): "delete",
    ("GET", "/connectors/*/config"): "info",
    ("PUT", "/connectors/*/config"): "put_config",
    ("PATCH", "/connectors/*/config"): "patch_config",
    ("GET", "/connectors/*/status"): "status",
    ("PUT", "/connectors/*/pause"): "pause",
    ("PUT", "/connectors/*/resume"): "resume",
    ("PUT", "/connectors/*/stop"): "stop",
    ("POST", "/connectors/*/restart"): "restart",
    ("GET", "/connectors/*/tasks"): "tasks",
    ("GET", "/connectors/*/tasks/#/status"): "task_status",
    ("POST", "/connectors/*/tasks/#/restart"): "restart_task",
    ("GET", "/connectors/*/topics"): "active_topics",
    ("PUT", "/connectors/*/topics/reset"): "reset_active_topics",
    ("GET", "/connectors/*/offsets"): "offsets",
    ("PATCH", "/connectors/*/offsets"): "alter_offsets",
    ("DELETE", "/connectors/*/offsets"): "reset_offsets",
    ("GET", "/connector-plugins"): "plugins",
    ("GET", "/connector-plugins/*/config"): "plugin_config",
    ("PUT", "/connector-plugins/*/config/validate"): "validate",
    ("GET", "/admin/loggers"): "loggers",
    ("GET", "/admin/loggers/*"): "logger",
    ("PUT", "/admin/loggers/*"): "set_logger",
}
REFUSED_WITHOUT_HERDER = (
    "HTTP 4",
    "Connector name configuration",
    "Desired 'level' parameter",
    "Internal request missing",
    "Partitions / offsets need",
    *JAVA_SPECIFIC_MESSAGES,
)
HEAD_RESPONSES: dict[str, Any] = {
    "/": {"version": "4.3.0", "commit": "a9ce3221537b8653", "kafka_cluster_id": "x" * 22},
    "/connectors": [],
}


def is_tested_elsewhere(exchange: RecordedExchange) -> bool:
    """Whether another test covers the exchange, because the response differs on purpose."""
    return (
        any(part in exchange.path for part in PATHS_JETTY_REFUSES)
        or "X-Connect-Authorization" in exchange.request_headers
        or (exchange.file, exchange.name) in TESTED_ELSEWHERE
        or (exchange.name == "create-name" and exchange.status == 500)
    )


def send(client: RestClient, herder: ScriptedHerder, exchange: RecordedExchange) -> RestResponse:
    response = HEAD_RESPONSES.get(exchange.path) if exchange.method == "HEAD" else exchange.body
    herder.set_response(exchange.status, response)
    return client.request(
        exchange.method, exchange.path, exchange.request, exchange.request_headers
    )


def differences(exchange: RecordedExchange, answer: RestResponse, address: str) -> list[Any]:
    found: list[Any] = []
    if answer.status != exchange.status:
        found.append(("status", exchange.status, answer.status, answer.content[:200]))
    for name in COMPARED_HEADERS:
        ours, theirs = answer.headers.get(name), exchange.response_headers.get(name)
        if ours != (theirs if theirs is None else expected_location(theirs, address)):
            found.append((name, theirs, ours))
    if not same_body(exchange, answer):
        found.append(("body", exchange.raw_body, answer.content))
    return [(exchange.seq, exchange.name, exchange.path, each) for each in found]


def expected_location(recorded: str, address: str) -> str:
    """The recorded location with the address of this server, corrected where Java's is wrong."""
    path = RECORDED_AT.sub("", recorded)
    if path == recorded:
        return recorded
    return address + CORRECTED_LOCATIONS.get(path, path)


def same_body(exchange: RecordedExchange, answer: RestResponse) -> bool:
    if any(text in (exchange.raw_body or "") for text in JAVA_SPECIFIC_MESSAGES):
        return bool(answer.message) and "java" not in answer.message
    if exchange.raw_body is None:
        return bool(json.loads(answer.content) == exchange.body)
    return answer.content == exchange.raw_body.encode("utf-8")


def expected_call(exchange: RecordedExchange) -> tuple[Any, ...] | None:
    """The herder call and its connector; None if the request must not reach the herder."""
    refused = exchange.status >= 400
    if refused and any(text in str(exchange.body) for text in REFUSED_WITHOUT_HERDER):
        return None
    path = exchange.path.partition("?")[0].rstrip("/") or "/"
    parts = [re.sub(r"^-?[0-9]+$", "#", part) for part in path.split("/")]
    name_index = 3 if "admin" in parts else 2
    name = [unquote(parts[name_index].partition(";")[0])] if len(parts) > name_index else []
    parts[name_index : name_index + 1] = ["*"] * len(name)
    method = HERDER_CALLS[exchange.method, "/".join(parts)]
    if method == "create":
        name = [str(json.loads(exchange.request or "{}").get("name") or "").strip()]
    if method == "restart" and re.search("(includeTasks|onlyFailed)=true", exchange.path):
        method = "restart_with"
    if method == "patch_config" and exchange.request in (None, "null"):
        method = "info"  # an empty patch only checks that the connector exists
    return (method, *name)


def call_differences(exchange: RecordedExchange, herder: ScriptedHerder) -> list[Any]:
    """The difference between the expected and the first actual herder call."""
    if exchange.method in ("HEAD", "OPTIONS"):
        return []
    expected = expected_call(exchange)
    first = herder.calls[0][: len(expected or ())] if herder.calls else None
    return [] if first == expected else [(exchange.seq, exchange.name, expected, first)]


@pytest.mark.parametrize("file", FILES)
def test_the_responses_are_those_of_the_recording(
    file: str, client: RestClient, herder: ScriptedHerder
) -> None:
    found = []
    for exchange in recorded_exchanges(file):
        if not is_tested_elsewhere(exchange):
            found += differences(exchange, send(client, herder, exchange), client.address)
            found += call_differences(exchange, herder)
    assert found == []
