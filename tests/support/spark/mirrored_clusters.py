"""Two clusters that a whole program mirrors: write to the source, compare with the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.groups import alter_consumer_group_offsets, list_consumer_group_offsets
from sparkmirror.errors import ClusterError
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from tests.support.kafka.batch_writer import BatchWriter, now_ms
from tests.support.kafka.clusters import SharedCluster
from tests.support.kafka.partition_log import PartitionLog, assert_copied, read_partition_log
from tests.support.waiting import wait_until

BATCH_RECORDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredClusters:
    """Source and target. Topics are shared with other tests: use unique names."""

    source: SharedCluster
    target: SharedCluster

    @property
    def reverse(self) -> MirroredClusters:
        """The other direction."""
        return MirroredClusters(source=self.target, target=self.source)

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic at the source."""
        with Admin(self.source.access) as admin:
            admin.create_topic(NewTopic(name=topic, partitions=partitions))

    def write_records(self, topic: str, numbers: Iterable[int], partitions: int = 1) -> None:
        """Append records of all kinds to each partition of a source topic."""
        records = [_varied_record(number) for number in numbers]
        writer = BatchWriter(self.source.access)
        try:
            for partition in range(partitions):
                writer.write_batches(TopicPartition(topic, partition), records, batch=BATCH_RECORDS)
        finally:
            writer.close()

    def wait_until_copied(
        self, topic: str, remote: str, partitions: int = 1, timeout_s: float = 400
    ) -> None:
        """Wait until the target's logs are as long as the source's."""

        def is_copied() -> bool:
            wanted, copied = source_ends.read(), target_ends.read()
            if not len(wanted) == len(copied) == partitions:
                return False  # a partition does not exist yet, or its leader does not answer now
            return all(copied[number] >= end for number, end in wanted.items()) and all(
                len(source.records) == len(target.records)
                for source, target in self.partition_logs(topic, remote, partitions)
            )

        with (
            closing(_EndOffsets(self.source, topic, partitions)) as source_ends,
            closing(_EndOffsets(self.target, remote, partitions)) as target_ends,
        ):
            try:
                wait_until(is_copied, "", timeout_s)
            except AssertionError:
                raise AssertionError(
                    f"{remote} has {target_ends.read()}, {topic} has {source_ends.read()}"
                ) from None

    def source_end_offsets(self, topic: str, partitions: int = 1) -> Mapping[int, int]:
        """Where the source's logs end."""
        with closing(_EndOffsets(self.source, topic, partitions)) as ends:
            return ends.read()

    def target_record_counts(self, topic: str, remote: str, partitions: int = 1) -> list[int]:
        """How many records the target's logs hold; markers do not count."""
        return [len(target.records) for _, target in self.partition_logs(topic, remote, partitions)]

    def assert_copied(self, topic: str, remote: str, partitions: int = 1, fences: int = 0) -> None:
        """Every record is on the target once, in order, unchanged; and at most so many fences."""
        for source, target in self.partition_logs(topic, remote, partitions):
            assert_copied(source.records, target, fences=fences)

    def expected_offset(self, topic: str, remote: str, position: int) -> int:
        """The target offset for a source position of partition 0, found by comparing the logs."""
        [(source, target)] = self.partition_logs(topic, remote)
        before = sum(one.offset < position for one in source.records)
        return target.records[before].offset

    def partition_logs(
        self, topic: str, remote: str, partitions: int = 1
    ) -> list[tuple[PartitionLog, PartitionLog]]:
        """The logs of a topic on both clusters, partition by partition."""
        source, target = self.source.access.new_router(), self.target.access.new_router()
        try:
            return [
                (
                    read_partition_log(source, TopicPartition(topic, number)),
                    read_partition_log(target, TopicPartition(remote, number)),
                )
                for number in range(partitions)
            ]
        finally:
            source.close()
            target.close()

    def commit_group_offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 for a group of the source."""
        router = self.source.access.new_router()
        try:
            committed = OffsetAndMetadata(offset, "")
            alter_consumer_group_offsets(router, group, {TopicPartition(topic, 0): committed})
        finally:
            router.close()

    def synced_group_offset(self, group: str, remote: str) -> int | None:
        """The offset that a group has committed in partition 0 of a target topic, if it has."""
        router = self.target.access.new_router()
        try:
            found = list_consumer_group_offsets(router, [group])[group]
        finally:
            router.close()
        assert not isinstance(found, ClusterError), found
        committed = found.get(TopicPartition(remote, 0))
        return committed.offset if committed else None

    def target_topics(self) -> set[str]:
        """The names of the target's topics."""
        return topic_names(self.target)


def topic_names(cluster: SharedCluster) -> set[str]:
    """The names of a cluster's topics."""
    with Admin(cluster.access) as admin:
        return set(admin.describe_topics())


class _EndOffsets:
    """Reads where the logs of a topic end, as often as a test waits for them, with one router."""

    def __init__(self, cluster: SharedCluster, topic: str, partitions: int) -> None:
        self._access = cluster.access
        self._router = self._access.new_router()
        self._times = {TopicPartition(topic, number): LATEST for number in range(partitions)}

    def read(self) -> dict[int, int]:
        """Return the end of each partition that exists and whose leader answers."""
        try:
            listed = list_offsets(self._router, self._times, timeout_s=5)
        except ClusterError:
            self._router.close()
            self._router = self._access.new_router()
            return {}
        return {
            partition.partition: outcome.value.offset
            for partition, outcome in listed.items()
            if outcome.value
        }

    def close(self) -> None:
        """Close the connections."""
        self._router.close()


def _varied_record(number: int) -> Record:
    """Different records, with and without key, value and headers."""
    key = None if number % 7 == 0 else b"key %d" % number
    value = None if number % 11 == 0 else b"value %d" % number
    headers = ((b"n", b"%d" % number), (b"n", b""), (b"nothing", None))[: number % 4]
    return Record(number, now_ms() - number * 1000, key, value, headers)
