"""Appends keyed records, each to the partition of its key, in batches that brokers accept.

There is no producer id, and a failed append is retried, so a record may be appended twice. That is
harmless in a compacted topic: the last record of a key wins, and both are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.topic_reader import topic_partitions
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.multi_partition_produce import append_to_partitions

MAX_BATCH_BYTES = 500_000
"""Well below the default max.message.bytes: task configs of large flows add up."""


def append_keyed(
    router: Router,
    topic: str,
    records: Iterable[RecordBytes],
    now_ms: int,
    find_partition: Callable[[bytes, int], int] = partition_for,
) -> None:
    """Append records, in order within a partition. Returns when the brokers have them.

    Records of other partitions may be appended when this raises. `find_partition` returns the
    partition of a key in a topic with some number of partitions, as Kafka's default partitioner.
    """
    count = len(topic_partitions(router, topic))
    by_partition: dict[int, list[RecordBytes]] = defaultdict(list)
    for record in records:
        assert record.key is not None, "records of Connect's topics have keys"
        by_partition[find_partition(record.key, count)].append(record)
    append_to_partitions(
        router,
        {
            TopicPartition(topic, number): split_into_batches(group, now_ms)
            for number, group in by_partition.items()
        },
    )


def split_into_batches(records: Iterable[RecordBytes], now_ms: int) -> Iterator[list[Record]]:
    """Split records into batches. A record larger than a batch gets its own."""
    batch: list[Record] = []
    size = 0
    for key, value in records:
        record_bytes = len(key or b"") + len(value or b"")
        if batch and size + record_bytes > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(Record(0, now_ms, key, value))
        size += record_bytes
    if batch:
        yield batch
