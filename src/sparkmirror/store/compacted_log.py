"""A compacted topic as the stores see it: follow it, append to it, read your own writes.

`topic_log` keeps one in Kafka, `memory` in memory. Knows nothing of what a record means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from sparkmirror.mirror.offsets.records import RecordBytes

MAX_SHOWN_KEY_BYTES = 200


class ConsumedRecord(NamedTuple):
    """One record that counts, and where it lies."""

    topic: str
    partition: int
    offset: int
    record: RecordBytes
    preexisting: bool
    """Whether it stood in the topic before we began to follow it."""

    def __str__(self) -> str:
        key = self.record.key
        shown = "no key" if key is None else f"key {key[:MAX_SHOWN_KEY_BYTES]!r}"
        return f"{self.topic}-{self.partition}, at offset {self.offset} with {shown}"


ConsumedCallback: TypeAlias = Callable[[ConsumedRecord], None]
"""Takes in one record. Called by one thread at a time, in the order of each partition."""


class CompactedLog(Protocol):
    """One topic, followed. All methods but `start` may be called by several threads."""

    def start(self, on_entry: ConsumedCallback) -> None:
        """Begin to follow; returns when all that stands in the topic was handed to `on_entry`."""
        ...

    def stop(self) -> None: ...

    def append(self, records: Sequence[RecordBytes]) -> None:
        """Append records in order; returns when the brokers have them, or raises ClusterError."""
        ...

    def claim_write_privileges(self) -> None:
        """Shut out everybody else from `append_claimed`, where this log can do that."""
        ...

    def append_privileged(self, records: Sequence[RecordBytes]) -> None:
        """Append all or nothing, and only while the claim holds: else raise LeadershipLost."""
        ...

    def read_to_end(self) -> None:
        """Return when all that was in the topic at the call was handed over."""
        ...
