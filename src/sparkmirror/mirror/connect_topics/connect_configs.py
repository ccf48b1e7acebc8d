"""The records of Connect's config topic: eight kinds with different key prefixes.

    key                         value
    target-state-<connector>    {"state":"PAUSED","state.v2":"STOPPED"}      null: deleted
    connector-<connector>       {"properties":{...}}                         null: deleted
    task-<connector>-<n>        {"properties":{...}}
    commit-<connector>          {"tasks":n}
    restart-connector-<c>       {"include-tasks":bool,"only-failed":bool}
    tasks-fencing-<connector>   {"task-count":n}
    session-key                 {"key":"...","algorithm":"...","creation-timestamp":ms}
    logger-cluster-<namespace>  {"level":"DEBUG"}

`cluster_config_state` applies a sequence of these records. Properties keep their order: Connect
stores a connector config as it was sent, a task config in the order of a HashMap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics import connect_json
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.mirror.offsets.records import RecordBytes

ConfigProperties: TypeAlias = Mapping[str, str | None]

TARGET_STATE_PREFIX = "target-state-"
CONNECTOR_PREFIX = "connector-"
TASK_PREFIX = "task-"
COMMIT_TASKS_PREFIX = "commit-"
RESTART_PREFIX = "restart-connector-"
TASK_COUNT_RECORD_PREFIX = "tasks-fencing-"
SESSION_KEY_KEY = "session-key"
LOGGER_CLUSTER_PREFIX = "logger-cluster-"


class TargetState(Enum):
    """The state that an operator requests for a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorTargetState:
    """The target state of a connector; None after its deletion."""

    connector: str
    state: TargetState | None

    def encode(self) -> RecordBytes:
        """Return the record. Workers that do not know STOPPED read PAUSED."""
        if self.state is None:
            return _tombstone(TARGET_STATE_PREFIX + self.connector)
        old = TargetState.PAUSED if self.state is TargetState.STOPPED else self.state
        return _record(
            TARGET_STATE_PREFIX + self.connector, {"state": old.value, "state.v2": self.state.value}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorConfig:
    """The properties of a connector; None after its deletion."""

    connector: str
    properties: ConfigProperties | None

    def encode(self) -> RecordBytes:
        """Return the record."""
        if self.properties is None:
            return _tombstone(CONNECTOR_PREFIX + self.connector)
        return _record(CONNECTOR_PREFIX + self.connector, {"properties": self.properties})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """The properties of one task. They take effect with the next TasksCommit."""

    connector: str
    task: int
    properties: ConfigProperties

    def encode(self) -> RecordBytes:
        """Return the record."""
        return _record(
            f"{TASK_PREFIX}{self.connector}-{self.task}", {"properties": self.properties}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCommit:
    """The end of a set of task configs: the connector has `tasks` tasks."""

    connector: str
    tasks: int

    def encode(self) -> RecordBytes:
        """Return the record."""
        return _record(COMMIT_TASKS_PREFIX + self.connector, {"tasks": self.tasks})


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequest:
    """A request to all workers to restart a connector."""

    connector: str
    include_tasks: bool
    only_failed: bool

    def encode(self) -> RecordBytes:
        """Return the record."""
        return _record(
            RESTART_PREFIX + self.connector,
            {"include-tasks": self.include_tasks, "only-failed": self.only_failed},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCountRecord:
    """Producers of earlier tasks were fenced; `task_count` transactional ids may exist now."""

    connector: str
    task_count: int

    def encode(self) -> RecordBytes:
        """Return the record."""
        return _record(TASK_COUNT_RECORD_PREFIX + self.connector, {"task-count": self.task_count})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """The key with which workers sign requests to each other. `key` is base64 and a secret."""

    key: str
    algorithm: str
    created_ms: int

    def encode(self) -> RecordBytes:
        """Return the record."""
        return _record(
            SESSION_KEY_KEY,
            {
                "key": self.key,
                "algorithm": self.algorithm,
                "creation-timestamp": self.created_ms,
            },
        )

    def __repr__(self) -> str:
        return f"SessionKey(key=..., algorithm={self.algorithm!r}, created_ms={self.created_ms})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLoggerLevel:
    """The level of a logger, for every worker."""

    namespace: str
    level: str

    def encode(self) -> RecordBytes:
        """Return the record."""
        return _record(LOGGER_CLUSTER_PREFIX + self.namespace, {"level": self.level})


ConfigRecord: TypeAlias = (
    ConnectorTargetState
    | ConnectorConfig
    | TaskConfig
    | TasksCommit
    | RestartRequest
    | TaskCountRecord
    | SessionKey
    | ClusterLoggerLevel
)


def decode_config_record(record: RecordBytes) -> ConfigRecord:
    """Decode any record of the config topic. Raises RecordError."""
    if record.key is None:
        raise RecordError("A record of the config topic has no key")
    key = record.key.decode("utf-8", errors="replace")
    for prefix, decode in _DECODERS.items():
        if key.startswith(prefix):
            value = None if record.value is None else connect_json.decode_object(record.value)
            return decode(key[len(prefix) :], value)
    raise RecordError(f"Unknown key {key!r} in the config topic")


_Value: TypeAlias = "Mapping[str, JsonValue] | None"


def _target_state(connector: str, value: _Value) -> ConnectorTargetState:
    if value is None:
        return ConnectorTargetState(connector=connector, state=None)
    name = value.get("state.v2")
    if name is None:
        name = value.get("state")  # the format before STOPPED was added
    try:
        return ConnectorTargetState(connector=connector, state=TargetState(name))
    except ValueError as error:
        raise RecordError(f"Invalid target state {name!r} of connector {connector}") from error


def _connector(connector: str, value: _Value) -> ConnectorConfig:
    properties = None if value is None else _properties(value)
    return ConnectorConfig(connector=connector, properties=properties)


def _task(name: str, value: _Value) -> TaskConfig:
    connector, dash, number = name.rpartition("-")
    if not dash or not number.isdecimal():
        raise RecordError(f"{name!r} does not name a task")
    return TaskConfig(
        connector=connector, task=int(number), properties=_properties(_require_value(value))
    )


def _commit(connector: str, value: _Value) -> TasksCommit:
    return TasksCommit(connector=connector, tasks=_integer(_require_value(value), "tasks"))


def _restart(connector: str, value: _Value) -> RestartRequest:
    members = _require_value(value)
    return RestartRequest(
        connector=connector,
        include_tasks=members.get("include-tasks") is True,
        only_failed=members.get("only-failed") is True,
    )


def _task_count_record(connector: str, value: _Value) -> TaskCountRecord:
    return TaskCountRecord(
        connector=connector, task_count=_integer(_require_value(value), "task-count")
    )


def _session_key(rest: str, value: _Value) -> SessionKey:
    if rest:
        raise RecordError(f"Unknown key {SESSION_KEY_KEY + rest!r} in the config topic")
    members = _require_value(value)
    return SessionKey(
        key=_text(members, "key"),
        algorithm=_text(members, "algorithm"),
        created_ms=_integer(members, "creation-timestamp"),
    )


def _logger(namespace: str, value: _Value) -> ClusterLoggerLevel:
    return ClusterLoggerLevel(namespace=namespace, level=_text(_require_value(value), "level"))


# In the order in which Connect tries the prefixes.
_DECODERS: dict[str, Callable[[str, _Value], ConfigRecord]] = {
    TARGET_STATE_PREFIX: _target_state,
    CONNECTOR_PREFIX: _connector,
    TASK_PREFIX: _task,
    COMMIT_TASKS_PREFIX: _commit,
    RESTART_PREFIX: _restart,
    TASK_COUNT_RECORD_PREFIX: _task_count_record,
    SESSION_KEY_KEY: _session_key,
    LOGGER_CLUSTER_PREFIX: _logger,
}


def _require_value(value: _Value) -> Mapping[str, JsonValue]:
    if value is None:
        raise RecordError("The value is unexpectedly null")
    return value


def _properties(value: Mapping[str, JsonValue]) -> ConfigProperties:
    properties = value.get("properties")
    if not isinstance(properties, Mapping):
        raise RecordError("'properties' is missing or not an object")
    return {name: _property(name, text) for name, text in properties.items()}


def _property(name: str, value: JsonValue) -> str | None:
    if value is not None and not isinstance(value, str):
        raise RecordError(f"Property {name!r} is not a string")
    return value


def _integer(value: Mapping[str, JsonValue], name: str) -> int:
    number = value.get(name)
    if isinstance(number, bool) or not isinstance(number, int):
        raise RecordError(f"{name!r} is missing or not an integer")
    return number


def _text(value: Mapping[str, JsonValue], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str):
        raise RecordError(f"{name!r} is missing or not a string")
    return text


def _record(key: str, value: Mapping[str, JsonValue]) -> RecordBytes:
    return RecordBytes(key=key.encode("utf-8"), value=connect_json.encode(value))


def _tombstone(key: str) -> RecordBytes:
    return RecordBytes(key=key.encode("utf-8"), value=None)
