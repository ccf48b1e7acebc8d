"""A worker that gives the answers of a recorded one: to each question what was recorded next.

Only values and errors come out of the recording; paths, statuses, bodies and headers are what the
REST room makes of them, and what tests compare. Every question is kept for the test to look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    ConnectorTaskId,
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
    """Keeps `Herding`: says what it was told to say."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._status = 200
        self._body: Any = None

    def set_response(self, status: int, body: Any) -> None:
        """Take the next answer, in the JSON of the REST API; forget what was asked before."""
        self.calls = []
        self._status = status
        self._body = body

    def _respond(self, *question: Any) -> Any:
        self.calls.append(question)
        if self._status in ERRORS_BY_STATUS and "error_code" in (self._body or {}):
            raise ERRORS_BY_STATUS[self._status](self._body["message"])
        return self._body

    def server_info(self) -> ServerInfo:
        return ServerInfo(**self._respond("worker"))

    def health(self) -> WorkerStatus:
        return WorkerStatus(**self._respond("health"))

    def connectors(self) -> Sequence[str]:
        return list(self._respond("connectors"))

    def connector_info(self, name: str) -> ConnectorInfo:
        said = self._respond("info", name)
        if "tasks" in said and "type" in said:
            return info_from_json(said)
        if "info" in said.get(name, {}):
            return info_from_json(said[name]["info"])
        return ConnectorInfo(name=name, config=said, tasks=(), type="source")

    def connector_status(self, name: str) -> ConnectorStateInfo:
        said = self._respond("status", name)
        return status_from_json(said if "connector" in said else said[name]["status"])

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
        said = self._respond("create", name, config, initial_state)
        return PutConnectorResult(info=info_from_json(said), created=True)

    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult:
        said = self._respond("put_config", name, config)
        return PutConnectorResult(info=info_from_json(said), created=self._status == 201)

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


def info_from_json(said: Any) -> ConnectorInfo:
    """A connector, from its JSON."""
    tasks = tuple(ConnectorTaskId(**task) for task in said["tasks"])
    return ConnectorInfo(name=said["name"], config=said["config"], tasks=tasks, type=said["type"])


def status_from_json(said: Any) -> ConnectorStateInfo:
    """A status, from its JSON."""
    return ConnectorStateInfo(
        name=said["name"],
        connector=state_from_json(said["connector"]),
        tasks={task["id"]: state_from_json(task) for task in said["tasks"]},
        type=said["type"],
    )


def state_from_json(said: Any) -> StateInfo:
    """A state, from its JSON."""
    return StateInfo(
        state=said["state"],
        worker_id=said["worker_id"],
        version=said["version"],
        trace=said.get("trace"),
    )


def level_from_json(said: Any) -> LoggerLevel:
    """A logger's level, from its JSON."""
    return LoggerLevel(level=said["level"], last_modified_ms=said["last_modified"])
