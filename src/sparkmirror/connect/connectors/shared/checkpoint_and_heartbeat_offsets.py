"""Connect's source offsets of checkpoint and heartbeat records: always 0, stored as Connect does.

Only operators read them, with REST. A task writes each of them once; those that cannot be written
are kept until they can.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.connect.connectors.shared.source_task_stats import SourceTaskStats
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, offset_key
from sparkmirror.mirror.connect_topics.source_record import SourceRecord
from sparkmirror.store.offsets_topic import OffsetsTopic


class CheckpointAndHeartbeatOffsets:
    """The offsets of one task's records. Belongs to the thread of its task."""

    def __init__(
        self,
        connector: str,
        config: Mapping[str, str],
        worker: WorkerClientConfig,
        stats: SourceTaskStats,
    ) -> None:
        """`stats` gets how long each write takes."""
        access = ClusterAccess.from_properties("worker", worker.offsets_client_properties(config))
        self.router = access.new_router()
        self._topic = OffsetsTopic(self.router, worker.offsets_topic(config))
        self._connector = connector
        self._stats = stats
        self._saved: set[bytes] = set()
        self._unsaved: dict[bytes, StoredOffset] = {}

    def save(self, records: Iterable[SourceRecord]) -> None:
        """Write the offsets of acknowledged records, except those this task has written.

        Raises a ClusterError; the offsets are kept then.
        """
        for record in records:
            key = offset_key(self._connector, record.source_partition)
            if key not in self._saved:
                self._unsaved[key] = StoredOffset(
                    connector=self._connector,
                    partition=record.source_partition,
                    offset=record.source_offset,
                )
        self.save_unsaved()

    def save_unsaved(self) -> None:
        """Write the offsets that could not be written before. Raises a ClusterError."""
        if self._unsaved:
            with self._stats.measure_commit():
                self._topic.save(self._unsaved.values(), now_ms=time.time_ns() // 1_000_000)
            self._saved |= self._unsaved.keys()
            self._unsaved.clear()

    def close(self) -> None:
        """Close the connection."""
        self._topic.close()
