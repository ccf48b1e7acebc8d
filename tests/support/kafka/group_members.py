"""Consumers that are members of a group, with the classic or the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as LibraryPartition

from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

_Consumer: Any = Consumer
_Partition: Any = LibraryPartition
_Error: Any = KafkaError
_REBALANCE_ERRORS = (
    _Error.REBALANCE_IN_PROGRESS,
    _Error.ILLEGAL_GENERATION,
    _Error.STALE_MEMBER_EPOCH,
    _Error.COORDINATOR_LOAD_IN_PROGRESS,
    _Error.COORDINATOR_NOT_AVAILABLE,
    _Error.NOT_COORDINATOR,
)


@contextmanager
def group_member(
    cluster: SharedCluster, group: str, topic: str, *, protocol: str = "classic"
) -> Iterator[Any]:
    """Yield a member of a group with assigned partitions. It leaves the group at the end."""
    consumer = _Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])

        def has_joined() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(has_joined, f"a member to join {group}", timeout_s=90)
        yield consumer
    finally:
        consumer.close()


def commit_as_member(consumer: Any, topic: str, offset: int, partition: int = 0) -> None:
    """Commit an offset as a member; retry while the group rebalances."""

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=[_Partition(topic, partition, offset)], asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in _REBALANCE_ERRORS:
                raise
            consumer.poll(0.1)
            return False
        return True

    wait_until(is_committed, f"offset {offset} to be committed")
