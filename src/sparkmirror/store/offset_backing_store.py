"""The offset store on a log: the source offsets of each connector, as of the last record read.

`mirror.connect_topics.connect_offsets` interprets the records. Connect finds an offset by the bytes
of its key.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sparkmirror.mirror.connect_topics.connect_offsets import OffsetsState, StoredOffset
from sparkmirror.store.kafka_based_log import CompactedLog
from sparkmirror.store.store_api import READ_TO_END_TIMEOUT_S
from sparkmirror.store.topic_reader import ConsumedRecord


class KafkaOffsetBackingStore:
    """The offsets of one worker group. A `store_api.OffsetBackingStore`."""

    def __init__(self, compacted_log: CompactedLog) -> None:
        self._log = compacted_log
        self._lock = threading.Lock()
        self._state = OffsetsState()

    def start(self) -> None:
        """Read the topic to its end and keep following it. Blocks."""
        self._log.start(self._on_record)

    def stop(self) -> None:
        """Stop following the topic."""
        self._log.stop()

    def refresh(self, timeout_s: float = READ_TO_END_TIMEOUT_S) -> None:
        """Read the topic to its end. Blocks."""
        self._log.read_to_end(timeout_s)

    def problem(self) -> str:
        """Return why the topic cannot be read now; empty if it can."""
        return self._log.problem()

    def connector_offsets(self, connector: str) -> tuple[StoredOffset, ...]:
        """Return all offsets of one connector."""
        with self._lock:
            return self._state.of_connector(connector)

    def save(self, offsets: Iterable[StoredOffset]) -> None:
        """Write offsets. An offset of None deletes the stored one. Blocks."""
        self._log.append([offset.encode() for offset in offsets])

    def _on_record(self, consumed: ConsumedRecord) -> None:
        with self._lock:
            self._state.apply(consumed.record, location=str(consumed))
