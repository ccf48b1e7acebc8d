"""The calls that kcctl, kafka-ui, AKHQ, Redpanda Console and Strimzi make, as they make them.

The worker is a real herder on stores in memory, with small connectors. For each call: method,
path, query and body as the client sends them, and what the client reads out of the answer.
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


class Sent(NamedTuple):
    """A call, and what its client makes of the answer. `{c}` stands for the connector."""

    method: str
    path: str
    status: int
    reads: Callable[[Any], object] = lambda body: body is None
    body: Any = None
    stopped: bool = False
    """Whether the connector must be stopped for it."""


def reads_info(body: Any) -> bool:
    """A connector: name, config of texts, tasks by number, type."""
    texts = all(isinstance(value, str) for value in body["config"].values())
    tasks = all(task["connector"] == body["name"] for task in body["tasks"])
    return texts and tasks and body["type"] == "source" and NAME[:6] in body["name"]


def reads_status(body: Any) -> bool:
    """A status: every part has a state that the client knows, and a worker."""
    parts = [body["connector"], *body["tasks"]]
    known = all(part["state"] in KNOWN_STATES and part["worker_id"] for part in parts)
    return known and [task["id"] for task in body["tasks"]] == [0, 1]


def reads_expanded(body: Any) -> bool:
    """kafka-ui needs both members, and joins tasks of one with those of the other."""
    configured = {task["task"] for task in body[NAME]["info"]["tasks"]}
    running = {task["id"] for task in body[NAME]["status"]["tasks"]}
    return configured == running and all("info" in e and "status" in e for e in body.values())


def reads_version(body: Any) -> bool:
    """kcctl reads numbers out of it, the consoles show all three."""
    major, minor = (int(part) for part in body["version"].split(".")[:2])
    return (major, minor) >= (2, 5) and bool(body["commit"]) and bool(body["kafka_cluster_id"])


def reads_validation(body: Any) -> bool:
    """A form: each field has a definition and a value with its errors."""
    values = [config["value"] for config in body["configs"]]
    return body["error_count"] == sum(len(value["errors"]) for value in values) and all(
        isinstance(value["recommended_values"], list) for value in values
    )


def reads_plugins(body: Any) -> bool:
    return PLUGIN in [plugin["class"] for plugin in body] and all(
        plugin["type"] == "source" and plugin["version"] for plugin in body
    )


def reads_topics(body: Any) -> bool:
    ((name, shown),) = body.items()
    return name.startswith("source->") and isinstance(shown["topics"], list)


def reads_config(body: Any) -> bool:
    return bool(body["connector.class"] == PLUGIN)


def reads_offsets(body: Any) -> bool:
    return list(body) == ["offsets"]


def reads_message(body: Any) -> bool:
    return "successfully" in body["message"]


KCCTL = {
    "info": Sent("GET", "/", 200, reads_version),
    "plugins": Sent("GET", "/connector-plugins?connectorsOnly=true", 200, reads_plugins),
    "plugins-all": Sent("GET", "/connector-plugins?connectorsOnly=false", 200, bool),
    "plugin-config": Sent(
        "GET",
        f"/connector-plugins/{PLUGIN}/config",
        200,
        lambda body: {"name", "type", "required", "default_value", "documentation"} <= {*body[0]},
    ),
    "validate": Sent(
        "PUT", f"/connector-plugins/{PLUGIN}/config/validate", 200, reads_validation, SOURCE_CONFIG
    ),
    "connectors": Sent("GET", "/connectors/", 200, lambda body: NAME in body),
    "create": Sent(
        "POST",
        "/connectors/",
        201,
        reads_info,
        {"name": "source->new", "config": {**SOURCE_CONFIG, "tasks.max": 2}},
    ),
    "connector": Sent("GET", "/connectors/{c}", 200, reads_info),
    "restart": Sent("POST", "/connectors/{c}/restart", 204),
    "restart-all": Sent(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=false", 202, reads_status
    ),
    "restart-failed": Sent(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=true", 202, reads_status
    ),
    "pause": Sent("PUT", "/connectors/{c}/pause", 202),
    "resume": Sent("PUT", "/connectors/{c}/resume", 202),
    "stop": Sent("PUT", "/connectors/{c}/stop", 204),
    "delete": Sent("DELETE", "/connectors/{c}", 204),
    "expand": Sent("GET", "/connectors?expand=info&expand=status", 200, reads_expanded),
    "status": Sent("GET", "/connectors/{c}/status", 200, reads_status),
    "topics": Sent("GET", "/connectors/{c}/topics", 200, reads_topics),
    "config": Sent("GET", "/connectors/{c}/config", 200, reads_config),
    "update": Sent(
        "PUT", "/connectors/{c}/config", 200, reads_info, {**SOURCE_CONFIG, "tasks.max": 1}
    ),
    "offsets": Sent("GET", "/connectors/{c}/offsets", 200, reads_offsets),
    "reset-offsets": Sent("DELETE", "/connectors/{c}/offsets", 200, reads_message, stopped=True),
    "patch-offsets": Sent(
        "PATCH", "/connectors/{c}/offsets", 200, reads_message, OFFSETS, stopped=True
    ),
    "restart-task": Sent("POST", "/connectors/{c}/tasks/0/restart", 204),
    "tasks-config": Sent(
        "GET", "/connectors/{c}/tasks-config", 404, lambda body: body["error_code"] == 404
    ),  # gone since Kafka 4.0
    "set-logger": Sent(
        "PUT", "/admin/loggers/org.example.a", 200, lambda body: "org.example.a" in body,
        {"level": "DEBUG"},
    ),
    "set-logger-everywhere": Sent(
        "PUT", "/admin/loggers/org.example.b?scope=cluster", 204, body={"level": "DEBUG"}
    ),
    "loggers": Sent("GET", "/admin/loggers/", 200, lambda body: body["root"]["level"]),
    "logger": Sent("GET", "/admin/loggers/root", 200, lambda body: body["level"]),
}  # fmt: skip

KAFKA_UI = {
    "card": Sent("GET", "/", 200, reads_version),
    "list": Sent("GET", "/connectors?expand=info&expand=status", 200, reads_expanded),
    "names": Sent("GET", "/connectors", 200, lambda body: NAME in body),
    "topics": Sent("GET", "/connectors/{c}/topics", 200, reads_topics),
    "connector": Sent("GET", "/connectors/{c}", 200, reads_info),
    "status": Sent("GET", "/connectors/{c}/status", 200, reads_status),
    "config": Sent("GET", "/connectors/{c}/config", 200, reads_config),
    "tasks": Sent(
        "GET",
        "/connectors/{c}/tasks",
        200,
        lambda body: [task["id"]["task"] for task in body] == [0, 1] and body[0]["config"],
    ),
    "task": Sent("GET", "/connectors/{c}/tasks/1/status", 200, lambda body: body["id"] == 1),
    "create": Sent(
        "POST", "/connectors", 201, reads_info, {"name": "source->ui", "config": SOURCE_CONFIG}
    ),
    "edit": Sent("PUT", "/connectors/{c}/config", 200, reads_info, SOURCE_CONFIG),
    "delete": Sent("DELETE", "/connectors/{c}", 204),
    "pause": Sent("PUT", "/connectors/{c}/pause", 202),
    "resume": Sent("PUT", "/connectors/{c}/resume", 202),
    "stop": Sent("PUT", "/connectors/{c}/stop", 204),
    "restart": Sent("POST", "/connectors/{c}/restart?includeTasks=false&onlyFailed=false", 204),
    "restart-all": Sent(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=false", 202, reads_status
    ),
    "restart-task": Sent("POST", "/connectors/{c}/tasks/1/restart", 204),
    "offsets": Sent("GET", "/connectors/{c}/offsets", 200, reads_offsets),
    "reset-offsets": Sent("DELETE", "/connectors/{c}/offsets", 200, reads_message, stopped=True),
    "plugins": Sent("GET", "/connector-plugins", 200, reads_plugins),
    "validate": Sent(
        "PUT", f"/connector-plugins/{PLUGIN}/config/validate", 200, reads_validation, SOURCE_CONFIG
    ),
}

AKHQ = {
    "list": Sent("GET", "/connectors?expand=info&expand=status", 200, reads_expanded),
    "connector": Sent("GET", "/connectors/{c}", 200, reads_info),
    "status": Sent("GET", "/connectors/{c}/status", 200, reads_status),
    "create": Sent(
        "POST", "/connectors", 201, reads_info, {"name": "source->hq", "config": SOURCE_CONFIG}
    ),
    "edit": Sent("PUT", "/connectors/{c}/config", 200, reads_info, SOURCE_CONFIG),
    "delete": Sent("DELETE", "/connectors/{c}", 204),
    "pause": Sent("PUT", "/connectors/{c}/pause", 202),
    "resume": Sent("PUT", "/connectors/{c}/resume", 202),
    "restart": Sent("POST", "/connectors/{c}/restart", 204),
    "restart-task": Sent("POST", "/connectors/{c}/tasks/0/restart", 204),
    "plugins": Sent("GET", "/connector-plugins", 200, reads_plugins),
    "form": Sent(
        "PUT",
        "/connector-plugins/MirrorSourceConnector/config/validate",
        200,
        reads_validation,
        {"connector.class": PLUGIN, "topics": "getTopics"},
    ),
}

REDPANDA_CONSOLE = {
    "root": Sent("GET", "/", 200, reads_version),
    "plugins": Sent("GET", "/connector-plugins", 200, reads_plugins),
    "list": Sent("GET", "/connectors?expand=info&expand=status", 200, reads_expanded),
    "connector": Sent("GET", "/connectors/{c}", 200, reads_info),
    "status": Sent("GET", "/connectors/{c}/status", 200, reads_status),
    "config": Sent("GET", "/connectors/{c}/config", 200, reads_config),
    "topics": Sent("GET", "/connectors/{c}/topics", 200, reads_topics),
    "reset-topics": Sent("PUT", "/connectors/{c}/topics/reset", 202),
    "create": Sent(
        "POST", "/connectors", 201, reads_info, {"name": "source->rp", "config": SOURCE_CONFIG}
    ),
    "edit": Sent("PUT", "/connectors/{c}/config", 200, reads_info, SOURCE_CONFIG),
    "delete": Sent("DELETE", "/connectors/{c}", 204),
    "pause": Sent("PUT", "/connectors/{c}/pause", 202),
    "resume": Sent("PUT", "/connectors/{c}/resume", 202),
    "stop": Sent("PUT", "/connectors/{c}/stop", 204),
    "restart": Sent(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=true", 202, reads_status
    ),
    "restart-task": Sent("POST", "/connectors/{c}/tasks/0/restart", 204),
    "validate": Sent(
        "PUT",
        "/connector-plugins/MirrorSource/config/validate",
        200,
        reads_validation,
        SOURCE_CONFIG,
    ),
}

STRIMZI = {
    "names": Sent("GET", "/connectors", 200, lambda body: NAME in body),
    "put": Sent("PUT", "/connectors/{c}/config", 200, reads_info, SOURCE_CONFIG),
    "status": Sent("GET", "/connectors/{c}/status", 200, reads_status),
    "topics": Sent("GET", "/connectors/{c}/topics", 200, reads_topics),
    "pause": Sent("PUT", "/connectors/{c}/pause", 202),
    "resume": Sent("PUT", "/connectors/{c}/resume", 202),
    "stop": Sent("PUT", "/connectors/{c}/stop", 204),
    "restart": Sent(
        "POST", "/connectors/{c}/restart?includeTasks=true&onlyFailed=false", 202, reads_status
    ),
    "restart-task": Sent("POST", "/connectors/{c}/tasks/1/restart", 204),
    "offsets": Sent("GET", "/connectors/{c}/offsets", 200, reads_offsets),
    "patch-offsets": Sent(
        "PATCH", "/connectors/{c}/offsets", 200, reads_message, OFFSETS, stopped=True
    ),
    "reset-offsets": Sent("DELETE", "/connectors/{c}/offsets", 200, reads_message, stopped=True),
    "plugins": Sent("GET", "/connector-plugins", 200, reads_plugins),
    "loggers": Sent("GET", "/admin/loggers", 200, bool),
    "set-logger": Sent(
        "PUT", "/admin/loggers/org.example.c?scope=cluster", 204, body={"level": "WARN"}
    ),
    "delete": Sent("DELETE", "/connectors/{c}", 204),
}

_numbers = count()


@pytest.fixture(scope="module")
def stage() -> Iterator[HerderHarness]:
    """A worker with one source connector that nobody touches."""
    with running_herder() as made:
        make_connector(made, NAME)
        yield made


@pytest.fixture(scope="module")
def console(stage: HerderHarness) -> Iterator[RestClient]:
    with running_rest_server(stage.herder) as server:
        client = RestClient(server.address)
        yield client
        client.close()


def make_connector(stage: HerderHarness, name: str) -> None:
    stage.herder.put_connector_config(name, {**SOURCE_CONFIG, "name": name})
    stage.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")


def connector_for(call: Sent, stage: HerderHarness) -> str:
    """The one that nobody touches, if the call only looks; else one of its own."""
    if call.method == "GET" or "{c}" not in call.path:
        return NAME
    name = f"source->{next(_numbers)}"
    make_connector(stage, name)
    if call.stopped:
        stage.herder.stop_connector(name)
    return name


def ask(console: RestClient, call: Sent, name: str, headers: dict[str, str]) -> RestResponse:
    path = call.path.replace("{c}", name.replace(">", "%3E"))
    body = None if call.body is None else json.dumps(call.body)
    return console.request(call.method, path, body, headers)


def is_understood(call: Sent, answer: RestResponse) -> bool:
    assert answer.status == call.status, answer.content
    return bool(call.reads(answer.json if answer.content else None))


@pytest.mark.parametrize("call", KCCTL.values(), ids=KCCTL)
def test_kcctl(call: Sent, stage: HerderHarness, console: RestClient) -> None:
    headers = {"Accept": "application/json", **(JSON_HEADERS if call.body else {})}
    assert is_understood(call, ask(console, call, connector_for(call, stage), headers))


@pytest.mark.parametrize("call", KAFKA_UI.values(), ids=KAFKA_UI)
def test_kafka_ui(call: Sent, stage: HerderHarness, console: RestClient) -> None:
    headers = {"Accept": "application/json", **(JSON_HEADERS if call.body else {})}
    assert is_understood(call, ask(console, call, connector_for(call, stage), headers))


@pytest.mark.parametrize("call", AKHQ.values(), ids=AKHQ)
def test_akhq(call: Sent, stage: HerderHarness, console: RestClient) -> None:
    headers = {"Accept": "application/json", **JSON_HEADERS}
    assert is_understood(call, ask(console, call, connector_for(call, stage), headers))


@pytest.mark.parametrize("call", REDPANDA_CONSOLE.values(), ids=REDPANDA_CONSOLE)
def test_redpanda_console(call: Sent, stage: HerderHarness, console: RestClient) -> None:
    headers = {
        "Accept": "application/json",
        "User-Agent": "CloudHut-Connect-Client",
        **JSON_HEADERS,
    }
    assert is_understood(call, ask(console, call, connector_for(call, stage), headers))


@pytest.mark.parametrize("call", STRIMZI.values(), ids=STRIMZI)
def test_strimzi(call: Sent, stage: HerderHarness, console: RestClient) -> None:
    headers = {"Accept": "application/json", **(JSON_HEADERS if call.body else {})}
    assert is_understood(call, ask(console, call, connector_for(call, stage), headers))


def test_a_failed_task_shows_its_cause_first(stage: HerderHarness, console: RestClient) -> None:
    name = f"source->{next(_numbers)}"
    make_connector(stage, name)
    stage.probe.task_group(name).fail(1, ValueError("orders-1: too large"))
    stage.wait_for_states(name, "RUNNING", "RUNNING", "FAILED")
    path = f"/connectors/{name.replace('>', '%3E')}/tasks/1/status"
    trace = console.request("GET", path).json["trace"]
    assert "orders-1: too large" in trace.splitlines()[0]


def test_an_error_has_the_body_that_every_client_reads(console: RestClient) -> None:
    answer = console.request("GET", "/connectors/nope/status")
    assert (answer.status, answer.message) == (404, "No status found for connector nope")
    again = console.send_json("POST", "/connectors", {"name": NAME, "config": SOURCE_CONFIG})
    assert (again.status, again.message) == (409, f"Connector {NAME} already exists")
