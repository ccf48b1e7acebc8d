"""The heartbeat connector: sees to its topic, and has one task that beats.

As in the original it does not ask whether it is enabled, only whether heartbeats are wanted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.heartbeat.heartbeat_config import MirrorHeartbeatConfig
from sparkmirror.connect.connectors.shared.cluster_clients import ClusterClients
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.shared.record_offsets import RecordOffsets
from sparkmirror.connect.connectors.shared.scheduler import MIN_INTERVAL_S
from sparkmirror.connect.connectors.shared.topic_creation import ensure_internal_topic
from sparkmirror.connect.connectors.shared.worker_clients import WorkerClientConfig
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.connect_records import heartbeat_record
from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration
from sparkmirror.mirror.offsets.records import Heartbeat
from sparkmirror.mirror.topics.task_assignment import heartbeat_task_configs
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.single_produce import append_records


class MirrorHeartbeatConnector:
    """Sees to the heartbeats topic."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._config: MirrorHeartbeatConfig | None = None
        self._clients: ClusterClients | None = None
        self._cluster_watcher: ClusterWatcher | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Create the topic if it is not there."""
        self._config = parsed = MirrorHeartbeatConfig.parse(config)
        access = parsed.shared.access(ClusterSide.TARGET, role="heartbeats-target-admin")
        self._clients = hands = ClusterClients.create(access, parsed.shared.admin_timeout_s)

        def look() -> float:
            ensure_internal_topic(hands, parsed.heartbeats_topic, parsed.heartbeats_factor)
            return 0.0

        self._cluster_watcher = ClusterWatcher(
            "MirrorHeartbeatConnector", parsed.shared, "creating internal topics", look
        )
        self._cluster_watcher.start(self._context)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Give the one task, if heartbeats are wanted."""
        assert max_tasks > 0
        if self._config is None:
            return ()
        is_wanted = self._config.emit_heartbeats_s is not None
        return heartbeat_task_configs(self._config.shared.originals, emit_heartbeats=is_wanted)

    def stop(self) -> None:
        """End."""
        if self._cluster_watcher and self._cluster_watcher.stop() and self._clients:
            self._clients.close()

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Refuse offsets that no heartbeat can have."""
        del config
        offset_alterations.validate_alterations(alterations, offset_alterations.HEARTBEAT_RULES)
        return True


class MirrorHeartbeatTask:
    """One task: a record every so often."""

    def __init__(self, config: ExpandedConfig, worker: WorkerClientConfig) -> None:
        self._config = MirrorHeartbeatConfig.parse(config)
        self._interval_s = max(self._config.emit_heartbeats_s or 0.0, MIN_INTERVAL_S)
        self._topic = self._config.heartbeats_topic.name
        shared = self._config.shared
        self._router = ClusterAccess.from_properties(
            shared.flow.target, worker.producer_properties(config)
        ).new_router(f"connector-producer-{shared.name}-0")
        self._record_offsets = RecordOffsets(shared.name, config, worker)
        self._written_topics: frozenset[str] = frozenset()
        self._next_heartbeat_at = time.monotonic() + self._interval_s

    def start(self) -> None:
        """Nothing to get ready."""

    def run_due(self) -> None:
        """Beat, if it is time."""
        if time.monotonic() < self._next_heartbeat_at:
            return
        flow = self._config.shared.flow
        now_ms = time.time_ns() // 1_000_000
        beat = heartbeat_record(
            self._topic, Heartbeat(source=flow.source, target=flow.target, timestamp_ms=now_ms)
        )
        append_records(
            self._router,
            TopicPartition(beat.topic, beat.partition),
            [Record(0, beat.timestamp_ms, *beat.record)],
        )
        self._next_heartbeat_at = max(self._next_heartbeat_at + self._interval_s, time.monotonic())
        self._written_topics = frozenset({self._topic})
        self._record_offsets.save([beat])

    def next_run_in_s(self) -> float:
        """Say how long until the next beat."""
        return max(self._next_heartbeat_at - time.monotonic(), 0.0)

    def current_problem(self) -> str:
        """Say nothing: what goes wrong is an error of the turn."""
        return ""

    def written_topics(self) -> frozenset[str]:
        """Name the heartbeats topic, once it was written to."""
        return self._written_topics

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Begin anew if anything has changed."""
        return config == self._config.shared.originals

    def close(self) -> None:
        """Hang up."""
        self._router.close()
        self._record_offsets.close()
