"""One flow under test: two clusters, its topics, the job that copies them, and its stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.copy.job import Job
from sparkmirror.copy.settings import Settings
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.model import TopicPartition
from sparkmirror.wire.offsets import LATEST, list_offsets
from tests.support.clusters import wait_until_served
from tests.support.logs import Log, assert_copied, assert_runs_are_true, read_log
from tests.support.raw_copy import router_of
from tests.support.stage import Stage

QUICK = {"report_every_s": 0.1, "lease_s": 60.0, "drain_s": 30.0}
"""Settings of a task that tells soon how far it is, and that nobody takes for dead because the
computer stood still for a while."""
SILENCE_S = 60.0
"""The same of the driver. Where somebody has to be found silent, the test says when."""
CREATED_WITHIN_S = 240.0
"""A busy broker takes minutes to open the logs of a thousand partitions."""


def remote_name(topic: str) -> str:
    """The remote topic of a source topic."""
    return f"source.{topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Where from, where to, and under which name. Topics are shared: use unique names."""

    name: str
    source: Access
    target: Access
    source_properties: Mapping[str, str]
    target_properties: Mapping[str, str]
    replicas: int = 1

    @property
    def offsets_topic(self) -> str:
        """The offsets topic of this flow alone."""
        return f"offsets.{self.name}"

    def create(
        self,
        topic: str,
        partitions: int = 1,
        *,
        source: Mapping[str, str] | None = None,
        remote: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic on both sides, with settings of their own."""
        self.create_many({topic: (partitions, source or {}, remote or {})})

    def create_many(
        self, topics: Mapping[str, tuple[int, Mapping[str, str], Mapping[str, str]]]
    ) -> None:
        """Create topics (partitions, source settings, remote settings) and the offsets topic."""
        _create(
            self.source,
            [self._new(name, count, configs) for name, (count, configs, _) in topics.items()],
        )
        remotes = [
            self._new(remote_name(name), count, configs)
            for name, (count, _, configs) in topics.items()
        ]
        _create(
            self.target,
            [*remotes, self._new(self.offsets_topic, 1, {"cleanup.policy": "compact"})],
        )

    def create_remote(self, topic: str, partitions: int = 1) -> None:
        """Create the remote topic alone."""
        _create(self.target, [self._new(remote_name(topic), partitions, {})])

    def job(
        self,
        topics: Mapping[str, int],
        *,
        tasks: int = 1,
        settings: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Job:
        """The job that copies these topics (with so many partitions), dealt to so many tasks."""
        every = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
        made = Job(
            connector=self.name,
            group_id="tests",
            settings=Settings(
                source=self.source_properties,
                target=self.target_properties,
                **{**QUICK, **(settings or {})},
            ),
            offsets_topic=self.offsets_topic,
            remote_topics={topic: remote_name(topic) for topic in topics},
            tasks=tuple(tuple(every[task::tasks]) for task in range(tasks)),
            flush_every_s=3600,
            silence_s=SILENCE_S,
        )
        return replace(made, **more)

    def stage(self, job: Job) -> Stage:
        """A stage for a job, with its ledger in the offsets topic."""
        return Stage(job, OffsetsTopicLedger.of(job))

    def ends(self, topics: Mapping[str, int]) -> dict[str, int]:
        """Where the source's logs end now."""
        every = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
        router = router_of(self.source)
        try:
            listed = list_offsets(router, dict.fromkeys(every, LATEST))
        finally:
            router.close()
        assert all(outcome.value for outcome in listed.values()), listed
        return {str(p): outcome.value.offset for p, outcome in listed.items() if outcome.value}

    def _new(self, name: str, partitions: int, configs: Mapping[str, str]) -> NewTopic:
        return NewTopic(
            name=name, partitions=partitions, replication_factor=self.replicas, configs=configs
        )

    def logs(self, partition: TopicPartition) -> tuple[Log, Log]:
        """A partition as it lies on both sides."""
        return next(self.all_logs([partition]))

    def all_logs(self, partitions: Iterable[TopicPartition]) -> Iterator[tuple[Log, Log]]:
        """Partitions as they lie on both sides, one after the other."""
        sides = router_of(self.source), router_of(self.target)
        try:
            for partition in partitions:
                remote = TopicPartition(remote_name(partition.topic), partition.partition)
                yield read_log(sides[0], partition), read_log(sides[1], remote)
        finally:
            for side in sides:
                side.close()

    def assert_mirrored(
        self,
        topics: Mapping[str, int],
        *,
        fences: int = 0,
        stage: Stage | None = None,
    ) -> None:
        """Everything at the source is on the target once, in order, with fences in between.

        With a stage, what its run map says must be true.
        """
        every = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
        for partition, (source, target) in zip(every, self.all_logs(every), strict=True):
            assert_copied(source.wanted, target, fences=fences)
            if stage:
                assert_runs_are_true(source.wanted, target, stage.conductor.runs(partition))


def _create(access: Access, topics: list[NewTopic]) -> None:
    with Admin(access, CREATED_WITHIN_S) as admin:
        there = admin.topics([topic.name for topic in topics])
        failed = admin.create_topics([topic for topic in topics if topic.name not in there])
        assert not failed, failed
    every = [TopicPartition(topic.name, n) for topic in topics for n in range(topic.partitions)]
    wait_until_served(access, every, CREATED_WITHIN_S)
