"""Records as the checkpoint and the heartbeat task hand them to Connect.

Each goes to partition 0 of its topic with a time of its own, and names a source partition under
which Connect stores the offset 0, which nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.mirror.connect_topics.connect_offsets import (
    SourceOffset,
    SourcePartition,
    checkpoint_partition,
    heartbeat_partition,
)
from sparkmirror.mirror.offsets.records import Checkpoint, Heartbeat, RecordBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """A record to produce, and the Connect offset to store once it is acknowledged."""

    topic: str
    partition: int
    record: RecordBytes
    timestamp_ms: int
    source_partition: SourcePartition
    source_offset: SourceOffset


def checkpoint_record(topic: str, checkpoint: Checkpoint, looked_at_ms: int) -> SourceRecord:
    """Wrap a checkpoint; its time is the moment just before the group's offsets were listed."""
    return SourceRecord(
        topic=topic,
        partition=0,
        record=checkpoint.encode(),
        timestamp_ms=looked_at_ms,
        source_partition=checkpoint_partition(checkpoint.group, checkpoint.partition),
        source_offset={"offset": 0},
    )


def heartbeat_record(topic: str, heartbeat: Heartbeat) -> SourceRecord:
    """Wrap a heartbeat; the record carries the heartbeat's own time."""
    return SourceRecord(
        topic=topic,
        partition=0,
        record=heartbeat.encode(),
        timestamp_ms=heartbeat.timestamp_ms,
        source_partition=heartbeat_partition(heartbeat.source, heartbeat.target),
        source_offset={"offset": 0},
    )
