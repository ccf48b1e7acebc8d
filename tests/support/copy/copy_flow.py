"""One flow under test: two clusters, its topics, the job that copies them, and its harness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import CopySettings
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from tests.support.copy.copy_harness import CopyHarness
from tests.support.copy.transform_chains import transformed_records
from tests.support.kafka.batch_writer import MakeRecords, numbered_records, priced_records
from tests.support.kafka.clusters import wait_for_leaders
from tests.support.kafka.partition_log import (
    PartitionLog,
    assert_copied,
    assert_run_map_consistent,
    read_partition_log,
)
from tests.support.kafka.wire_copier import make_router

FAST_REPORT_SETTINGS = {"report_interval_s": 0.1, "lease_timeout_s": 60.0, "drain_timeout_s": 30.0}
"""Frequent reports, and timeouts that a slow computer does not reach."""
TASK_TIMEOUT_S = 60.0
"""Longer than a slow computer needs; `expire_silent_tasks` shortens it."""
TOPIC_CREATION_TIMEOUT_S = 240.0
"""A busy broker needs minutes to open the logs of a thousand partitions."""


def remote_topic_name(topic: str) -> str:
    """Return the remote topic of a source topic."""
    return f"source.{topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFlow:
    """Two clusters and a name. Tests share the clusters: use unique topic names."""

    name: str
    source: ClusterAccess
    target: ClusterAccess
    source_properties: Mapping[str, str]
    target_properties: Mapping[str, str]
    replication_factor: int = 1
    transforms: Mapping[str, str] = field(default_factory=dict)
    """The connector's transformations; with them records are those of `make_records`."""

    @property
    def make_records(self) -> MakeRecords:
        """Makes records that the transformations can read."""
        return priced_records if self.transforms else numbered_records

    def expected_records(self, source: PartitionLog) -> list[Record]:
        """Return what must arrive of a source partition, with the source offsets."""
        records = source.expected_records
        return transformed_records(self.transforms, records) if self.transforms else records

    @property
    def offsets_topic(self) -> str:
        """The offsets topic of this flow."""
        return f"offsets.{self.name}"

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        source: Mapping[str, str] | None = None,
        remote: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic on both clusters, with topic configs for each."""
        self.create_topics({topic: (partitions, source or {}, remote or {})})

    def create_topics(
        self, topics: Mapping[str, tuple[int, Mapping[str, str], Mapping[str, str]]]
    ) -> None:
        """Create topics (partitions, source configs, remote configs) and the offsets topic."""
        _create_topics(
            self.source,
            [self._new_topic(name, count, configs) for name, (count, configs, _) in topics.items()],
        )
        remotes = [
            self._new_topic(remote_topic_name(name), count, configs)
            for name, (count, _, configs) in topics.items()
        ]
        _create_topics(
            self.target,
            [*remotes, self._new_topic(self.offsets_topic, 1, {"cleanup.policy": "compact"})],
        )

    def create_remote_topic(self, topic: str, partitions: int = 1) -> None:
        """Create only the remote topic."""
        _create_topics(self.target, [self._new_topic(remote_topic_name(topic), partitions, {})])

    def job(
        self,
        topics: Mapping[str, int],
        *,
        tasks: int = 1,
        settings: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> CopyJob:
        """Return the job that copies these topics (with partition counts)."""
        every = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
        made = CopyJob(
            connector=self.name,
            group_id="tests",
            settings=CopySettings(
                source=self.source_properties,
                target=self.target_properties,
                **{
                    **FAST_REPORT_SETTINGS,
                    "transforms": self.transforms,
                    **(settings or {}),
                },
            ),
            offsets_topic=self.offsets_topic,
            remote_topics={topic: remote_topic_name(topic) for topic in topics},
            tasks={task: tuple(every[task::tasks]) for task in range(tasks)},
            task_count=tasks,
            flush_interval_s=3600,
            task_timeout_s=TASK_TIMEOUT_S,
        )
        return replace(made, **more)

    def harness(self, job: CopyJob) -> CopyHarness:
        """Return a harness for a job, with its ledger in the offsets topic."""
        return CopyHarness(job, OffsetsTopicLedger.for_job(job))

    def source_end_offsets(self, topics: Mapping[str, int]) -> dict[str, int]:
        """Return the current end offsets of the source."""
        every = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
        router = make_router(self.source)
        try:
            listed = list_offsets(router, dict.fromkeys(every, LATEST))
        finally:
            router.close()
        assert all(outcome.value for outcome in listed.values()), listed
        return {str(p): outcome.value.offset for p, outcome in listed.items() if outcome.value}

    def _new_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> NewTopic:
        return NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=self.replication_factor,
            configs=configs,
        )

    def partition_logs(self, partition: TopicPartition) -> tuple[PartitionLog, PartitionLog]:
        """Return the logs of a partition and of its remote partition."""
        return next(self.all_partition_logs([partition]))

    def all_partition_logs(
        self, partitions: Iterable[TopicPartition]
    ) -> Iterator[tuple[PartitionLog, PartitionLog]]:
        """Yield the logs of partitions and of their remote partitions."""
        routers = make_router(self.source), make_router(self.target)
        try:
            for partition in partitions:
                remote = TopicPartition(remote_topic_name(partition.topic), partition.partition)
                yield (
                    read_partition_log(routers[0], partition),
                    read_partition_log(routers[1], remote),
                )
        finally:
            for router in routers:
                router.close()

    def assert_mirrored(
        self,
        topics: Mapping[str, int],
        *,
        fences: int = 0,
        harness: CopyHarness | None = None,
    ) -> None:
        """Assert that the target has every source record once, in order.

        With transformations: what they make of the records.

        `fences` is the maximum number of markers on each remote partition.

        With a harness, assert that its run map is correct, too.
        """
        every = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
        for partition, (source, target) in zip(every, self.all_partition_logs(every), strict=True):
            expected = self.expected_records(source)
            assert_copied(expected, target, fences=fences)
            if harness:
                assert_run_map_consistent(expected, target, harness.conductor.runs(partition))


def _create_topics(access: ClusterAccess, topics: list[NewTopic]) -> None:
    with Admin(access, TOPIC_CREATION_TIMEOUT_S) as admin:
        existing = admin.describe_topics([topic.name for topic in topics])
        failed, _ = admin.create_topics([topic for topic in topics if topic.name not in existing])
        assert not failed, failed
    every = [TopicPartition(topic.name, n) for topic in topics for n in range(topic.partitions)]
    wait_for_leaders(access, every, TOPIC_CREATION_TIMEOUT_S)
