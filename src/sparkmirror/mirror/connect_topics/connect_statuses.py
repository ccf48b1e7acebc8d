"""The records of Connect's status topic: connectors, tasks and active topics.

    status-connector-<connector>      {"state","trace","worker_id","generation","version"}
    status-task-<connector>-<n>       the same members
    status-topic-<t>:connector-<c>    {"topic":{"name","connector","task","discoverTimestamp"}}

The latest record of a key wins, a tombstone removes it. While a task moves from one worker to
another, both write its status. A worker that writes FAILED or UNASSIGNED must not overwrite the
status of a newer owner: `can_write_safely` is that rule.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics import connect_json
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.mirror.offsets.records import RecordBytes

CONNECTOR_STATUS_PREFIX = "status-connector-"
TASK_STATUS_PREFIX = "status-task-"
TOPIC_STATUS_PREFIX = "status-topic-"
TOPIC_STATUS_SEPARATOR = ":connector-"

log = logging.getLogger(__name__)


class LifecycleState(Enum):
    """The state of a connector or a task. Only connectors can be STOPPED."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


SAFE_WRITE_STATES = frozenset({LifecycleState.FAILED, LifecycleState.UNASSIGNED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectStatus:
    """The state of a connector, or of a task, and the worker and group generation that wrote it."""

    connector: str
    task: int | None = None
    state: LifecycleState
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None

    def encode(self) -> RecordBytes:
        """Return the record. DESTROYED is a tombstone."""
        if self.task is None:
            key = f"{CONNECTOR_STATUS_PREFIX}{self.connector}"
        else:
            key = f"{TASK_STATUS_PREFIX}{self.connector}-{self.task}"
        if self.state is LifecycleState.DESTROYED:
            return RecordBytes(key.encode("utf-8"), None)
        value = {
            "state": self.state.value,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }
        return RecordBytes(key.encode("utf-8"), connect_json.encode(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """An active topic of a connector. `discovered_ms` None removes it."""

    topic: str
    connector: str
    task: int = 0
    discovered_ms: int | None

    def encode(self) -> RecordBytes:
        """Return the record."""
        key = f"{TOPIC_STATUS_PREFIX}{self.topic}{TOPIC_STATUS_SEPARATOR}{self.connector}".encode()
        if self.discovered_ms is None:
            return RecordBytes(key, None)
        members: Mapping[str, JsonValue] = {
            "name": self.topic,
            "connector": self.connector,
            "task": self.task,
            "discoverTimestamp": self.discovered_ms,
        }
        return RecordBytes(key, connect_json.encode({"topic": members}))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTombstone:
    """A tombstone: the connector or task has no status any more."""

    connector: str
    task: int | None = None


StatusRecord: TypeAlias = ConnectStatus | StatusTombstone | TopicStatus


def decode_status_record(record: RecordBytes) -> StatusRecord:
    """Decode any record of the status topic. Raises RecordError."""
    if record.key is None:
        raise RecordError("A record of the status topic has no key")
    key = record.key.decode("utf-8", errors="replace")
    value = None if record.value is None else connect_json.decode_object(record.value)
    if key.startswith(CONNECTOR_STATUS_PREFIX):
        return _status(key[len(CONNECTOR_STATUS_PREFIX) :], None, value)
    if key.startswith(TASK_STATUS_PREFIX):
        connector, dash, number = key[len(TASK_STATUS_PREFIX) :].rpartition("-")
        if dash and number.isdecimal():
            return _status(connector, int(number), value)
    if key.startswith(TOPIC_STATUS_PREFIX):
        topic, separator, connector = key[len(TOPIC_STATUS_PREFIX) :].partition(
            TOPIC_STATUS_SEPARATOR
        )
        if topic and separator and connector:
            return _topic_status(topic, connector, value)
    raise RecordError(f"Unknown key {key!r} in the status topic")


def can_write_safely(known: ConnectStatus | None, new: ConnectStatus) -> bool:
    """Return whether a worker may overwrite `known`, the status it has read, with `new`."""
    if new.state not in SAFE_WRITE_STATES or known is None:
        return True
    return known.worker_id == new.worker_id or known.generation <= new.generation


class StatusState:
    """The statuses as of the last applied record."""

    def __init__(self) -> None:
        self._statuses: dict[str, dict[int | None, ConnectStatus]] = {}
        """By connector, then by task; None is the connector itself. No inner dict is empty."""
        self._topics: defaultdict[str, dict[str, TopicStatus]] = defaultdict(dict)
        """By connector, then by topic."""

    def apply(
        self, record: RecordBytes, *, location: str = "the status topic"
    ) -> StatusRecord | None:
        """Apply one record and return it. One that cannot be decoded is logged and ignored."""
        try:
            change = decode_status_record(record)
        except RecordError as error:
            log.warning("Ignored a record of %s: %s", location, error)
            return None
        match change:
            case ConnectStatus():
                self._statuses.setdefault(change.connector, {})[change.task] = change
            case StatusTombstone():
                self._remove(change)
            case TopicStatus(discovered_ms=None):
                self._topics[change.connector].pop(change.topic, None)
            case TopicStatus():
                self._topics[change.connector][change.topic] = change
        return change

    def _remove(self, tombstone: StatusTombstone) -> None:
        statuses = self._statuses.get(tombstone.connector, {})
        statuses.pop(tombstone.task, None)
        if not statuses:
            self._statuses.pop(tombstone.connector, None)

    def connectors(self) -> tuple[str, ...]:
        """Return the names of all connectors that have a status, or a task with a status."""
        return tuple(self._statuses)

    def connector_status(self, name: str) -> ConnectStatus | None:
        """Return the status of a connector, if there is one."""
        return self._statuses.get(name, {}).get(None)

    def task_status(self, connector: str, task: int) -> ConnectStatus | None:
        """Return the status of a task, if there is one."""
        return self._statuses.get(connector, {}).get(task)

    def task_statuses(self, connector: str) -> tuple[ConnectStatus, ...]:
        """Return the statuses of a connector's tasks, by task number."""
        statuses = self._statuses.get(connector, {})
        numbers = sorted(number for number in statuses if number is not None)
        return tuple(statuses[number] for number in numbers)

    def topic_status(self, connector: str, topic: str) -> TopicStatus | None:
        """Return an active topic of a connector, if it is one."""
        return self._topics.get(connector, {}).get(topic)

    def topic_statuses(self, connector: str) -> tuple[TopicStatus, ...]:
        """Return the active topics of a connector."""
        return tuple(self._topics.get(connector, {}).values())


def _status(
    connector: str, task: int | None, value: Mapping[str, JsonValue] | None
) -> ConnectStatus | StatusTombstone:
    if value is None:
        return StatusTombstone(connector=connector, task=task)
    match value:
        case {"state": str(state), "worker_id": str(worker_id), "generation": int(generation)}:
            return ConnectStatus(
                connector=connector,
                task=task,
                state=_state(state),
                worker_id=worker_id,
                generation=generation,
                trace=_optional_text(value, "trace"),
                version=_optional_text(value, "version"),
            )
        case _:
            raise RecordError(f"The status of {connector} lacks state, worker_id or generation")


def _topic_status(topic: str, connector: str, value: Mapping[str, JsonValue] | None) -> TopicStatus:
    if value is None:
        return TopicStatus(topic=topic, connector=connector, discovered_ms=None)
    match value.get("topic"):
        case {
            "name": str(name),
            "connector": str(owner),
            "task": int(task),
            "discoverTimestamp": int(discovered_ms),
        }:
            return TopicStatus(topic=name, connector=owner, task=task, discovered_ms=discovered_ms)
        case _:
            raise RecordError(f"The status of topic {topic} lacks one of its members")


def _state(name: str) -> LifecycleState:
    try:
        return LifecycleState(name)
    except ValueError as error:
        raise RecordError(f"Unknown state {name!r}") from error


def _optional_text(value: Mapping[str, JsonValue], name: str) -> str | None:
    text = value.get(name)
    if text is not None and not isinstance(text, str):
        raise RecordError(f"{name!r} is not a string")
    return text
