"""The three stores in memory: for a worker that need not remember, and for tests.

They are the stores of Kafka on a log that is a list, so they answer and tell as those do. What is
written is read back before the writing method returns, and listeners are called by the writer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from sparkmirror.mirror.records import RecordBytes
from sparkmirror.store.configs import ConfigTopic
from sparkmirror.store.connector_offsets import ConnectorOffsets
from sparkmirror.store.log import Entry, Log, OnEntry
from sparkmirror.store.outbox import Letter
from sparkmirror.store.statuses import StatusTopic


class MemoryLog:
    """A log of one partition that is a list. `records` may hold a history."""

    def __init__(self, records: Iterable[RecordBytes] = (), topic: str = "memory") -> None:
        self.records = list(records)
        self._topic = topic
        self._lock = threading.RLock()
        self._on_entry: OnEntry | None = None

    def start(self, on_entry: OnEntry) -> None:
        """Hand over the history."""
        with self._lock:
            self._on_entry = on_entry
            for offset, record in enumerate(self.records):
                on_entry(Entry(self._topic, 0, offset, record, history=True))

    def stop(self) -> None:
        """Hand over nothing more; appending is still possible."""
        with self._lock:
            self._on_entry = None

    def append(self, records: Sequence[RecordBytes]) -> None:
        """Append records and hand them over."""
        with self._lock:
            for record in records:
                self.records.append(record)
                if self._on_entry is not None:
                    offset = len(self.records) - 1
                    self._on_entry(Entry(self._topic, 0, offset, record, history=False))

    def claim(self) -> None:
        """Nobody else is there."""

    def append_claimed(self, records: Sequence[RecordBytes]) -> None:
        """Append records and hand them over."""
        self.append(records)

    def read_to_end(self) -> None:
        """Everything was handed over when it was appended."""


class Directly:
    """A post that writes at once."""

    def __init__(self, topic: Log) -> None:
        self._log = topic

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing waits."""

    def send(self, letter: Letter) -> None:
        """Write it."""
        if letter.wanted():
            self._log.append([letter.record])


def memory_configs(log: MemoryLog | None = None) -> ConfigTopic:
    """A config store in memory."""
    return ConfigTopic(log or MemoryLog())


def memory_statuses(log: MemoryLog | None = None) -> StatusTopic:
    """A status store in memory. A put can be read when it returns."""
    topic = log or MemoryLog()
    return StatusTopic(topic, Directly(topic))


def memory_offsets(log: MemoryLog | None = None) -> ConnectorOffsets:
    """An offset store in memory."""
    return ConnectorOffsets(log or MemoryLog())
