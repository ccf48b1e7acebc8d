"""What a worker remembers, as three stores: configs, statuses, offsets.

The herder talks to these; `configs`, `statuses` and `offsets` keep them in Connect's own topics,
`memory` keeps them in memory. For all three:

- `start` makes the store ready: the topic exists, is fit, and was read to its end. It may take
  long while brokers are away, says in the log what it waits for, and raises what will not pass.
- Methods may be called by several threads. Reading methods answer at once from what was read last;
  `refresh` reads to the end first, so that what anybody wrote before the call is seen after it.
- Writing methods of the configs and of the offsets return when the brokers have the records and,
  for configs, when the store has read them back; they raise ClusterError. Statuses are written in
  the background.
- `stop` ends the store's threads and connections; what waits to be written is tried once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

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

ConfigListener: TypeAlias = Callable[[ConfigRecord], None]
"""Hears of each change of the config topic after it took effect, in order, once the first read is
over; never of what stood in the topic before. Runs in a thread of the store (in memory: of the
writer), so it must hand over and return, and must not call writing methods or `refresh`.

    ConnectorConfig         properties None: the connector was deleted
    TasksCommit             a new set of task configs, or an inconsistent one: see the snapshot
    ConnectorTargetState    only if it differs from the one before
    RestartRequest, LoggerLevel, SessionKey, TasksFencing
"""


class ConfigBackingStore(Protocol):
    """Connectors, their task configs, asked-for states and requests to all workers."""

    def start(self, listener: ConfigListener) -> None: ...
    def stop(self) -> None: ...

    def snapshot(self) -> ClusterConfigState:
        """All that was read so far, as a copy that will not change. It is shared: only read it."""
        ...

    def offset(self) -> int:
        """The offset after the last record read, -1 if there was none; what group members compare.

        Ask for it before the snapshot: that one is then at least as new.
        """
        ...

    def refresh(self) -> None: ...

    def claim_write_privileges(self) -> None:
        """Become the only writer. For a worker that has become the leader of its group.

        Matters with exactly-once support alone: there, writing without a claim, or after another
        worker's, raises LeadershipLost. Without that support everybody may write at any time.
        """
        ...

    def put_connector_config(
        self, name: str, properties: ConfigProperties, target_state: TargetState | None = None
    ) -> None:
        """Write a connector as it was sent. The asked-for state, if given, is written before it."""
        ...

    def remove_connector_config(self, name: str) -> None:
        """Write its deletion. Task configs stay in the topic and mean nothing without it."""
        ...

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        """Write task configs 0..n-1 and the commit that makes them count. None at all is valid."""
        ...

    def put_target_state(self, name: str, state: TargetState) -> None: ...
    def put_restart_request(self, request: RestartRequest) -> None: ...

    def put_task_count_record(self, name: str, count: int) -> None:
        """Write that older producers were fenced, and that so many ids may exist from now on."""
        ...

    def put_session_key(self, key: SessionKey) -> None: ...
    def put_logger_level(self, namespace: str, level: str) -> None: ...


class StatusBackingStore(Protocol):
    """What connectors, tasks and their topics were last seen to be, by any worker.

    A put returns at once; it can be read here only when it has come back from the topic.
    """

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def refresh(self) -> None: ...

    def put(self, status: ConnectStatus) -> None:
        """Write a status, whatever anybody else wrote. DESTROYED removes what is known."""
        ...

    def put_safe(self, status: ConnectStatus) -> None:
        """Write it unless a newer owner has spoken: another worker of a later generation."""
        ...

    def put_topic(self, status: TopicStatus) -> None:
        """Write that a connector uses a topic; without `discovered_ms`, that it is forgotten."""
        ...

    def connectors(self) -> tuple[str, ...]:
        """The names of all connectors that have a status or a task with one."""
        ...

    def connector(self, name: str) -> ConnectStatus | None: ...
    def task(self, connector: str, task: int) -> ConnectStatus | None: ...
    def tasks(self, connector: str) -> tuple[ConnectStatus, ...]: ...
    def topic(self, connector: str, topic: str) -> TopicStatus | None: ...
    def topics(self, connector: str) -> tuple[TopicStatus, ...]: ...


class OffsetBackingStore(Protocol):
    """How far each connector came."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def refresh(self) -> None: ...

    def connector_offsets(self, connector: str) -> tuple[StoredOffset, ...]: ...

    def save(self, offsets: Iterable[StoredOffset]) -> None:
        """Write offsets; one without an offset is forgotten. Returns when the brokers have them."""
        ...
