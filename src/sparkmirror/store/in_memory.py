"""The three stores in memory: for a worker that need not remember, and for tests.

They are the stores of Kafka on a log that is a list, so they answer and tell as those do. What is
written is read back before the writing method returns, and listeners are called by the writer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.compacted_log import CompactedLog, ConsumedCallback, ConsumedRecord
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.store.outbox import QueuedRecord
from sparkmirror.store.status_backing_store import KafkaStatusBackingStore


class MemoryLog:
    """A log of one partition that is a list. `records` may hold a history."""

    def __init__(self, records: Iterable[RecordBytes] = (), topic: str = "memory") -> None:
        self.records = list(records)
        self._topic = topic
        self._lock = threading.RLock()
        self._callback: ConsumedCallback | None = None

    def start(self, on_entry: ConsumedCallback) -> None:
        """Hand over the history."""
        with self._lock:
            self._callback = on_entry
            for offset, record in enumerate(self.records):
                on_entry(ConsumedRecord(self._topic, 0, offset, record, preexisting=True))

    def stop(self) -> None:
        """Hand over nothing more; appending is still possible."""
        with self._lock:
            self._callback = None

    def append(self, records: Sequence[RecordBytes]) -> None:
        """Append records and hand them over."""
        with self._lock:
            for record in records:
                self.records.append(record)
                if self._callback is not None:
                    offset = len(self.records) - 1
                    self._callback(
                        ConsumedRecord(self._topic, 0, offset, record, preexisting=False)
                    )

    def claim_write_privileges(self) -> None:
        """Nobody else is there."""

    def append_privileged(self, records: Sequence[RecordBytes]) -> None:
        """Append records and hand them over."""
        self.append(records)

    def read_to_end(self) -> None:
        """Everything was handed over when it was appended."""


class ImmediateRecordSink:
    """A post that writes at once."""

    def __init__(self, topic: CompactedLog) -> None:
        self._log = topic

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing waits."""

    def send(self, letter: QueuedRecord) -> None:
        """Write it."""
        if letter.should_write():
            self._log.append([letter.record])


def memory_config_store(log: MemoryLog | None = None) -> KafkaConfigBackingStore:
    """A config store in memory."""
    return KafkaConfigBackingStore(log or MemoryLog())


def memory_status_store(log: MemoryLog | None = None) -> KafkaStatusBackingStore:
    """A status store in memory. A put can be read when it returns."""
    topic = log or MemoryLog()
    return KafkaStatusBackingStore(topic, ImmediateRecordSink(topic))


def memory_offset_store(log: MemoryLog | None = None) -> KafkaOffsetBackingStore:
    """An offset store in memory."""
    return KafkaOffsetBackingStore(log or MemoryLog())
