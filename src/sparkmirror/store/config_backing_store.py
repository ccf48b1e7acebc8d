"""The config store on a log: what is asked for becomes records, what is read becomes a picture.

Who writes what, as Connect's workers do:

    put_connector       target-state-<c> if a state is asked for, connector-<c>    one write
    remove_connector    connector-<c> and target-state-<c>, both null              one write
    put_tasks           all task-<c>-<n>; then commit-<c>                          two writes
    the others          one record

All but `put_target_state` and `put_logger_level`, which any worker may do, are written under the
leader's claim. Task configs stand in the order of Java's maps, connectors as they were sent.

After its last record each method reads the log to its end, so that the picture holds what was just
written when it returns. What records mean is `mirror.connect_topics.cluster_config_state`'s.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import (
    ClusterLoggerLevel,
    ConfigProperties,
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    RestartRequest,
    SessionKey,
    TargetState,
    TaskConfig,
    TaskCountRecord,
    TasksCommit,
)
from sparkmirror.mirror.connect_topics.java_maps import in_hash_map_order
from sparkmirror.store.compacted_log import CompactedLog, ConsumedRecord
from sparkmirror.store.store_api import ConfigListener

log = logging.getLogger(__name__)

NO_OFFSET = -1


class KafkaConfigBackingStore:
    """The configs of one worker group. A `keeping.ConfigStore`."""

    def __init__(self, topic: CompactedLog) -> None:
        self._log = topic
        self._lock = threading.Lock()
        self._state = ClusterConfigState()
        self._snapshot: ClusterConfigState | None = None
        self._offset = NO_OFFSET
        self._listener: ConfigListener | None = None

    def start(self, listener: ConfigListener) -> None:
        """Read everything, then tell the listener of each change."""
        self._listener = listener
        self._log.start(self._on_record)
        state = self.snapshot()
        for name in filter(state.is_inconsistent, state.connectors()):
            log.warning(
                "Connector %s has no tasks: compaction has removed some of its %d task configs."
                " They are written again when it is started",
                name,
                state.task_count(name),
            )

    def stop(self) -> None:
        """Stop following."""
        self._log.stop()

    # -- reading -------------------------------------------------------------------------------

    def snapshot(self) -> ClusterConfigState:
        """All that was read so far, as a copy that will not change."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = self._state.copy()
            return self._snapshot

    def offset(self) -> int:
        """The offset after the last record read, -1 if there was none."""
        return self._offset

    def refresh(self) -> None:
        """Read to the end."""
        self._log.read_to_end()

    def _on_record(self, entry: ConsumedRecord) -> None:
        with self._lock:
            change = self._state.apply(entry.record, first_read=entry.preexisting, place=str(entry))
            self._offset = max(self._offset, entry.offset + 1)
            self._snapshot = None
        if change is not None and not entry.preexisting and self._listener is not None:
            self._listener(change)

    # -- writing -------------------------------------------------------------------------------

    def claim_write_privileges(self) -> None:
        """Become the only writer, where exactly-once support asks for one."""
        self._log.claim_write_privileges()

    def put_connector_config(
        self, name: str, properties: ConfigProperties, target_state: TargetState | None = None
    ) -> None:
        """Write a connector as it was sent, after the state asked for."""
        config = ConnectorConfig(connector=name, properties=properties)
        if target_state is None:
            self._append_privileged(config)
        else:
            self._append_privileged(
                ConnectorTargetState(connector=name, state=target_state), config
            )
        self.refresh()

    def remove_connector_config(self, name: str) -> None:
        """Write the deletion of a connector."""
        self._append_privileged(
            ConnectorConfig(connector=name, properties=None),
            ConnectorTargetState(connector=name, state=None),
        )
        self.refresh()

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        """Write task configs and the commit that makes them count."""
        if configs:
            self._append_privileged(
                *(
                    TaskConfig(
                        connector=name, task=number, properties=in_hash_map_order(properties)
                    )
                    for number, properties in enumerate(configs)
                )
            )
        self._append_privileged(TasksCommit(connector=name, tasks=len(configs)))
        self.refresh()

    def put_target_state(self, name: str, state: TargetState) -> None:
        """Write the state asked for."""
        self._log.append([ConnectorTargetState(connector=name, state=state).encode()])
        self.refresh()

    def put_restart_request(self, request: RestartRequest) -> None:
        """Write a request that all workers hear."""
        self._append_privileged(request)
        self.refresh()

    def put_task_count_record(self, name: str, count: int) -> None:
        """Write that older producers were fenced."""
        self._append_privileged(TaskCountRecord(connector=name, task_count=count))
        self.refresh()

    def put_session_key(self, key: SessionKey) -> None:
        """Write the key that signs requests between workers."""
        self._append_privileged(key)
        self.refresh()

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Write a log level for all workers."""
        self._log.append([ClusterLoggerLevel(namespace=namespace, level=level).encode()])
        self.refresh()

    def _append_privileged(self, *records: ConfigRecord) -> None:
        self._log.append_privileged([record.encode() for record in records])
