"""A KafkaBasedLog under test, and all records that it delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import LeadershipLost, RequestRefused
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


def assert_refused_append_leaves_no_record(access: ClusterAccess, topic: str) -> None:
    """Assert that a refused privileged append leaves no record, and that claims hold after it."""
    create_compacted_topic(access, topic)
    one, two, three = (RecordBytes(b"key %d" % n, b"value %d" % n) for n in range(3))
    too_large = RecordBytes(b"large", b"." * 2_000_000)
    transactional_id = f"connect-cluster-{topic}"
    with (
        collecting_log(access, topic, transactional_id) as first,
        collecting_log(access, topic, transactional_id) as second,
    ):
        first.log.claim_write_privileges()
        first.log.append_privileged([one])
        with pytest.raises(RequestRefused, match="MESSAGE_TOO_LARGE"):
            first.log.append_privileged([one, too_large])
        with pytest.raises(RequestRefused, match="MESSAGE_TOO_LARGE"):
            first.log.append_privileged([too_large])
        first.log.append_privileged([two])
        first.log.append_privileged([one, two])
        first.log.read_to_end()
        assert first.records == [one, two, one, two]
        second.log.claim_write_privileges()
        with pytest.raises(LeadershipLost):
            first.log.append_privileged([three])
        second.log.append_privileged([three])
        second.log.read_to_end()
        assert second.records == [one, two, one, two, three]
