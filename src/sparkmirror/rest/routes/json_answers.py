"""The JSON of Connect's answers: which members, in which order."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.connect.herder.herder import (
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStateInfo,
    ConnectorTaskId,
    LoggerLevel,
    StateInfo,
    TaskInfo,
)
from sparkmirror.mirror.connect_topics.connect_json import JsonValue


def connector_info(connector: ConnectorInfo) -> JsonValue:
    """A connector as it was configured."""
    return {
        "name": connector.name,
        "config": connector.config,
        "tasks": [task_id(task) for task in connector.tasks],
        "type": connector.type,
    }


def task_id(task: ConnectorTaskId) -> JsonValue:
    """Which task."""
    return {"connector": task.connector, "task": task.task}


def task_info(configured: TaskInfo) -> JsonValue:
    """A task as its connector configured it."""
    return {"id": task_id(configured.id), "config": configured.config}


def connector_status(connector: ConnectorStateInfo) -> JsonValue:
    """How a connector and its tasks are doing."""
    return {
        "name": connector.name,
        "connector": _state_members(connector.connector),
        "tasks": [task_state(number, each) for number, each in sorted(connector.tasks.items())],
        "type": connector.type,
    }


def task_state(number: int, state: StateInfo) -> JsonValue:
    """How a task is doing."""
    return {"id": number, **_state_members(state)}


def connector_offsets(entries: Iterable[ConnectorOffset]) -> JsonValue:
    """Where a connector stands."""
    return {"offsets": [{"partition": each.partition, "offset": each.offset} for each in entries]}


def logger_level(level: LoggerLevel) -> JsonValue:
    """A logger's level."""
    return {"level": level.level, "last_modified": level.last_modified_ms}


def _state_members(state: StateInfo) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {
        "state": state.state,
        "worker_id": state.worker_id,
        "version": state.version,
    }
    return {**shown, "trace": state.trace} if state.trace else shown
