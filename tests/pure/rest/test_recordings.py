"""Every recorded exchange with a Connect worker, over HTTP: what is sent back is what was recorded.

The herding is scripted: it gives the values that the recorded worker gave. Compared are status,
body to the byte, Content-Type, Location and Allow. What differs on purpose is named here.
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

JAVAS_OWN_WORDS = (
    "REDACTED (`StreamReadFeature",  # Jackson
    "Cannot invoke ",  # NullPointerException
)
"""Faults in a body: the status and the shape of the answer are the same, the words are ours."""

ADDRESSES_JETTY_REFUSES = ("%2F", "%25", "%5C", "->b")
"""Names with `/`, `%` or `\\` can be created in Java but never asked about again; here they can."""

LOCATIONS_THAT_LEAD_NOWHERE = {
    "/connectors/a/b": "/connectors/a%2Fb",
    "/connectors/a%2Fb": "/connectors/a%252Fb",
    "/connectors/a;b": "/connectors/a%3Bb",
}
"""Java writes them such that its own server does not find the connector again."""

ELSEWHERE = {
    ("01-empty-worker", "root-double-slash"),  # HTML in Java
    ("01-empty-worker", "post-invalid-content-type"),  # HTML in Java
    ("03-lifecycle-identity", "patch-null"),  # a NullPointerException in Java
    ("05-lifecycle-default-policy", "restart-all"),  # tasks in no order in Java
}
QUESTIONS = {
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
REFUSED_BEFORE_ASKING = (
    "HTTP 4",
    "Connector name configuration",
    "Desired 'level' parameter",
    "Internal request missing",
    "Partitions / offsets need",
    *JAVAS_OWN_WORDS,
)
ASKED_OF_HEAD: dict[str, Any] = {
    "/": {"version": "4.3.0", "commit": "a9ce3221537b8653", "kafka_cluster_id": "x" * 22},
    "/connectors": [],
}


def is_told_elsewhere(exchange: RecordedExchange) -> bool:
    """Exchanges that other tests are about, because ours is better or has no such thing."""
    return (
        any(part in exchange.path for part in ADDRESSES_JETTY_REFUSES)
        or "X-Connect-Authorization" in exchange.request_headers
        or (exchange.file, exchange.name) in ELSEWHERE
        or (exchange.name == "create-name" and exchange.status == 500)
    )


def ask(client: RestClient, herding: ScriptedHerder, exchange: RecordedExchange) -> RestResponse:
    said = ASKED_OF_HEAD.get(exchange.path) if exchange.method == "HEAD" else exchange.body
    herding.set_response(exchange.status, said)
    return client.request(
        exchange.method, exchange.path, exchange.request, exchange.request_headers
    )


def differences(exchange: RecordedExchange, answer: RestResponse, address: str) -> list[Any]:
    found: list[Any] = []
    if answer.status != exchange.status:
        found.append(("status", exchange.status, answer.status, answer.content[:200]))
    for name in COMPARED_HEADERS:
        ours, theirs = answer.headers.get(name), exchange.response_headers.get(name)
        if ours != (theirs if theirs is None else here(theirs, address)):
            found.append((name, theirs, ours))
    if not same_body(exchange, answer):
        found.append(("body", exchange.raw_body, answer.content))
    return [(exchange.seq, exchange.name, exchange.path, each) for each in found]


def here(recorded: str, address: str) -> str:
    """Write what was recorded there as it must be here: another port, and places that exist."""
    place = RECORDED_AT.sub("", recorded)
    if place == recorded:
        return recorded
    return address + LOCATIONS_THAT_LEAD_NOWHERE.get(place, place)


def same_body(exchange: RecordedExchange, answer: RestResponse) -> bool:
    if any(words in (exchange.raw_body or "") for words in JAVAS_OWN_WORDS):
        return bool(answer.message) and "java" not in answer.message
    if exchange.raw_body is None:
        return bool(json.loads(answer.content) == exchange.body)
    return answer.content == exchange.raw_body.encode("utf-8")


def expected_question(exchange: RecordedExchange) -> tuple[Any, ...] | None:
    """What the worker must be asked, and about whom; None if it must not be asked at all."""
    refused = exchange.status >= 400
    if refused and any(words in str(exchange.body) for words in REFUSED_BEFORE_ASKING):
        return None
    path = exchange.path.partition("?")[0].rstrip("/") or "/"
    parts = [re.sub(r"^-?[0-9]+$", "#", part) for part in path.split("/")]
    about = 3 if "admin" in parts else 2
    name = [unquote(parts[about].partition(";")[0])] if len(parts) > about else []
    parts[about : about + 1] = ["*"] * len(name)
    verb = QUESTIONS[exchange.method, "/".join(parts)]
    if verb == "create":
        name = [str(json.loads(exchange.request or "{}").get("name") or "").strip()]
    if verb == "restart" and re.search("(includeTasks|onlyFailed)=true", exchange.path):
        verb = "restart_with"
    if verb == "patch_config" and exchange.request in (None, "null"):
        verb = "info"  # nothing to patch with: only whether the connector exists matters
    return (verb, *name)


def misunderstandings(exchange: RecordedExchange, herding: ScriptedHerder) -> list[Any]:
    """The worker was asked something else, or was asked in vain."""
    if exchange.method in ("HEAD", "OPTIONS"):
        return []
    wanted = expected_question(exchange)
    first = herding.calls[0][: len(wanted or ())] if herding.calls else None
    return [] if first == wanted else [(exchange.seq, exchange.name, wanted, first)]


@pytest.mark.parametrize("file", FILES)
def test_the_answers_are_those_of_the_recording(
    file: str, client: RestClient, herding: ScriptedHerder
) -> None:
    found = []
    for exchange in recorded_exchanges(file):
        if not is_told_elsewhere(exchange):
            found += differences(exchange, ask(client, herding, exchange), client.address)
            found += misunderstandings(exchange, herding)
    assert found == []
