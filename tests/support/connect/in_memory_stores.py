"""The three backing stores on a log in memory.

A write is read back before the writing method returns. Listeners run in the thread of the writer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.kafka_based_log import CompactedLog, ConsumedCallback
from sparkmirror.store.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.store.outbox import QueuedRecord
from sparkmirror.store.status_backing_store import KafkaStatusBackingStore
from sparkmirror.store.topic_reader import ConsumedRecord


class MemoryLog:
    """A `CompactedLog` of one partition. `records` may hold earlier records."""

    def __init__(self, records: Iterable[RecordBytes] = (), topic: str = "memory") -> None:
        self.records = list(records)
        self.topic = topic
        self._lock = threading.RLock()
        self._callback: ConsumedCallback | None = None

    def start(self, on_record: ConsumedCallback) -> None:
        with self._lock:
            self._callback = on_record
            for offset, record in enumerate(self.records):
                on_record(ConsumedRecord(self.topic, 0, offset, record, preexisting=True))

    def stop(self) -> None:
        """Call the callback no more. Appending is still possible."""
        with self._lock:
            self._callback = None

    def append(self, records: Sequence[RecordBytes]) -> None:
        with self._lock:
            for record in records:
                self.records.append(record)
                if self._callback is not None:
                    offset = len(self.records) - 1
                    self._callback(ConsumedRecord(self.topic, 0, offset, record, preexisting=False))

    def claim_write_privileges(self, timeout_s: float = 0.0) -> None:
        """No-op: there is one writer."""

    def append_privileged(self, records: Sequence[RecordBytes]) -> None:
        self.append(records)

    def read_to_end(self, timeout_s: float = 0.0) -> None:
        """No-op: `append` has called the callback already."""

    def problem(self) -> str:
        return ""


class ImmediateRecordSink:
    """A `RecordSink` that writes in `send`."""

    def __init__(self, log: CompactedLog) -> None:
        self._log = log

    def start(self) -> None:
        """No-op."""

    def stop(self) -> None:
        """No-op."""

    def problem(self) -> str:
        return ""

    def send(self, queued: QueuedRecord) -> None:
        if queued.should_write():
            self._log.append([queued.record])


def memory_config_store(log: MemoryLog | None = None) -> KafkaConfigBackingStore:
    """A config store in memory."""
    return KafkaConfigBackingStore(log or MemoryLog())


def memory_status_store(log: MemoryLog | None = None) -> KafkaStatusBackingStore:
    """A status store in memory. A status can be read as soon as `put` returns."""
    topic = log or MemoryLog()
    return KafkaStatusBackingStore(topic, ImmediateRecordSink(topic))


def memory_offset_store(log: MemoryLog | None = None) -> KafkaOffsetBackingStore:
    """An offset store in memory."""
    return KafkaOffsetBackingStore(log or MemoryLog())
