"""A herder that returns what the test sets, in the JSON of the REST API.

It turns the JSON of a recording into values and errors. The tests compare what `rest` makes of
them. It records every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    LoggerLevel,
    PutConnectorResult,
    RawConfig,
    ServerInfo,
    StateInfo,
    TaskInfo,
    WorkerStatus,
)
from sparkmirror.errors import (
    AlreadyExists,
    BadRequest,
    Forbidden,
    NotFound,
    RequestError,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import TargetState

ERRORS_BY_STATUS: dict[int, type[RequestError]] = {
    400: BadRequest,
    403: Forbidden,
    404: NotFound,
    409: AlreadyExists,
    500: RequestFailed,
}


class ScriptedHerder:
    """A `Herder` with a scripted response."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._status = 200
        self._body: Any = None

    def set_response(self, status: int, body: Any) -> None:
        """Set the response of the next calls and forget the recorded calls."""
        self.calls = []
        self._status = status
        self._body = body

    def _respond(self, *call: Any) -> Any:
        self.calls.append(call)
        if self._status in ERRORS_BY_STATUS and "error_code" in (self._body or {}):
            raise ERRORS_BY_STATUS[self._status](self._body["message"])
        return self._body

    def server_info(self) -> ServerInfo:
        return ServerInfo(**self._respond("worker"))

    def health(self) -> WorkerStatus:
        return WorkerStatus(**self._respond("health"))

    def reads_from_memory(self) -> bool:
        return True

    def connectors(self) -> Sequence[str]:
        return list(self._respond("connectors"))

    def connector_info(self, name: str) -> ConnectorInfo:
        response = self._respond("info", name)
        if "tasks" in response and "type" in response:
            return info_from_json(response)
        if "info" in response.get(name, {}):
            return info_from_json(response[name]["info"])
        return ConnectorInfo(name=name, config=response, tasks=(), type="source")

    def connector_status(self, name: str) -> ConnectorStateInfo:
        response = self._respond("status", name)
        return status_from_json(response if "connector" in response else response[name]["status"])

    def task_status(self, name: str, task: int) -> StateInfo:
        return state_from_json(self._respond("task_status", name, task))

    def task_configs(self, name: str) -> Sequence[TaskInfo]:
        return [
            TaskInfo(id=ConnectorTaskId(**task["id"]), config=task["config"])
            for task in self._respond("tasks", name)
        ]

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        response = self._respond("create", name, config, initial_state)
        return PutConnectorResult(info=info_from_json(response), created=True)

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        response = self._respond("put_config", name, config)
        return PutConnectorResult(info=info_from_json(response), created=self._status == 201)

    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo:
        return info_from_json(self._respond("patch_config", name, patch))

    def delete_connector(self, name: str) -> None:
        self._respond("delete", name)

    def pause_connector(self, name: str) -> None:
        self._respond("pause", name)

    def resume_connector(self, name: str) -> None:
        self._respond("resume", name)

    def stop_connector(self, name: str) -> None:
        self._respond("stop", name)

    def restart_connector(self, name: str) -> None:
        self._respond("restart", name)

    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo:
        return status_from_json(self._respond("restart_with", name, include_tasks, only_failed))

    def restart_task(self, name: str, task: int) -> None:
        self._respond("restart_task", name, task)

    def active_topics(self, name: str) -> Sequence[str]:
        return list(self._respond("active_topics", name)[name]["topics"])

    def reset_active_topics(self, name: str) -> None:
        self._respond("reset_active_topics", name)

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        return [ConnectorOffset(**entry) for entry in self._respond("offsets", name)["offsets"]]

    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        return str(self._respond("alter_offsets", name, offsets)["message"])

    def reset_connector_offsets(self, name: str) -> str:
        return str(self._respond("reset_offsets", name)["message"])

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        return list(self._respond("plugins", connectors_only))

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        return list(self._respond("plugin_config", plugin, version))

    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]:
        return dict(self._respond("validate", plugin, config))

    def all_logger_levels(self) -> Mapping[str, LoggerLevel]:
        return {name: level_from_json(level) for name, level in self._respond("loggers").items()}

    def logger_level(self, name: str) -> LoggerLevel:
        return level_from_json(self._respond("logger", name))

    def set_logger_level(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        return list(self._respond("set_logger", name, level, everywhere) or ())


def info_from_json(response: Any) -> ConnectorInfo:
    """A connector, from its JSON."""
    tasks = tuple(ConnectorTaskId(**task) for task in response["tasks"])
    return ConnectorInfo(
        name=response["name"], config=response["config"], tasks=tasks, type=response["type"]
    )


def status_from_json(response: Any) -> ConnectorStateInfo:
    """A status, from its JSON."""
    return ConnectorStateInfo(
        name=response["name"],
        connector=state_from_json(response["connector"]),
        tasks={task["id"]: state_from_json(task) for task in response["tasks"]},
        type=response["type"],
    )


def state_from_json(response: Any) -> StateInfo:
    """A state, from its JSON."""
    return StateInfo(
        state=response["state"],
        worker_id=response["worker_id"],
        version=response["version"],
        trace=response.get("trace"),
    )


def level_from_json(response: Any) -> LoggerLevel:
    """A logger's level, from its JSON."""
    return LoggerLevel(level=response["level"], last_modified_ms=response["last_modified"])
