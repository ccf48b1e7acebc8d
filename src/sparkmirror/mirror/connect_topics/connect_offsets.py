"""The records of Connect's offsets topic, as Java MirrorMaker 2 reads and writes them.

    key    ["<connector>",{<source partition>}]     value  {"offset":N}   or a tombstone

    connector    source partition                          offset
    source       {"cluster":"A","partition":0,"topic":"t"} the last upstream offset copied
    checkpoint   {"partition":0,"topic":"A.t","group":"g"} always 0, never read
    heartbeat    {"sourceClusterAlias":"A","targetClusterAlias":"B"}  always 0, never read

Connect finds an offset by the *bytes* of its key, so the members of a key are in the order of a
HashMap. Java ignores other members of a value; this program keeps them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics import connect_json
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition

SourcePartition: TypeAlias = Mapping[str, JsonValue]
SourceOffset: TypeAlias = Mapping[str, JsonValue]

SPARKMIRROR_MEMBERS = frozenset(
    {
        "target",
        "pid",
        "epoch",
        "anchor",
        "open",
        "records",
        "source_id",
        "target_id",
        "source_epoch",
        "closed",
        "conductor",
        "task",
    }
)
"""The members that this program adds to Java's `offset` for a partition that it copies."""

log = logging.getLogger(__name__)


def source_partition(cluster: str, partition: TopicPartition) -> SourcePartition:
    """Return the Connect source partition of a source topic partition."""
    return {"cluster": cluster, "partition": partition.partition, "topic": partition.topic}


def checkpoint_partition(group: str, partition: TopicPartition) -> SourcePartition:
    """Return the Connect source partition of a group's checkpoint in a remote partition."""
    return {"partition": partition.partition, "topic": partition.topic, "group": group}


def heartbeat_partition(source: str, target: str) -> SourcePartition:
    """Return the Connect source partition of a flow's heartbeats."""
    return {"sourceClusterAlias": source, "targetClusterAlias": target}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffset:
    """One record of the offsets topic. Without an offset it is a tombstone."""

    connector: str
    partition: SourcePartition | None
    offset: SourceOffset | None

    def encode(self) -> RecordBytes:
        """Return the record for the offsets topic."""
        value = None if self.offset is None else offset_value(self.offset)
        return RecordBytes(key=offset_key(self.connector, self.partition), value=value)

    @classmethod
    def decode(cls, record: RecordBytes) -> StoredOffset:
        """Decode a record of the offsets topic. Raises RecordError."""
        if record.key is None:
            raise RecordError("A record of the offsets topic has no key")
        match connect_json.decode(record.key):
            case [str(connector), None]:
                partition: SourcePartition | None = None
            case [str(connector), dict(members)]:
                partition = members
            case _:
                raise RecordError('The key of an offset is not ["connector",{partition}]')
        offset = None if record.value is None else connect_json.decode_object(record.value)
        return cls(connector=connector, partition=partition, offset=offset)


def offset_key(connector: str, partition: SourcePartition | None) -> bytes:
    """Return the key of the record that holds the offset of `partition`."""
    members = None if partition is None else in_hash_map_order(partition)
    return connect_json.encode([connector, members])


def connector_key_filter(connector: str) -> Callable[[bytes], bool]:
    """Return a function that says whether a key may belong to a connector, without decoding it.

    It takes every key that Connect would not write in this way: only its JSON tells.
    """
    own = offset_key(connector, None).removesuffix(b"null]")

    def may_belong(key: bytes) -> bool:
        return key.startswith(own) or not key.startswith(b'["') or b"\\" in key

    return may_belong


def offset_value(offset: SourceOffset) -> bytes:
    """Return the value of the record that holds an offset."""
    return connect_json.encode(in_hash_map_order(offset))


def group_by_offsets_partition(
    offsets: Iterable[StoredOffset], partitions: int
) -> dict[int, list[RecordBytes]]:
    """Group the records by the partition of the offsets topic in which Connect expects them."""
    by_partition: dict[int, list[RecordBytes]] = {}
    for offset in offsets:
        record = offset.encode()
        assert record.key is not None
        by_partition.setdefault(partition_for(record.key, partitions), []).append(record)
    return by_partition


def upstream_offset(offset: SourceOffset) -> int:
    """Return the last copied upstream offset, -1 if the value has none. Raises RecordError."""
    number = offset.get("offset")
    if number is None:
        return -1
    if isinstance(number, bool) or not isinstance(number, int):
        raise RecordError(f"A stored offset must be an integer, not {number!r}")
    return number


class OffsetsState:
    """The offsets as of the last applied record. The latest record of a key wins."""

    def __init__(self) -> None:
        self._stored: dict[bytes | None, StoredOffset] = {}

    def apply(
        self, record: RecordBytes, *, location: object = "the offsets topic"
    ) -> StoredOffset | None:
        """Apply one record and return it. One that cannot be decoded is logged and ignored."""
        try:
            stored = StoredOffset.decode(record)
        except RecordError as error:
            log.warning("Ignored a record of %s: %s", location, error)
            return None
        if stored.offset is None:
            self._stored.pop(record.key, None)
        else:
            self._stored[record.key] = stored
        return stored

    def offset(self, connector: str, partition: SourcePartition) -> SourceOffset | None:
        """Return the offset of one source partition, found by the bytes of its key."""
        stored = self._stored.get(offset_key(connector, partition))
        return None if stored is None else stored.offset

    def of_connector(self, connector: str) -> tuple[StoredOffset, ...]:
        """Return all offsets of one connector."""
        return tuple(s for s in self._stored.values() if s.connector == connector)

    def position(self, connector: str, cluster: str, partition: TopicPartition) -> int | None:
        """Return the next upstream offset to copy; None if `auto.offset.reset` applies."""
        offset = self.offset(connector, source_partition(cluster, partition))
        last = -1 if offset is None else upstream_offset(offset)
        return last + 1 if last >= 0 else None


def to_java_offset(offset: SourceOffset | None) -> SourceOffset | None:
    """Return the offset without the members of this program; None if no record was copied yet.

    Members that an operator has added stay, as in Connect.
    """
    number = (offset or {}).get("offset")
    if offset is None or not isinstance(number, int):
        return offset
    if number < 0:
        return None
    return {name: value for name, value in offset.items() if name not in SPARKMIRROR_MEMBERS}
