"""A worker that gives the answers of a recorded one: to each question what was recorded next.

Only values and errors come out of the recording; paths, statuses, bodies and headers are what the
REST room makes of them, and what tests compare. Every question is kept for the test to look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkmirror.connect.herding import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    LoggerLevel,
    Offsets,
    Put,
    StateInfo,
    TaskId,
    TaskInfo,
    WorkerInfo,
)
from sparkmirror.errors import (
    AlreadyExists,
    BadRequest,
    Forbidden,
    NotFound,
    RequestError,
    RequestFailed,
)
from sparkmirror.mirror.connect_configs import TargetState

ERRORS: dict[int, type[RequestError]] = {
    400: BadRequest,
    403: Forbidden,
    404: NotFound,
    409: AlreadyExists,
    500: RequestFailed,
}


class ScriptedHerding:
    """Keeps `Herding`: says what it was told to say."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._status = 200
        self._body: Any = None

    def will_say(self, status: int, body: Any) -> None:
        """Take the next answer, in the JSON of the REST API; forget what was asked before."""
        self.asked = []
        self._status = status
        self._body = body

    def _say(self, *question: Any) -> Any:
        self.asked.append(question)
        if self._status in ERRORS and "error_code" in (self._body or {}):
            raise ERRORS[self._status](self._body["message"])
        return self._body

    def worker(self) -> WorkerInfo:
        return WorkerInfo(**self._say("worker"))

    def health(self) -> Health:
        return Health(**self._say("health"))

    def connectors(self) -> Sequence[str]:
        return list(self._say("connectors"))

    def info(self, name: str) -> ConnectorInfo:
        said = self._say("info", name)
        if "tasks" in said and "type" in said:
            return read_info(said)
        if "info" in said.get(name, {}):
            return read_info(said[name]["info"])
        return ConnectorInfo(name=name, config=said, tasks=(), type="source")

    def status(self, name: str) -> ConnectorStatus:
        said = self._say("status", name)
        return read_status(said if "connector" in said else said[name]["status"])

    def task_status(self, name: str, task: int) -> StateInfo:
        return read_state(self._say("task_status", name, task))

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        return [
            TaskInfo(id=TaskId(**task["id"]), config=task["config"])
            for task in self._say("tasks", name)
        ]

    def create(self, name: str, config: Config, initial_state: TargetState | None) -> Put:
        said = self._say("create", name, config, initial_state)
        return Put(info=read_info(said), created=True)

    def put_config(self, name: str, config: Config) -> Put:
        said = self._say("put_config", name, config)
        return Put(info=read_info(said), created=self._status == 201)

    def patch_config(self, name: str, patch: Config) -> ConnectorInfo:
        return read_info(self._say("patch_config", name, patch))

    def delete(self, name: str) -> None:
        self._say("delete", name)

    def pause(self, name: str) -> None:
        self._say("pause", name)

    def resume(self, name: str) -> None:
        self._say("resume", name)

    def stop(self, name: str) -> None:
        self._say("stop", name)

    def restart(self, name: str) -> None:
        self._say("restart", name)

    def restart_with(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        return read_status(self._say("restart_with", name, include_tasks, only_failed))

    def restart_task(self, name: str, task: int) -> None:
        self._say("restart_task", name, task)

    def active_topics(self, name: str) -> Sequence[str]:
        return list(self._say("active_topics", name)[name]["topics"])

    def reset_active_topics(self, name: str) -> None:
        self._say("reset_active_topics", name)

    def offsets(self, name: str) -> Sequence[Offsets]:
        return [Offsets(**entry) for entry in self._say("offsets", name)["offsets"]]

    def alter_offsets(self, name: str, offsets: Sequence[Offsets]) -> str:
        return str(self._say("alter_offsets", name, offsets)["message"])

    def reset_offsets(self, name: str) -> str:
        return str(self._say("reset_offsets", name)["message"])

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        return list(self._say("plugins", connectors_only))

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        return list(self._say("plugin_config", plugin, version))

    def validate(self, plugin: str, config: Config) -> Mapping[str, Any]:
        return dict(self._say("validate", plugin, config))

    def loggers(self) -> Mapping[str, LoggerLevel]:
        return {name: read_level(level) for name, level in self._say("loggers").items()}

    def logger(self, name: str) -> LoggerLevel:
        return read_level(self._say("logger", name))

    def set_logger(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        return list(self._say("set_logger", name, level, everywhere) or ())


def read_info(said: Any) -> ConnectorInfo:
    """A connector, from its JSON."""
    tasks = tuple(TaskId(**task) for task in said["tasks"])
    return ConnectorInfo(name=said["name"], config=said["config"], tasks=tasks, type=said["type"])


def read_status(said: Any) -> ConnectorStatus:
    """A status, from its JSON."""
    return ConnectorStatus(
        name=said["name"],
        connector=read_state(said["connector"]),
        tasks={task["id"]: read_state(task) for task in said["tasks"]},
        type=said["type"],
    )


def read_state(said: Any) -> StateInfo:
    """A state, from its JSON."""
    return StateInfo(
        state=said["state"],
        worker_id=said["worker_id"],
        version=said["version"],
        trace=said.get("trace"),
    )


def read_level(said: Any) -> LoggerLevel:
    """A logger's level, from its JSON."""
    return LoggerLevel(level=said["level"], last_modified_ms=said["last_modified"])
