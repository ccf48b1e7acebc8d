"""A flow mirrored with the connectors themselves, tasks as processes without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.records import read_topic
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.connect.connectors.source import SourceConnector
from sparkmirror.connect.connectors.source_job import job_of
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.job import Job
from sparkmirror.copy.settings import Settings
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.engine.runs import OffsetsTopicRuns
from sparkmirror.mirror.connect_offsets import StoredOffset
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.mirror.run_records import KnownRuns
from sparkmirror.model import TopicPartition
from sparkmirror.wire.offsets import LATEST, list_offsets
from tests.support.clusters import Reachable
from tests.support.connecting import Context, connector_config, has_a_plan, worker_side
from tests.support.flows import QUICK, SILENCE_S
from tests.support.logs import Log, read_log
from tests.support.stage import Stage
from tests.support.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirroring:
    """One flow A->B, and the worker that runs it, on the target. Use unique names."""

    name: str
    source: Reachable
    target: Reachable
    topics: str

    @property
    def worker(self) -> WorkerSide:
        """The worker."""
        return worker_side(self.target, f"offsets.{self.name}")

    def prepare(self, topics: Mapping[str, int]) -> None:
        """Create source topics with so many partitions, and the worker's offsets topic."""
        with Admin(self.source.access) as admin:
            failed = admin.create_topics(
                [NewTopic(name=name, partitions=count) for name, count in topics.items()]
            )
            assert not failed, failed
        with Admin(self.target.access) as admin:
            admin.create_topic(
                NewTopic(
                    name=f"offsets.{self.name}",
                    partitions=5,
                    configs={"cleanup.policy": "compact"},
                )
            )

    def config(self, kind: str, **more: str) -> dict[str, str]:
        """One of its connectors."""
        name = f"{kind.lower()}.{self.name}"
        config = connector_config(kind, name, self.source, self.target, **more)
        return {**config, "topics": self.topics}

    def job(self, **more: str) -> Job:
        """What its source connector copies, quickly reported."""
        config = self.config("Source", **more)
        connector = SourceConnector(config["name"], Context())
        try:
            connector.start(config)
            wait_until(lambda: has_a_plan(connector), "a first look at the clusters")
            tasks = tuple(connector.task_configs(2))
        finally:
            connector.stop()
        plan = TaskPlan(connector=config["name"], config=config, tasks=tasks, generation=1)
        job = job_of(plan, self.worker)
        settings = Settings.from_json(job.settings.to_json() | QUICK)
        return replace(job, settings=settings, silence_s=SILENCE_S)

    def stage(self, job: Job) -> Stage:
        """A stage that keeps positions and maps in the worker's offsets topic."""
        return Stage(job, OffsetsTopicLedger.of(job), OffsetsTopicRuns.of(job))

    def copy(self, **more: str) -> None:
        """Copy all there is now, and end cleanly."""
        job = self.job(**more)
        with self.stage(job) as stage:
            stage.wait_until_caught_up(self.ends(job))
            stage.drain()

    def logs(self, partition: TopicPartition) -> tuple[Log, Log]:
        """A partition as it lies on both sides."""
        source, target = self.source.access.router(), self.target.access.router()
        try:
            remote = partition._replace(topic=f"A.{partition.topic}")
            return read_log(source, partition), read_log(target, remote)
        finally:
            source.close()
            target.close()

    def truth(self, partition: TopicPartition, position: int) -> int:
        """Where a consumer at a position of the source goes on: found by comparing the logs."""
        source, target = self.logs(partition)
        wanted, there = source.wanted, target.records
        assert len(wanted) == len(there)
        for one, copy in zip(wanted, there, strict=True):
            if one.offset >= position:
                return copy.offset
        return there[-1].offset + 1

    def known_runs(self) -> KnownRuns:
        """The exact maps that were kept in the offsets topic."""
        known = KnownRuns("A")
        for record in read_topic(self.target.access, f"offsets.{self.name}"):
            known.apply(StoredOffset.decode(RecordBytes(record.key, record.value)))
        return known

    def ends(self, job: Job) -> dict[str, int]:
        """Where the source's logs end now, for who reads what is committed."""
        router = self.source.access.router()
        try:
            every = [partition for task in job.tasks for partition in task]
            listed = list_offsets(router, dict.fromkeys(every, LATEST), read_committed=True)
        finally:
            router.close()
        return {str(p): outcome.value.offset for p, outcome in listed.items() if outcome.value}
