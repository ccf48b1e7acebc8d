"""The offset store on a log: how far each connector came, as of the last record read.

What a record means is `mirror.connect_topics.connect_offsets`. Connect finds an offset by the bytes
of its key.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sparkmirror.mirror.connect_topics.connect_offsets import OffsetsState, StoredOffset
from sparkmirror.store.compacted_log import CompactedLog, ConsumedRecord


class KafkaOffsetBackingStore:
    """The offsets of one worker group. A `keeping.OffsetStore`."""

    def __init__(self, topic: CompactedLog) -> None:
        self._log = topic
        self._lock = threading.Lock()
        self._state = OffsetsState()

    def start(self) -> None:
        """Read everything and go on following."""
        self._log.start(self._on_record)

    def stop(self) -> None:
        """Stop following."""
        self._log.stop()

    def refresh(self) -> None:
        """Read to the end."""
        self._log.read_to_end()

    def connector_offsets(self, connector: str) -> tuple[StoredOffset, ...]:
        """Everything stored for one connector."""
        with self._lock:
            return self._state.of_connector(connector)

    def save(self, offsets: Iterable[StoredOffset]) -> None:
        """Write offsets; one without an offset is forgotten."""
        self._log.append([offset.encode() for offset in offsets])

    def _on_record(self, entry: ConsumedRecord) -> None:
        with self._lock:
            self._state.apply(entry.record, place=str(entry))
