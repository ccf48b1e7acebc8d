"""What a worker can be asked: one method for each thing Connect's REST API offers.

The REST room talks to this and to nothing else; the herder keeps it. Every method may be called
by several threads, blocks until its answer is certain (a change has been read back from the config
topic), and raises `errors.RequestError`s, which carry the words people see. Values are plain. The
config that `create` and `put_config` get holds the connector's own `name`: REST has put it there,
at the end, or has refused another one.

    error             status   when
    NotFound          404      no such connector, task, status, plug-in, logger, log level
    AlreadyExists     409
    Conflict          409      cannot be done at this moment
    BadRequest        400
    Forbidden         403      this worker does not allow it (tracking of topics)
    OffsetsRejected   500      as Connect, although it is the caller's doing
    RequestFailed     500      timed out, could not be written, a start failed, a class is unknown
                               to `validate`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sparkmirror.mirror.connect_topics.connect_configs import TargetState

RawConfig = Mapping[str, str | None]
"""A config as it was sent, in the order it was sent: every value is text, or null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorTaskId:
    """Which task of which connector."""

    connector: str
    task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """A connector as it was configured."""

    name: str
    config: RawConfig
    tasks: tuple[ConnectorTaskId, ...]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task as its connector configured it."""

    id: ConnectorTaskId
    config: RawConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """How a connector or a task is doing. `trace` is empty while all is well."""

    state: str
    worker_id: str
    version: str | None
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStateInfo:
    """How a connector and each of its tasks are doing."""

    name: str
    connector: StateInfo
    tasks: Mapping[int, StateInfo]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """The worker and the cluster it keeps its state in."""

    version: str
    commit: str
    kafka_cluster_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """Whether the worker can serve: `status` is starting, healthy or unhealthy."""

    status: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutConnectorResult:
    """What came of writing a connector's config."""

    info: ConnectorInfo
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevel:
    """A logger's level, and when it was last set at run time."""

    level: str | None
    last_modified_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffset:
    """One entry of a connector's offsets: JSON objects; a null offset means forgotten."""

    partition: Mapping[str, Any] | None = None
    offset: Mapping[str, Any] | None = None


class Herder(Protocol):
    """Everything that REST can ask of a worker."""

    def server_info(self) -> ServerInfo: ...
    def health(self) -> WorkerStatus: ...

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
