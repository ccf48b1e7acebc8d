"""The JSON of Connect's responses, with the members in Connect's order."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    LoggerLevel,
    StateInfo,
    TaskInfo,
)
from sparkmirror.mirror.connect_topics.connect_json import JsonValue


def connector_info(connector: ConnectorInfo) -> JsonValue:
    """A connector's config and task ids."""
    return {
        "name": connector.name,
        "config": connector.config,
        "tasks": [task_id(task) for task in connector.tasks],
        "type": connector.type,
    }


def task_id(task: ConnectorTaskId) -> JsonValue:
    """A task id."""
    return {"connector": task.connector, "task": task.task}


def task_info(configured: TaskInfo) -> JsonValue:
    """A task's id and config."""
    return {"id": task_id(configured.id), "config": configured.config}


def connector_status(connector: ConnectorStateInfo) -> JsonValue:
    """The states of a connector and its tasks."""
    return {
        "name": connector.name,
        "connector": _state_members(connector.connector),
        "tasks": [task_state(number, each) for number, each in sorted(connector.tasks.items())],
        "type": connector.type,
    }


def task_state(number: int, state: StateInfo) -> JsonValue:
    """The state of a task."""
    return {"id": number, **_state_members(state)}


def connector_offsets(entries: Iterable[ConnectorOffset]) -> JsonValue:
    """The source offsets of a connector."""
    return {"offsets": [{"partition": each.partition, "offset": each.offset} for each in entries]}


def logger_level(level: LoggerLevel) -> JsonValue:
    """The level of a logger."""
    return {"level": level.level, "last_modified": level.last_modified_ms}


def _state_members(state: StateInfo) -> dict[str, JsonValue]:
    members: dict[str, JsonValue] = {
        "state": state.state,
        "worker_id": state.worker_id,
        "version": state.version,
    }
    return {**members, "trace": state.trace} if state.trace else members
