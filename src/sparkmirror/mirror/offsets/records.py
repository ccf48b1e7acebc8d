"""The records of MirrorMaker 2's own topics: offset sync, checkpoint, heartbeat.

The bytes are those of Apache Kafka 4.3, and `str` is the line of Kafka's console formatters.

    record       key                          value
    OffsetSync   topic, partition             upstream offset, downstream offset
    Checkpoint   group, topic, partition      version, upstream offset, downstream offset, metadata
    Heartbeat    source alias, target alias   version, timestamp

An OffsetSync has no version. For the other two, Kafka 4.3 reads every version as version 0, and
Kafka 4.4 refuses unknown versions. `strict=True` does the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.structs import StructReader, int16, int32, int64, string
from sparkmirror.model import TopicPartition

VERSION = 0


class RecordBytes(NamedTuple):
    """Key and value of a record in an internal topic. A value of None is a tombstone."""

    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """The record at `upstream` of a source partition is at `downstream` of the remote partition."""

    partition: TopicPartition
    upstream: int
    downstream: int

    def encode(self) -> RecordBytes:
        """Return the record for the offset-syncs topic."""
        return RecordBytes(
            key=string(self.partition.topic) + int32(self.partition.partition),
            value=int64(self.upstream) + int64(self.downstream),
        )

    @classmethod
    def decode(cls, record: RecordBytes) -> OffsetSync:
        """Decode a record. Raises RecordError."""
        key = StructReader(record.key, "key")
        topic, partition = key.string("topic"), key.int32("partition")
        value = StructReader(record.value, "value")
        return cls(
            partition=TopicPartition(topic, partition),
            upstream=value.int64("upstreamOffset"),
            downstream=value.int64("offset"),
        )

    def __str__(self) -> str:
        return (
            f"OffsetSync{{topicPartition={self.partition}, upstreamOffset={self.upstream}, "
            f"downstreamOffset={self.downstream}}}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A group at `upstream` may continue at `downstream` of the remote `partition`.

    Both are positions: the next offset to read.
    """

    group: str
    partition: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""

    def encode(self) -> RecordBytes:
        """Return the record for the checkpoints topic."""
        return RecordBytes(
            key=string(self.group) + string(self.partition.topic) + int32(self.partition.partition),
            value=int16(VERSION)
            + int64(self.upstream)
            + int64(self.downstream)
            + string(self.metadata),
        )

    @classmethod
    def decode(cls, record: RecordBytes, *, strict: bool = False) -> Checkpoint:
        """Decode a record. Raises RecordError."""
        value = StructReader(record.value, "value")
        _check_version("checkpoint", value.int16("version"), strict=strict)
        upstream, downstream = value.int64("upstreamOffset"), value.int64("offset")
        metadata = value.string("metadata")
        key = StructReader(record.key, "key")
        return cls(
            group=key.string("group"),
            partition=TopicPartition(key.string("topic"), key.int32("partition")),
            upstream=upstream,
            downstream=downstream,
            metadata=metadata,
        )

    def __str__(self) -> str:
        return (
            f"Checkpoint{{consumerGroupId={self.group}, topicPartition={self.partition}, "
            f"upstreamOffset={self.upstream}, downstreamOffset={self.downstream}, "
            f"metadata={self.metadata}}}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The flow source->target was alive at `timestamp_ms`."""

    source: str
    target: str
    timestamp_ms: int

    def encode(self) -> RecordBytes:
        """Return the record for the heartbeats topic."""
        return RecordBytes(
            key=string(self.source) + string(self.target),
            value=int16(VERSION) + int64(self.timestamp_ms),
        )

    @classmethod
    def decode(cls, record: RecordBytes, *, strict: bool = False) -> Heartbeat:
        """Decode a record. Raises RecordError."""
        value = StructReader(record.value, "value")
        _check_version("heartbeat", value.int16("version"), strict=strict)
        timestamp_ms = value.int64("timestamp")
        key = StructReader(record.key, "key")
        return cls(
            source=key.string("sourceClusterAlias"),
            target=key.string("targetClusterAlias"),
            timestamp_ms=timestamp_ms,
        )

    def __str__(self) -> str:
        return (
            f"Heartbeat{{sourceClusterAlias={self.source}, targetClusterAlias={self.target}, "
            f"timestamp={self.timestamp_ms}}}"
        )


def _check_version(what: str, version: int, *, strict: bool) -> None:
    if strict and version != VERSION:
        raise RecordError(
            f"Version {version} of a {what} is not supported: upgrade, or read it as version 0"
        )
