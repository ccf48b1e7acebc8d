"""Two clusters mirrored by a whole program: what is written to one must be on the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.groups import commit_offsets, committed_offsets
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.errors import ClusterError
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.records import Record
from tests.support.clusters import Reachable
from tests.support.logs import Log, assert_copied, read_log
from tests.support.waiting import wait_until
from tests.support.writing import Writer, now_ms

BATCH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Source and target. Topics are shared with other tests: use unique names."""

    source: Reachable
    target: Reachable

    @property
    def back(self) -> Sides:
        """The other direction."""
        return Sides(source=self.target, target=self.source)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic at the source."""
        with Admin(self.source.access) as admin:
            admin.create_topic(NewTopic(name=topic, partitions=partitions))

    def write(self, topic: str, numbers: Iterable[int], partitions: int = 1) -> None:
        """Append records of all kinds to each partition of a source topic."""
        records = [_record(number) for number in numbers]
        writer = Writer(self.source.access)
        try:
            for partition in range(partitions):
                writer.write_many(TopicPartition(topic, partition), records, batch=BATCH)
        finally:
            writer.close()

    def wait_until_copied(
        self, topic: str, remote: str, partitions: int = 1, timeout_s: float = 400
    ) -> None:
        """Wait until the target's logs are as long as the source's."""

        def is_so() -> bool:
            wanted = self.source_ends(topic, partitions)
            there = _ends(self.target, remote, partitions)
            if not len(wanted) == len(there) == partitions:
                return False  # a partition is not there yet, or its leader does not answer now
            return all(there[number] >= end for number, end in wanted.items()) and all(
                len(source.records) == len(target.records)
                for source, target in self.logs(topic, remote, partitions)
            )

        try:
            wait_until(is_so, "", timeout_s)
        except AssertionError:
            raise AssertionError(
                f"{remote} has {_ends(self.target, remote, partitions)},"
                f" {topic} has {self.source_ends(topic, partitions)}"
            ) from None

    def source_ends(self, topic: str, partitions: int = 1) -> Mapping[int, int]:
        """Where the source's logs end."""
        return _ends(self.source, topic, partitions)

    def copied(self, topic: str, remote: str, partitions: int = 1) -> list[int]:
        """How many records the target's logs hold; markers do not count."""
        return [len(target.records) for _, target in self.logs(topic, remote, partitions)]

    def assert_copied(self, topic: str, remote: str, partitions: int = 1, fences: int = 0) -> None:
        """Every record is on the target once, in order, unchanged; and at most so many fences."""
        for source, target in self.logs(topic, remote, partitions):
            assert_copied(source.records, target, fences=fences)

    def truth(self, topic: str, remote: str, position: int) -> int:
        """Where a consumer at a position of partition 0 goes on: found by comparing the logs."""
        [(source, target)] = self.logs(topic, remote)
        before = sum(one.offset < position for one in source.records)
        return target.records[before].offset

    def logs(self, topic: str, remote: str, partitions: int = 1) -> list[tuple[Log, Log]]:
        """A topic as it lies on both sides, partition by partition."""
        source, target = self.source.access.router(), self.target.access.router()
        try:
            return [
                (
                    read_log(source, TopicPartition(topic, number)),
                    read_log(target, TopicPartition(remote, number)),
                )
                for number in range(partitions)
            ]
        finally:
            source.close()
            target.close()

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Let a group of the source have read partition 0 up to an offset."""
        router = self.source.access.router()
        try:
            where = OffsetAndMetadata(offset, "")
            commit_offsets(router, group, {TopicPartition(topic, 0): where})
        finally:
            router.close()

    def synced(self, group: str, remote: str) -> int | None:
        """Where a group stands in partition 0 of a topic of the target; None if nowhere."""
        router = self.target.access.router()
        try:
            found = committed_offsets(router, [group])[group]
        finally:
            router.close()
        assert not isinstance(found, ClusterError), found
        place = found.get(TopicPartition(remote, 0))
        return place.offset if place else None

    def target_topics(self) -> set[str]:
        """The names of the target's topics."""
        return topics_of(self.target)


def topics_of(cluster: Reachable) -> set[str]:
    """The names of a cluster's topics."""
    with Admin(cluster.access) as admin:
        return set(admin.topics())


def _ends(cluster: Reachable, topic: str, partitions: int) -> dict[int, int]:
    router = cluster.access.router()
    try:
        every = {TopicPartition(topic, number): LATEST for number in range(partitions)}
        listed = list_offsets(router, every, timeout_s=5)
    except ClusterError:
        return {}
    finally:
        router.close()
    return {
        partition.partition: outcome.value.offset
        for partition, outcome in listed.items()
        if outcome.value
    }


def _record(number: int) -> Record:
    """Records that can be told apart, of all kinds."""
    key = None if number % 7 == 0 else b"key %d" % number
    value = None if number % 11 == 0 else b"value %d" % number
    headers = ((b"n", b"%d" % number), (b"n", b""), (b"nothing", None))[: number % 4]
    return Record(number, now_ms() - number * 1000, key, value, headers)
