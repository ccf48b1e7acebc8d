"""Appending keyed records: each to the partition of its key, in batches that brokers take.

Appended without a producer id and tried again, so a record may come twice; in a compacted topic
the last of a key counts, and that is the same one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.topic_reader import topic_partitions
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.single_produce import append_records

MAX_BATCH_BYTES = 500_000
"""Well below max.message.bytes as it is by default: task configs of large flows add up."""


def append_keyed(router: Router, topic: str, records: Sequence[RecordBytes], now_ms: int) -> None:
    """Append records; those of one partition stay in order. Returns when the brokers have them."""
    count = len(topic_partitions(router, topic))
    by_partition: dict[int, list[RecordBytes]] = defaultdict(list)
    for record in records:
        assert record.key is not None, "records of Connect's topics have keys"
        by_partition[partition_for(record.key, count)].append(record)
    for number, group in by_partition.items():
        for batch in split_into_batches(group, now_ms):
            append_records(router, TopicPartition(topic, number), batch)


def split_into_batches(records: Iterable[RecordBytes], now_ms: int) -> Iterator[list[Record]]:
    """Cut records into batches; one that is too large for a batch gets its own."""
    batch: list[Record] = []
    size = 0
    for key, value in records:
        weight = len(key or b"") + len(value or b"")
        if batch and size + weight > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(Record(0, now_ms, key, value))
        size += weight
    if batch:
        yield batch
