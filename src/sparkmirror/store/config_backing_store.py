"""The config store on a log.

Which method writes which records, as in Connect's workers:

    put_connector_config      target-state-<c> if a state is given, connector-<c>    one write
    remove_connector_config   connector-<c> and target-state-<c>, both null          one write
    put_task_configs          all task-<c>-<n>; then commit-<c>                      two writes
    the others                one record

Any worker may call `put_target_state` and `put_logger_level`. All other writes need the leader's
write privileges. Task configs are in the order of Java's maps, connector configs as they were sent.

After its last record each method reads the log to its end, so the snapshot contains the write when
the method returns. `mirror.connect_topics.cluster_config_state` interprets the records.
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
from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order
from sparkmirror.store.kafka_based_log import CompactedLog
from sparkmirror.store.store_api import TRANSACTION_TIMEOUT_S, ConfigListener
from sparkmirror.store.topic_reader import ConsumedRecord

log = logging.getLogger(__name__)

NO_OFFSET = -1


class KafkaConfigBackingStore:
    """The configs of one worker group. A `store_api.ConfigBackingStore`."""

    def __init__(self, compacted_log: CompactedLog) -> None:
        self._log = compacted_log
        self._lock = threading.Lock()
        self._state = ClusterConfigState()
        self._snapshot: ClusterConfigState | None = None
        self._offset = NO_OFFSET
        self._listener: ConfigListener | None = None

    def start(self, listener: ConfigListener) -> None:
        """Read the topic to its end, then call the listener with each change. Blocks."""
        self._listener = listener
        self._log.start(self._on_record)
        state = self.snapshot()
        for name in filter(state.is_inconsistent, state.connectors()):
            log.warning(
                "Connector %s has no tasks: compaction has removed some of its %d task configs."
                " The connector writes them again when it starts",
                name,
                state.task_count(name),
            )

    def stop(self) -> None:
        """Stop following the topic."""
        self._log.stop()

    # -- reading -------------------------------------------------------------------------------

    def snapshot(self) -> ClusterConfigState:
        """Return what was read so far, as a copy that does not change."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = self._state.copy()
            return self._snapshot

    def offset(self) -> int:
        """Return the offset after the last record read, -1 if there was none."""
        return self._offset

    def refresh(self) -> None:
        """Read the topic to its end. Blocks."""
        self._log.read_to_end()

    def problem(self) -> str:
        """Return why the topic cannot be read now; empty if it can."""
        return self._log.problem()

    def _on_record(self, consumed: ConsumedRecord) -> None:
        with self._lock:
            change = self._state.apply(
                consumed.record, first_read=consumed.preexisting, location=str(consumed)
            )
            self._offset = max(self._offset, consumed.offset + 1)
            self._snapshot = None
        if change is not None and not consumed.preexisting and self._listener is not None:
            self._listener(change)

    # -- writing -------------------------------------------------------------------------------

    def claim_write_privileges(self, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """Fence the writers of older leaders. No-op without exactly-once support."""
        self._log.claim_write_privileges(timeout_s)

    def put_connector_config(
        self, name: str, properties: ConfigProperties, target_state: TargetState | None = None
    ) -> None:
        """Write the target state, if given, and the config as it was sent."""
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
        """Write task configs and the commit that puts them into effect."""
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
        """Write the target state of a connector."""
        self._log.append([ConnectorTargetState(connector=name, state=state).encode()])
        self.refresh()

    def put_restart_request(self, request: RestartRequest) -> None:
        """Write a restart request to all workers."""
        self._append_privileged(request)
        self.refresh()

    def put_task_count_record(self, name: str, count: int) -> None:
        """Write that producers of earlier tasks were fenced."""
        self._append_privileged(TaskCountRecord(connector=name, task_count=count))
        self.refresh()

    def put_session_key(self, key: SessionKey) -> None:
        """Write the key with which workers sign requests to each other."""
        self._append_privileged(key)
        self.refresh()

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Write a log level for all workers."""
        self._log.append([ClusterLoggerLevel(namespace=namespace, level=level).encode()])
        self.refresh()

    def _append_privileged(self, *records: ConfigRecord) -> None:
        self._log.append_privileged([record.encode() for record in records])
