"""A fast reader of topics with many partitions. The client is librdkafka, not our code."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as LibraryPartition

_Consumer: Any = Consumer
_Partition: Any = LibraryPartition
_MAX_MESSAGES = 1000


class ConsumedRecord(NamedTuple):
    """A record with its partition and offset."""

    partition: int
    offset: int
    content: tuple[object, ...]
    """Timestamp, key, value, headers."""


def read_partitions(
    topic: str, partitions: int, settings: Mapping[str, str], timeout_s: float = 120
) -> list[ConsumedRecord]:
    """Return the records of all partitions, ordered by partition and offset.

    `settings` are those of librdkafka for the cluster.
    """
    consumer = _Consumer(
        {
            **settings,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([_Partition(topic, number, 0) for number in range(partitions)])
        return sorted(_read(consumer, partitions, time.monotonic() + timeout_s))
    finally:
        consumer.close()


def _read(consumer: Any, partitions: int, deadline: float) -> Iterator[ConsumedRecord]:
    ended: set[int] = set()
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"the ends of {partitions - len(ended)} are not reached"
        for message in consumer.consume(_MAX_MESSAGES, timeout=0.2):
            if not message.error():
                content = (message.timestamp(), message.key(), message.value(), message.headers())
                yield ConsumedRecord(message.partition(), message.offset(), content)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise AssertionError(message.error())
