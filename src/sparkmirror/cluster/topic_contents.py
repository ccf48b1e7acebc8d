"""Whole topics in and out: write a list of records, read everything up to the end.

For the data a lab cluster begins with, and for tests that compare contents. Record by record and
in memory: not the mirror's data path.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as LibraryPartition

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.error_translation import translating_errors
from sparkmirror.cluster.kafka_python_client import connect_client
from sparkmirror.cluster.record_types import ConsumerRecord, ProducerRecord
from sparkmirror.errors import ClusterTimeout

_POLL_MS = 200
_Producer: Any = KafkaProducer
_Consumer: Any = KafkaConsumer
_Partition: Any = LibraryPartition


def produce_records(
    access: ClusterAccess, topic: str, records: Iterable[ProducerRecord], timeout_s: float = 30.0
) -> list[tuple[int, int]]:
    """Write records and wait for the brokers; return each one's partition and offset."""
    deadline = time.monotonic() + timeout_s
    with Admin(access, timeout_s) as admin:
        admin.describe_topic(topic)  # the library would wait for a topic that is not there
    producer = connect_client(
        _Producer,
        access,
        timeout_s,
        linger_ms=5,
        allow_auto_create_topics=False,
        max_block_ms=int(timeout_s * 1000),
        delivery_timeout_ms=max(10_000, int(timeout_s * 1000)),
    )
    try:
        with translating_errors(access.cluster):
            sent = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            stored = [
                outcome.get(timeout=max(0.1, deadline - time.monotonic())) for outcome in sent
            ]
    finally:
        producer.close(timeout=max(0.1, deadline - time.monotonic()))
    return [(int(place.partition), int(place.offset)) for place in stored]


def read_topic(
    access: ClusterAccess, topic: str, timeout_s: float = 30.0, *, committed_only: bool = False
) -> list[ConsumerRecord]:
    """Read a topic from its beginning to where it ends now, by partition and offset."""
    deadline = time.monotonic() + timeout_s
    with Admin(access, timeout_s) as admin:
        found = admin.describe_topic(topic)
    partitions = [_Partition(topic, partition.index) for partition in found.partitions]
    with (
        _consumer(access, timeout_s, committed_only) as consumer,
        translating_errors(access.cluster),
    ):
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        records = _read_to_end(consumer, partitions, access, deadline)
    return sorted(records, key=lambda record: (record.partition, record.offset))


@contextmanager
def _consumer(access: ClusterAccess, timeout_s: float, committed_only: bool) -> Iterator[Any]:
    consumer = connect_client(
        _Consumer,
        access,
        timeout_s,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        exclude_internal_topics=False,
        isolation_level="read_committed" if committed_only else "read_uncommitted",
    )
    try:
        yield consumer
    finally:
        consumer.close(autocommit=False)


def _read_to_end(
    consumer: Any, partitions: Sequence[Any], access: ClusterAccess, deadline: float
) -> list[ConsumerRecord]:
    """Poll until every partition's position has reached the end seen at the beginning.

    Positions, not records: transaction markers and compacted-away records have offsets too.
    """
    ends = consumer.end_offsets(partitions)
    records: list[ConsumerRecord] = []
    while behind := [
        partition for partition in partitions if consumer.position(partition) < ends[partition]
    ]:
        if time.monotonic() > deadline:
            missing = ", ".join(f"{partition.topic}-{partition.partition}" for partition in behind)
            raise ClusterTimeout(
                access.cluster, f"the end of {missing} was not reached: look at its leaders"
            )
        for batch in consumer.poll(timeout_ms=_POLL_MS).values():
            records += [_to_consumer_record(record) for record in batch]
    return records


def _to_consumer_record(record: Any) -> ConsumerRecord:
    return ConsumerRecord(
        partition=int(record.partition),
        offset=int(record.offset),
        timestamp_ms=int(record.timestamp),
        key=record.key,
        value=record.value,
        headers=tuple((str(name), value) for name, value in record.headers),
    )
