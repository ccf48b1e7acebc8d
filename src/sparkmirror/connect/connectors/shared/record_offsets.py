"""Connect's source offsets of checkpoint and heartbeat records: always 0, stored as Connect does.

Only operators read them, with REST. A task writes each of them once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.connect.connectors.shared.worker_clients import WorkerClientConfig
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, offset_key
from sparkmirror.mirror.connect_topics.connect_records import SourceRecord
from sparkmirror.store.offsets_topic import OffsetsTopic


class RecordOffsets:
    """The offsets of one task's records. Belongs to the thread of its task."""

    def __init__(
        self, connector: str, config: Mapping[str, str], worker: WorkerClientConfig
    ) -> None:
        access = ClusterAccess.from_properties("worker", worker.offsets_client_properties(config))
        self.router = access.new_router()
        self._topic = OffsetsTopic(self.router, worker.offsets_topic(config))
        self._connector = connector
        self._saved: set[bytes] = set()

    def save(self, records: Iterable[SourceRecord]) -> None:
        """Write the offsets of acknowledged records, except those this task has written."""
        new: dict[bytes, StoredOffset] = {}
        for record in records:
            key = offset_key(self._connector, record.source_partition)
            if key not in self._saved:
                new[key] = StoredOffset(
                    connector=self._connector,
                    partition=record.source_partition,
                    offset=record.source_offset,
                )
        if new:
            self._topic.save(new.values(), now_ms=time.time_ns() // 1_000_000)
            self._saved |= new.keys()

    def close(self) -> None:
        """Close the connection."""
        self._topic.close()
