"""Connect's offsets of checkpoint and heartbeat records: always 0, kept because Connect keeps them.

Nobody reads them but people, over REST. Each is written once in a task's life.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.access import Access
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.mirror.connect_offsets import StoredOffset, key_bytes
from sparkmirror.mirror.outgoing import OutgoingRecord
from sparkmirror.store.offsets import OffsetsTopic


class OffsetsNoted:
    """The offsets of one task's records. Belongs to the thread of its task."""

    def __init__(self, connector: str, config: Mapping[str, str], worker: WorkerSide) -> None:
        access = Access.from_properties("worker", worker.offsets_client(config))
        self._topic = OffsetsTopic(access.router(), worker.offsets_topic(config))
        self._connector = connector
        self._noted: set[bytes] = set()

    def note(self, records: Iterable[OutgoingRecord]) -> None:
        """Write the offsets of records that were acknowledged, where that has not been done yet."""
        new: dict[bytes, StoredOffset] = {}
        for record in records:
            key = key_bytes(self._connector, record.source_partition)
            if key not in self._noted:
                new[key] = StoredOffset(
                    connector=self._connector,
                    partition=record.source_partition,
                    offset=record.source_offset,
                )
        if new:
            self._topic.save(new.values(), now_ms=time.time_ns() // 1_000_000)
            self._noted |= new.keys()

    def close(self) -> None:
        """Hang up."""
        self._topic.close()
