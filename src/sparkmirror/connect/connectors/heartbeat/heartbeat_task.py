"""MirrorHeartbeatTask: writes a heartbeat record to the target at every interval."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.client_configs import WORKER_PRODUCER_PREFIX
from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.connectors.heartbeat.heartbeat_config import MirrorHeartbeatConfig
from sparkmirror.connect.connectors.shared.checkpoint_and_heartbeat_offsets import (
    CheckpointAndHeartbeatOffsets,
)
from sparkmirror.connect.connectors.shared.scheduler import MIN_INTERVAL_S
from sparkmirror.connect.connectors.shared.source_task_stats import HerderTaskStats
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.mirror.connect_topics.source_record import heartbeat_record
from sparkmirror.mirror.offsets.records import Heartbeat
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_records


class MirrorHeartbeatTask:
    """The connector's only task. Runs as a thread of the worker (`shared.thread_tasks`)."""

    def __init__(
        self,
        config: ExpandedConfig,
        worker: WorkerClientConfig,
        task_stats: HerderTaskStats | None = None,
    ) -> None:
        """`task_stats` gets what the task has written."""
        self._config = MirrorHeartbeatConfig.parse(config)
        self._interval_s = max(self._config.emit_heartbeats_s or 0.0, MIN_INTERVAL_S)
        self._topic = self._config.heartbeats_topic.name
        shared = self._config.shared
        self._router = ClusterAccess.from_properties(
            shared.flow.target,
            worker.producer_properties(config),
            file_prefix=WORKER_PRODUCER_PREFIX,
        ).new_router(f"connector-producer-{shared.name}-0")
        self._task_stats = task_stats or HerderTaskStats()
        self._stats = self._task_stats.start(shared.name, 0)
        self._stats.on_heartbeat(time.time())
        self._record_offsets = CheckpointAndHeartbeatOffsets(
            shared.name, config, worker, self._stats
        )
        self._written_topics: frozenset[str] = frozenset()
        self._next_heartbeat_at = time.monotonic() + self._interval_s

    def start(self) -> None:
        """No-op."""

    def run_due(self) -> None:
        """Write a heartbeat if one is due. Raises a ClusterError."""
        self._record_offsets.save_unsaved()
        if time.monotonic() < self._next_heartbeat_at:
            return
        flow = self._config.shared.flow
        now_ms = time.time_ns() // 1_000_000
        heartbeat = heartbeat_record(
            self._topic, Heartbeat(source=flow.source, target=flow.target, timestamp_ms=now_ms)
        )
        append_records(
            self._router,
            TopicPartition(heartbeat.topic, heartbeat.partition),
            [Record(0, heartbeat.timestamp_ms, *heartbeat.record)],
        )
        self._stats.on_made(1)
        self._stats.on_written(1)
        self._stats.on_heartbeat(time.time())
        self._next_heartbeat_at = max(self._next_heartbeat_at + self._interval_s, time.monotonic())
        self._written_topics = frozenset({self._topic})
        self._record_offsets.save([heartbeat])

    def next_run_in_s(self) -> float:
        """Return the seconds until the next heartbeat is due."""
        return max(self._next_heartbeat_at - time.monotonic(), 0.0)

    def current_problem(self) -> str:
        """Return nothing: every problem of this task is an error of `run_due`."""
        return ""

    def written_topics(self) -> frozenset[str]:
        """Return the heartbeats topic after the first write."""
        return self._written_topics

    def clients(self) -> Sequence[Router]:
        """Return the routers of heartbeats and of the offsets topic."""
        return self._router, self._record_offsets.router

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Accept only an unchanged config; any other needs a new instance."""
        return config == self._config.shared.originals

    def close(self) -> None:
        """Close the connections."""
        self._task_stats.end(self._stats)
        self._router.close()
        self._record_offsets.close()
