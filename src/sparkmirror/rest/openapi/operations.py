"""What each method on each path does: its body, its query parameters and its answers.

The statuses are those that an operation gives for its own reasons. What any request may get (401,
405, 406, 408, 413, 415, 500, 503) is the default answer of the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.rest.http.call import JSON, TEXT
from sparkmirror.rest.openapi.schemas import Schema, array_of

_FLAG: Final[Schema] = {"type": "boolean"}
_ERROR: Final = "Error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method on one path."""

    summary: str
    answers: Mapping[int, str | None]
    """The schema of each status; None: the answer has no body."""
    body: str | None = None
    """The schema of the body of the request."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    media_types: tuple[str, ...] = (JSON,)
    """Those of the answers that are no errors."""


def _read(
    summary: str, schema: str, *errors: int, query: Mapping[str, Schema] | None = None
) -> Operation:
    return Operation(summary=summary, answers=_answers({200: schema}, *errors), query=query or {})


def _change(
    summary: str,
    answers: Mapping[int, str | None],
    *errors: int,
    query: Mapping[str, Schema] | None = None,
) -> Operation:
    return Operation(summary=summary, answers=_answers(answers, *errors), query=query or {})


def _write(
    summary: str,
    body: str,
    answers: Mapping[int, str | None],
    *errors: int,
    query: Mapping[str, Schema] | None = None,
) -> Operation:
    """An operation with a body. A faulty body is a 500, as in Connect."""
    return Operation(
        summary=summary, answers=_answers(answers, *errors, 500), body=body, query=query or {}
    )


def _answers(answers: Mapping[int, str | None], *errors: int) -> Mapping[int, str | None]:
    return {**answers, **dict.fromkeys(errors, _ERROR)}


_ONE: Final = "/connectors/{connector}"
_TASK: Final = f"{_ONE}/tasks/{{task}}"
_PLUGIN: Final = "/connector-plugins/{plugin}/config"
_LOGGER: Final = "/admin/loggers/{logger}"

OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("GET", "/"): _read("The version whose behaviour the worker has.", "ServerInfo"),
    ("GET", "/health"): _change(
        "Whether the worker and its connectors are well.",
        {200: "WorkerStatus", 500: "WorkerStatus", 503: "WorkerStatus"},
    ),
    ("GET", "/metrics"): Operation(
        summary="The figures of the worker as Prometheus text, or as OpenMetrics on request.",
        answers={200: "Metrics"},
        media_types=(TEXT, "application/openmetrics-text"),
    ),
    ("GET", "/openapi.json"): _read("This description.", "OpenApi"),
    ("GET", "/connectors"): _read(
        "The names of the connectors, or with `expand` their infos and statuses.",
        "Connectors",
        query={"expand": array_of({"type": "string", "enum": ["info", "status"]})},
    ),
    ("POST", "/connectors"): _write(
        "Create a connector.", "CreateConnectorRequest", {201: "ConnectorInfo"}, 400, 403, 409
    ),
    ("GET", _ONE): _read("A connector's config and tasks.", "ConnectorInfo", 404, 409),
    ("DELETE", _ONE): _change("Remove a connector.", {204: None}, 403, 404, 409),
    ("GET", f"{_ONE}/config"): _read("A connector's config.", "ConnectorConfig", 404, 409),
    ("PUT", f"{_ONE}/config"): _write(
        "Create a connector or replace its config.",
        "NewConnectorConfig",
        {200: "ConnectorInfo", 201: "ConnectorInfo"},
        *(400, 403, 409),
    ),
    ("PATCH", f"{_ONE}/config"): _write(
        "Change some keys of a connector's config; null removes one.",
        "NewConnectorConfig",
        {200: "ConnectorInfo"},
        *(400, 403, 404, 409),
    ),
    ("GET", f"{_ONE}/status"): _read(
        "The states of a connector and its tasks.", "ConnectorStateInfo", 404, 409
    ),
    ("PUT", f"{_ONE}/pause"): _change("Pause a connector.", {202: None}, 404, 409),
    ("PUT", f"{_ONE}/resume"): _change("Resume a connector.", {202: None}, 404, 409),
    ("PUT", f"{_ONE}/stop"): _change("Stop a connector.", {204: None}, 404, 409),
    ("POST", f"{_ONE}/restart"): _change(
        "Restart a connector, and with a flag its tasks.",
        {202: "ConnectorStateInfo", 204: None},
        *(404, 409),
        query={"includeTasks": _FLAG, "onlyFailed": _FLAG},
    ),
    ("GET", f"{_ONE}/tasks"): _read("The configs of a connector's tasks.", "TaskInfos", 404, 409),
    ("GET", f"{_TASK}/status"): _read("The state of a task.", "TaskState", 404, 409),
    ("POST", f"{_TASK}/restart"): _change("Restart a task.", {204: None}, 404, 409),
    ("GET", f"{_ONE}/topics"): _read(
        "The topics that a connector has written to.", "ActiveTopics", 403, 409
    ),
    ("PUT", f"{_ONE}/topics/reset"): _change("Clear that list.", {202: None}, 403, 409),
    ("GET", f"{_ONE}/offsets"): _read("A connector's offsets.", "ConnectorOffsets", 404, 409),
    ("PATCH", f"{_ONE}/offsets"): _write(
        "Set offsets of a stopped connector; null removes one.",
        "AlterOffsetsRequest",
        {200: "Message"},
        *(400, 404, 409),
    ),
    ("DELETE", f"{_ONE}/offsets"): _change(
        "Remove all offsets of a stopped connector.", {200: "Message"}, 400, 404, 409, 500
    ),
    ("GET", f"{_ONE}/partitions"): _read(
        "How far each source partition is.", "Partitions", 404, 409
    ),
    ("GET", f"{_ONE}/events"): _read("The latest events of source partitions.", "Events", 404, 409),
    ("GET", f"{_ONE}/groups"): _read(
        "Where the offset of each consumer group goes, and why.",
        "Groups",
        *(404, 409),
        query={"group": {"type": "string"}},
    ),
    ("GET", "/connector-plugins"): _read(
        "The plug-ins of the worker.", "PluginInfos", query={"connectorsOnly": _FLAG}
    ),
    ("GET", _PLUGIN): _read(
        "The keys of a plug-in.",
        "ConfigKeyInfos",
        *(400, 404),
        query={"version": {"type": "string"}},
    ),
    ("PUT", f"{_PLUGIN}/validate"): _write(
        "Validate a config.", "NewConnectorConfig", {200: "ConfigInfos"}, 400
    ),
    ("GET", "/admin/loggers"): _read("The levels of loggers.", "LoggerLevels"),
    ("GET", _LOGGER): _read("The level of a logger.", "LoggerLevel", 404),
    ("PUT", _LOGGER): _write(
        "Set the level of a logger.",
        "SetLevelRequest",
        {200: "Names", 204: None},
        *(400, 404),
        query={"scope": {"type": "string", "enum": ["worker", "cluster"]}},
    ),
}
