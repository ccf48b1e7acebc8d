"""The source records of the checkpoint and heartbeat tasks.

Each goes to partition 0 of its topic and has its own timestamp. Connect stores the offset 0 under
its source partition; no program reads that offset.
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


def checkpoint_record(topic: str, checkpoint: Checkpoint, listed_at_ms: int) -> SourceRecord:
    """Return the record of a checkpoint. Its time is just before the group offsets were listed."""
    return SourceRecord(
        topic=topic,
        partition=0,
        record=checkpoint.encode(),
        timestamp_ms=listed_at_ms,
        source_partition=checkpoint_partition(checkpoint.group, checkpoint.partition),
        source_offset={"offset": 0},
    )


def heartbeat_record(topic: str, heartbeat: Heartbeat) -> SourceRecord:
    """Return the record of a heartbeat, with the heartbeat's time."""
    return SourceRecord(
        topic=topic,
        partition=0,
        record=heartbeat.encode(),
        timestamp_ms=heartbeat.timestamp_ms,
        source_partition=heartbeat_partition(heartbeat.source, heartbeat.target),
        source_offset={"offset": 0},
    )
