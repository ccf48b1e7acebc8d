"""The requests of kcctl, kafka-ui, AKHQ, Redpanda Console and Strimzi.

The herder is real, on stores in memory, with fake connectors. Each call has the method, path, query
and body that the client sends, and checks the members that the client reads from the response.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from tests.support.connect.in_memory_herder import SOURCE_CONFIG, HerderHarness, running_herder
from tests.support.rest.rest_client import (
    JSON_HEADERS,
    RestClient,
    RestResponse,
    running_rest_server,
)

NAME = "source->target.MirrorSourceConnector"
PLUGIN = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
OFFSETS = {
    "offsets": [
        {
            "partition": {"cluster": "source", "partition": 0, "topic": "orders"},
            "offset": {"offset": 3},
        }
    ]
}
KNOWN_STATES = {"RUNNING", "FAILED", "PAUSED", "STOPPED", "UNASSIGNED", "RESTARTING"}


class Call(NamedTuple):
    """A request, and whether its client can read the response. `{c}` is the connector."""

    method: str
    path: str
    status: int
    can_read: Callable[[Any], object] = lambda body: body is None
    body: Any = None
    stopped: bool = False
    """Whether the connector must be stopped first."""


def is_info(body: Any) -> bool:
    """A connector: name, config of strings, task ids, type."""
    texts = all(isinstance(value, str) for value in body["config"].values())
    tasks = all(task["connector"] == body["name"] for task in body["tasks"])
    return texts and tasks and body["type"] == "source" and NAME[:6] in body["name"]


def is_status(body: Any) -> bool:
    """A status: the connector and each task have a state that the client knows, and a worker."""
    parts = [body["connector"], *body["tasks"]]
    known = all(part["state"] in KNOWN_STATES and part["worker_id"] for part in parts)
    return known and [task["id"] for task in body["tasks"]] == [0, 1]


def is_expanded(body: Any) -> bool:
    """kafka-ui needs both members and matches their tasks."""
    configured = {task["task"] for task in body[NAME]["info"]["tasks"]}
    running = {task["id"] for task in body[NAME]["status"]["tasks"]}
    return configured == running and all("info" in e and "status" in e for e in body.values())


def is_version(body: Any) -> bool:
    """kcctl parses the version; the consoles show all three members."""
    major, minor = (int(part) for part in body["version"].split(".")[:2])
    return (major, minor) >= (2, 5) and bool(body["commit"]) and bool(body["kafka_cluster_id"])


def is_validation(body: Any) -> bool:
    """A validation: each config has a definition and a value with its errors."""
    values = [config["value"] for config in body["configs"]]
    return body["error_count"] == sum(len(value["errors"]) for value in values) and all(
        isinstance(value["recommended_values"], list) for value in values
    )


def is_plugins(body: Any) -> bool:
    return PLUGIN in [plugin["class"] for plugin in body] and all(
        plugin["type"] == "source" and plugin["version"] for plugin in body
    )


def is_topics(body: Any) -> bool:
    ((name, shown),) = body.items()
    return name.startswith("source->") and isinstance(shown["topics"], list)


def is_config(body: Any) -> bool:
    return bool(body["connector.class"] == PLUGIN)


def is_offsets(body: Any) -> bool:
    return list(body) == ["offsets"]


def is_message(body: Any) -> bool:
    return "successfully" in body["message"]


KCCTL = {
    "info": Call("GET", "/", 200, is_version),
    "plugins": Call("GET", "/connector-plugins?connectorsOnly=true", 200, is_plugins),
    "plugins-all": Call("GET", "/connector-plugins?connectorsOnly=false", 200, bool),
    "plugin-config": Call(
        "GET",
        f"/connector-plugins/{PLUGIN}/config",
        200,
        lambda body: {"name", "type", "required", "default_value", "documentation"} <= {*body[0]},
    ),
    "validate": Call(
        "PUT", f"/connector-plugins/{PLUGIN}/config/validate", 200, is_validation, SOURCE_CONFIG
    ),
    "connectors": Call("GET", "/connectors/", 200, lambda body: NAME in body),
    "create": Call(
        "POST",
        "/connectors/",
        201,
        is_info,
        {"name": "source->new", "config": {**SOURCE_CONFIG, "tasks.max": 2}},
    ),
    "connector": Call("GET", "/connectors/{c}", 200, is_info),
    "restart": Call("POST", "/connectors/{c}/restart", 204),
    "restart-all": Call(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=false", 202, is_status
    ),
    "restart-failed": Call(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=true", 202, is_status
    ),
    "pause": Call("PUT", "/connectors/{c}/pause", 202),
    "resume": Call("PUT", "/connectors/{c}/resume", 202),
    "stop": Call("PUT", "/connectors/{c}/stop", 204),
    "delete": Call("DELETE", "/connectors/{c}", 204),
    "expand": Call("GET", "/connectors?expand=info&expand=status", 200, is_expanded),
    "status": Call("GET", "/connectors/{c}/status", 200, is_status),
    "topics": Call("GET", "/connectors/{c}/topics", 200, is_topics),
    "config": Call("GET", "/connectors/{c}/config", 200, is_config),
    "update": Call(
        "PUT", "/connectors/{c}/config", 200, is_info, {**SOURCE_CONFIG, "tasks.max": 1}
    ),
    "offsets": Call("GET", "/connectors/{c}/offsets", 200, is_offsets),
    "reset-offsets": Call("DELETE", "/connectors/{c}/offsets", 200, is_message, stopped=True),
    "patch-offsets": Call(
        "PATCH", "/connectors/{c}/offsets", 200, is_message, OFFSETS, stopped=True
    ),
    "restart-task": Call("POST", "/connectors/{c}/tasks/0/restart", 204),
    "tasks-config": Call(
        "GET", "/connectors/{c}/tasks-config", 404, lambda body: body["error_code"] == 404
    ),  # gone since Kafka 4.0
    "set-logger": Call(
        "PUT", "/admin/loggers/org.example.a", 200, lambda body: "org.example.a" in body,
        {"level": "DEBUG"},
    ),
    "set-logger-everywhere": Call(
        "PUT", "/admin/loggers/org.example.b?scope=cluster", 204, body={"level": "DEBUG"}
    ),
    "loggers": Call("GET", "/admin/loggers/", 200, lambda body: body["root"]["level"]),
    "logger": Call("GET", "/admin/loggers/root", 200, lambda body: body["level"]),
}  # fmt: skip

KAFKA_UI = {
    "card": Call("GET", "/", 200, is_version),
    "list": Call("GET", "/connectors?expand=info&expand=status", 200, is_expanded),
    "names": Call("GET", "/connectors", 200, lambda body: NAME in body),
    "topics": Call("GET", "/connectors/{c}/topics", 200, is_topics),
    "connector": Call("GET", "/connectors/{c}", 200, is_info),
    "status": Call("GET", "/connectors/{c}/status", 200, is_status),
    "config": Call("GET", "/connectors/{c}/config", 200, is_config),
    "tasks": Call(
        "GET",
        "/connectors/{c}/tasks",
        200,
        lambda body: [task["id"]["task"] for task in body] == [0, 1] and body[0]["config"],
    ),
    "task": Call("GET", "/connectors/{c}/tasks/1/status", 200, lambda body: body["id"] == 1),
    "create": Call(
        "POST", "/connectors", 201, is_info, {"name": "source->ui", "config": SOURCE_CONFIG}
    ),
    "edit": Call("PUT", "/connectors/{c}/config", 200, is_info, SOURCE_CONFIG),
    "delete": Call("DELETE", "/connectors/{c}", 204),
    "pause": Call("PUT", "/connectors/{c}/pause", 202),
    "resume": Call("PUT", "/connectors/{c}/resume", 202),
    "stop": Call("PUT", "/connectors/{c}/stop", 204),
    "restart": Call("POST", "/connectors/{c}/restart?includeTasks=false&onlyFailed=false", 204),
    "restart-all": Call(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=false", 202, is_status
    ),
    "restart-task": Call("POST", "/connectors/{c}/tasks/1/restart", 204),
    "offsets": Call("GET", "/connectors/{c}/offsets", 200, is_offsets),
    "reset-offsets": Call("DELETE", "/connectors/{c}/offsets", 200, is_message, stopped=True),
    "plugins": Call("GET", "/connector-plugins", 200, is_plugins),
    "validate": Call(
        "PUT", f"/connector-plugins/{PLUGIN}/config/validate", 200, is_validation, SOURCE_CONFIG
    ),
}

AKHQ = {
    "list": Call("GET", "/connectors?expand=info&expand=status", 200, is_expanded),
    "connector": Call("GET", "/connectors/{c}", 200, is_info),
    "status": Call("GET", "/connectors/{c}/status", 200, is_status),
    "create": Call(
        "POST", "/connectors", 201, is_info, {"name": "source->hq", "config": SOURCE_CONFIG}
    ),
    "edit": Call("PUT", "/connectors/{c}/config", 200, is_info, SOURCE_CONFIG),
    "delete": Call("DELETE", "/connectors/{c}", 204),
    "pause": Call("PUT", "/connectors/{c}/pause", 202),
    "resume": Call("PUT", "/connectors/{c}/resume", 202),
    "restart": Call("POST", "/connectors/{c}/restart", 204),
    "restart-task": Call("POST", "/connectors/{c}/tasks/0/restart", 204),
    "plugins": Call("GET", "/connector-plugins", 200, is_plugins),
    "form": Call(
        "PUT",
        "/connector-plugins/MirrorSourceConnector/config/validate",
        200,
        is_validation,
        {"connector.class": PLUGIN, "topics": "getTopics"},
    ),
}

REDPANDA_CONSOLE = {
    "root": Call("GET", "/", 200, is_version),
    "plugins": Call("GET", "/connector-plugins", 200, is_plugins),
    "list": Call("GET", "/connectors?expand=info&expand=status", 200, is_expanded),
    "connector": Call("GET", "/connectors/{c}", 200, is_info),
    "status": Call("GET", "/connectors/{c}/status", 200, is_status),
    "config": Call("GET", "/connectors/{c}/config", 200, is_config),
    "topics": Call("GET", "/connectors/{c}/topics", 200, is_topics),
    "reset-topics": Call("PUT", "/connectors/{c}/topics/reset", 202),
    "create": Call(
        "POST", "/connectors", 201, is_info, {"name": "source->rp", "config": SOURCE_CONFIG}
    ),
    "edit": Call("PUT", "/connectors/{c}/config", 200, is_info, SOURCE_CONFIG),
    "delete": Call("DELETE", "/connectors/{c}", 204),
    "pause": Call("PUT", "/connectors/{c}/pause", 202),
    "resume": Call("PUT", "/connectors/{c}/resume", 202),
    "stop": Call("PUT", "/connectors/{c}/stop", 204),
    "restart": Call(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=true", 202, is_status
    ),
    "restart-task": Call("POST", "/connectors/{c}/tasks/0/restart", 204),
    "validate": Call(
        "PUT",
        "/connector-plugins/MirrorSource/config/validate",
        200,
        is_validation,
        SOURCE_CONFIG,
    ),
}

STRIMZI = {
    "names": Call("GET", "/connectors", 200, lambda body: NAME in body),
    "put": Call("PUT", "/connectors/{c}/config", 200, is_info, SOURCE_CONFIG),
    "status": Call("GET", "/connectors/{c}/status", 200, is_status),
    "topics": Call("GET", "/connectors/{c}/topics", 200, is_topics),
    "pause": Call("PUT", "/connectors/{c}/pause", 202),
    "resume": Call("PUT", "/connectors/{c}/resume", 202),
    "stop": Call("PUT", "/connectors/{c}/stop", 204),
    "restart": Call(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=false", 202, is_status
    ),
    "restart-task": Call("POST", "/connectors/{c}/tasks/1/restart", 204),
    "offsets": Call("GET", "/connectors/{c}/offsets", 200, is_offsets),
    "patch-offsets": Call(
        "PATCH", "/connectors/{c}/offsets", 200, is_message, OFFSETS, stopped=True
    ),
    "reset-offsets": Call("DELETE", "/connectors/{c}/offsets", 200, is_message, stopped=True),
    "plugins": Call("GET", "/connector-plugins", 200, is_plugins),
    "loggers": Call("GET", "/admin/loggers", 200, bool),
    "set-logger": Call(
        "PUT", "/admin/loggers/org.example.c?scope=cluster", 204, body={"level": "WARN"}
    ),
    "delete": Call("DELETE", "/connectors/{c}", 204),
}

_numbers = count()


@pytest.fixture(scope="module")
def harness() -> Iterator[HerderHarness]:
    """A worker with one source connector that no test changes."""
    with running_herder() as harness:
        make_connector(harness, NAME)
        yield harness


@pytest.fixture(scope="module")
def client(harness: HerderHarness) -> Iterator[RestClient]:
    with running_rest_server(harness.herder) as server:
        client = RestClient(server.address)
        yield client
        client.close()


def make_connector(harness: HerderHarness, name: str) -> None:
    harness.herder.put_connector_config(name, {**SOURCE_CONFIG, "name": name})
    harness.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")


def connector_for(call: Call, harness: HerderHarness) -> str:
    """The shared connector for a GET; a new connector for each other call."""
    if call.method == "GET" or "{c}" not in call.path:
        return NAME
    name = f"source->{next(_numbers)}"
    make_connector(harness, name)
    if call.stopped:
        harness.herder.stop_connector(name)
    return name


def send(client: RestClient, call: Call, name: str, headers: dict[str, str]) -> RestResponse:
    path = call.path.replace("{c}", name.replace(">", "%3E"))
    body = None if call.body is None else json.dumps(call.body)
    return client.request(call.method, path, body, headers)


def is_readable(call: Call, answer: RestResponse) -> bool:
    assert answer.status == call.status, answer.content
    return bool(call.can_read(answer.json if answer.content else None))


@pytest.mark.parametrize("call", KCCTL.values(), ids=KCCTL)
def test_kcctl(call: Call, harness: HerderHarness, client: RestClient) -> None:
    headers = {"Accept": "application/json", **(JSON_HEADERS if call.body else {})}
    assert is_readable(call, send(client, call, connector_for(call, harness), headers))


@pytest.mark.parametrize("call", KAFKA_UI.values(), ids=KAFKA_UI)
def test_kafka_ui(call: Call, harness: HerderHarness, client: RestClient) -> None:
    headers = {"Accept": "application/json", **(JSON_HEADERS if call.body else {})}
    assert is_readable(call, send(client, call, connector_for(call, harness), headers))


@pytest.mark.parametrize("call", AKHQ.values(), ids=AKHQ)
def test_akhq(call: Call, harness: HerderHarness, client: RestClient) -> None:
    headers = {"Accept": "application/json", **JSON_HEADERS}
    assert is_readable(call, send(client, call, connector_for(call, harness), headers))


@pytest.mark.parametrize("call", REDPANDA_CONSOLE.values(), ids=REDPANDA_CONSOLE)
def test_redpanda_console(call: Call, harness: HerderHarness, client: RestClient) -> None:
    headers = {
        "Accept": "application/json",
        "User-Agent": "CloudHut-Connect-Client",
        **JSON_HEADERS,
    }
    assert is_readable(call, send(client, call, connector_for(call, harness), headers))


@pytest.mark.parametrize("call", STRIMZI.values(), ids=STRIMZI)
def test_strimzi(call: Call, harness: HerderHarness, client: RestClient) -> None:
    headers = {"Accept": "application/json", **(JSON_HEADERS if call.body else {})}
    assert is_readable(call, send(client, call, connector_for(call, harness), headers))


def test_a_failed_task_shows_its_cause_first(harness: HerderHarness, client: RestClient) -> None:
    name = f"source->{next(_numbers)}"
    make_connector(harness, name)
    harness.probe.task_group(name).fail(1, ValueError("orders-1: too large"))
    harness.wait_for_states(name, "RUNNING", "RUNNING", "FAILED")
    path = f"/connectors/{name.replace('>', '%3E')}/tasks/1/status"
    trace = client.request("GET", path).json["trace"]
    assert "orders-1: too large" in trace.splitlines()[0]


def test_an_error_has_the_body_that_every_client_reads(client: RestClient) -> None:
    answer = client.request("GET", "/connectors/nope/status")
    assert (answer.status, answer.message) == (404, "No status found for connector nope")
    again = client.send_json("POST", "/connectors", {"name": NAME, "config": SOURCE_CONFIG})
    assert (again.status, again.message) == (409, f"Connector {NAME} already exists")
