"""The herder's interface: one method per operation of Connect's REST API.

`rest` uses only this interface. Any thread may call a method. A method blocks until its result is
certain: a change has been read back from the config topic. It raises subclasses of
`errors.RequestError` with the message that REST shows. The config passed to `create_connector` and
`put_connector_config` contains `name`: REST adds it at the end, or rejects a different one.

    error             status   when
    NotFound          404      no such connector, task, status, plug-in, logger or level
    AlreadyExists     409
    Conflict          409      cannot be done at this moment
    BadRequest        400
    Forbidden         403      this worker does not allow it (tracking of topics)
    RebalanceNeeded   409      the group of workers has not decided who does it
    NotLeader         409      only the leader of the group can do it; has its URL
    NotOwner          409      only the worker that runs it can do it; has its URL
    OffsetsRejected   500      as in Connect, although the caller is at fault
    WorkerStarting    503      the stores are not read yet; the message says why
    RequestFailed     500      timed out, could not be written, a start failed, a class is unknown
                               to `validate`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.mirror.connect_topics.connect_configs import TargetState

RawConfig = Mapping[str, str | None]
"""A config as REST received it, in that order. A value is text or null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """A connector's config and tasks."""

    name: str
    config: RawConfig = field(repr=False)
    tasks: tuple[ConnectorTaskId, ...]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task's config."""

    id: ConnectorTaskId
    config: RawConfig = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """The state of a connector or task. `trace` is None unless there is a problem."""

    state: str
    worker_id: str
    version: str | None
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStateInfo:
    """The states of a connector and its tasks."""

    name: str
    connector: StateInfo
    tasks: Mapping[int, StateInfo]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """The worker's version, and the cluster that holds its internal topics."""

    version: str
    commit: str
    kafka_cluster_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """The worker's health: `status` is starting, healthy or unhealthy."""

    status: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutConnectorResult:
    """The result of writing a connector's config."""

    info: ConnectorInfo
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevel:
    """A logger's level, and the time it was last set at run time."""

    level: str | None
    last_modified_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffset:
    """One of a connector's offsets, as JSON objects; a null offset removes it."""

    partition: Mapping[str, Any] | None = None
    offset: Mapping[str, Any] | None = None


class Herder(Protocol):
    """All operations that REST offers."""

    def server_info(self) -> ServerInfo: ...
    def health(self) -> WorkerStatus: ...

    def reads_from_memory(self) -> bool:
        """Return whether reads of connectors and tasks wait for nothing from now on."""
        ...

    def connectors(self) -> Sequence[str]: ...
    def connector_info(self, name: str) -> ConnectorInfo: ...
    def connector_status(self, name: str) -> ConnectorStateInfo: ...
    def task_status(self, name: str, task: int) -> StateInfo: ...
    def task_configs(self, name: str) -> Sequence[TaskInfo]: ...

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult: ...
    def put_connector_config(self, name: str, config: RawConfig) -> PutConnectorResult: ...
    def patch_connector_config(self, name: str, patch: RawConfig) -> ConnectorInfo: ...
    def delete_connector(self, name: str) -> None: ...

    def pause_connector(self, name: str) -> None: ...
    def resume_connector(self, name: str) -> None: ...
    def stop_connector(self, name: str) -> None: ...
    def restart_connector(self, name: str) -> None: ...
    def restart_connector_and_tasks(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStateInfo: ...
    def restart_task(self, name: str, task: int) -> None: ...

    def active_topics(self, name: str) -> Sequence[str]: ...
    def reset_active_topics(self, name: str) -> None: ...

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]: ...
    def alter_connector_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> str: ...
    def reset_connector_offsets(self, name: str) -> str: ...

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]: ...
    def plugin_config(
        self, plugin: str, version: str | None = None
    ) -> Sequence[Mapping[str, Any]]: ...
    def validate_connector_config(self, plugin: str, config: RawConfig) -> Mapping[str, Any]: ...

    def all_logger_levels(self) -> Mapping[str, LoggerLevel]: ...
    def logger_level(self, name: str) -> LoggerLevel: ...
    def set_logger_level(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]: ...
