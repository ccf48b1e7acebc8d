"""A KafkaBasedLog under test, and all records that it delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.kafka_based_log import KafkaBasedLog
from sparkmirror.store.topic_reader import ConsumedRecord


class LogCollector:
    """A log that is not started yet, and the records that it will deliver."""

    def __init__(
        self, access: ClusterAccess, topic: str, transactional_id: str | None = None
    ) -> None:
        self.entries: list[ConsumedRecord] = []
        self.log = KafkaBasedLog(topic, access.new_router, transactional_id=transactional_id)

    @property
    def records(self) -> list[RecordBytes]:
        """The records delivered so far, in order."""
        return [entry.record for entry in self.entries]

    @property
    def latest_values(self) -> dict[bytes | None, bytes | None]:
        """The last value of each key."""
        return {entry.record.key: entry.record.value for entry in self.entries}


@contextmanager
def collecting_log(
    access: ClusterAccess, topic: str, transactional_id: str | None = None
) -> Iterator[LogCollector]:
    """A started log that reads a topic; it is stopped at the end."""
    collector = LogCollector(access, topic, transactional_id)
    try:
        collector.log.start(collector.entries.append)
        yield collector
    finally:
        collector.log.stop()


def create_compacted_topic(
    access: ClusterAccess,
    topic: str,
    partitions: int = 1,
    replicas: int = -1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a compacted topic."""
    settings = {"cleanup.policy": "compact", **(configs or {})}
    with Admin(access) as admin:
        admin.create_topic(
            NewTopic(
                name=topic, partitions=partitions, replication_factor=replicas, configs=settings
            )
        )
