"""The three stores of a worker as protocols: configs, statuses, offsets.

The herder uses these. The `…_backing_store` modules keep them in Connect's own topics. For all
three:

- `start` returns when the topic exists, is fit, and was read to its end. It blocks while brokers
  are unavailable, logs the reason, and raises errors that are not retriable.
- Several threads may call the methods. Reading methods do not block: they return what was read
  last. `refresh` reads to the end, so every write before the call is visible after it.
- Writing methods of configs and offsets return when the brokers have the records and, for configs,
  when the store has read them back. They raise ClusterError. Statuses are written in the
  background.
- `problem` returns why the topic cannot be read or written now, with the cluster and the cause; it
  is empty if all is well. It does not block.
- `stop` ends the store's threads and connections. Queued statuses are tried once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigProperties,
    ConfigRecord,
    RestartRequest,
    SessionKey,
    TargetState,
)
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.connect_topics.connect_statuses import ConnectStatus, TopicStatus

READ_TO_END_TIMEOUT_S: Final = 30.0
TRANSACTION_TIMEOUT_S: Final = 20.0
"""How long a write in a transaction may take: brokers may have to load their coordinators first."""

ConfigListener: TypeAlias = Callable[[ConfigRecord], None]
"""Receives each change of the config topic in order, after the snapshot contains it. It does not
receive records that were in the topic before `start`. It runs in a thread of the store, so it must
not block, write or call `refresh`.

    ConnectorConfig         properties None: the connector was deleted
    TasksCommit             a new set of task configs, or an inconsistent one: see the snapshot
    ConnectorTargetState    only if it differs from the one before
    RestartRequest, ClusterLoggerLevel, SessionKey, TaskCountRecord
"""


class ConfigBackingStore(Protocol):
    """Connector configs, task configs, target states and requests to all workers."""

    def start(self, listener: ConfigListener) -> None: ...
    def stop(self) -> None: ...

    def snapshot(self) -> ClusterConfigState:
        """Return what was read so far. The snapshot does not change; callers share it."""
        ...

    def offset(self) -> int:
        """Return the offset after the last record read, -1 if there was none.

        The members of a worker group compare it. Call it before `snapshot`, so that the snapshot is
        at least as new.
        """
        ...

    def refresh(self) -> None: ...
    def problem(self) -> str: ...

    def claim_write_privileges(self, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """Become the only writer. A worker calls this when it becomes the leader of its group.

        No-op without exactly-once support. With it, a write raises LeadershipLost if this worker
        has not claimed, or another worker has claimed since. Raises ClusterError.
        """
        ...

    def put_connector_config(
        self, name: str, properties: ConfigProperties, target_state: TargetState | None = None
    ) -> None:
        """Write a connector config as it was sent, after the target state, if given."""
        ...

    def remove_connector_config(self, name: str) -> None:
        """Write the deletion. Task configs stay in the topic and have no effect without it."""
        ...

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        """Write task configs 0..n-1 and the commit that puts them into effect. n may be 0."""
        ...

    def put_target_state(self, name: str, state: TargetState) -> None: ...
    def put_restart_request(self, request: RestartRequest) -> None: ...

    def put_task_count_record(self, name: str, count: int) -> None:
        """Write that producers of earlier tasks were fenced and `count` tasks may start."""
        ...

    def put_session_key(self, key: SessionKey) -> None: ...
    def put_logger_level(self, namespace: str, level: str) -> None: ...


class StatusBackingStore(Protocol):
    """The statuses of connectors and tasks, and the active topics of connectors.

    `put` does not block. The store returns what this worker has put at once, and what other workers
    have put after it has read it from the topic.
    """

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def refresh(self) -> None: ...
    def problem(self) -> str: ...

    def put(self, status: ConnectStatus) -> None:
        """Write a status. DESTROYED removes the stored one."""
        ...

    def put_safe(self, status: ConnectStatus) -> None:
        """Write a status unless another worker of a later generation has written one."""
        ...

    def put_topic(self, status: TopicStatus) -> None:
        """Write an active topic of a connector. `discovered_ms` None removes it."""
        ...

    def connectors(self) -> tuple[str, ...]:
        """Return the names of all connectors that have a status, or a task with a status."""
        ...

    def connector_status(self, name: str) -> ConnectStatus | None: ...
    def task_status(self, connector: str, task: int) -> ConnectStatus | None: ...
    def task_statuses(self, connector: str) -> tuple[ConnectStatus, ...]: ...
    def topic_status(self, connector: str, topic: str) -> TopicStatus | None: ...
    def topic_statuses(self, connector: str) -> tuple[TopicStatus, ...]: ...


class OffsetBackingStore(Protocol):
    """The source offsets of each connector."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def refresh(self, timeout_s: float = READ_TO_END_TIMEOUT_S) -> None:
        """Read to the end. Raises ClusterTimeout after `timeout_s`."""
        ...

    def problem(self) -> str: ...

    def connector_offsets(self, connector: str) -> tuple[StoredOffset, ...]: ...

    def save(self, offsets: Iterable[StoredOffset]) -> None:
        """Write offsets. None deletes the stored offset. Returns when the brokers have them."""
        ...
