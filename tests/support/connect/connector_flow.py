"""A flow mirrored with the connectors themselves, tasks as processes without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.connect.connectors.source.copy_job_builder import build_job
from sparkmirror.connect.connectors.source.source_connector import MirrorSourceConnector
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import CopySettings
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger, OffsetsTopicRunMaps
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.mirror.offsets.run_map_records import RunMapsState
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from tests.support.connect.connector_context import (
    RecordingContext,
    can_plan_tasks,
    connector_config,
    worker_clients_on,
)
from tests.support.connect.task_plans import plan_of_all_tasks
from tests.support.copy.copy_flow import FAST_REPORT_SETTINGS, TASK_TIMEOUT_S
from tests.support.copy.copy_harness import CopyHarness
from tests.support.kafka.clusters import SharedCluster
from tests.support.kafka.partition_log import PartitionLog, read_partition_log
from tests.support.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFlow:
    """One flow A->B, and a worker whose topics are on the target. Use unique names."""

    name: str
    source: SharedCluster
    target: SharedCluster
    topics: str

    @property
    def worker(self) -> WorkerClientConfig:
        """The worker."""
        return worker_clients_on(self.target, f"offsets.{self.name}")

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create source topics with so many partitions, and the worker's offsets topic."""
        with Admin(self.source.access) as admin:
            failed, _ = admin.create_topics(
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

    def connector_config(self, connector_type: str, **more: str) -> dict[str, str]:
        """The config of one of its connectors."""
        name = f"{connector_type.lower()}.{self.name}"
        config = connector_config(connector_type, name, self.source, self.target, **more)
        return {**config, "topics": self.topics}

    def job(self, **more: str) -> CopyJob:
        """The job of its source connector, with short report intervals."""
        config = self.connector_config("Source", **more)
        connector = MirrorSourceConnector(config["name"], RecordingContext())
        try:
            connector.start(config)
            wait_until(lambda: can_plan_tasks(connector), "the first refresh")
            tasks = tuple(connector.task_configs(2))
        finally:
            connector.stop()
        plan = plan_of_all_tasks(config, tasks)
        job = build_job(plan, self.worker)
        settings = CopySettings.from_json(job.settings.to_json() | FAST_REPORT_SETTINGS)
        return replace(job, settings=settings, task_timeout_s=TASK_TIMEOUT_S)

    def harness(self, job: CopyJob) -> CopyHarness:
        """A harness that keeps positions and maps in the worker's offsets topic."""
        return CopyHarness(job, OffsetsTopicLedger.for_job(job), OffsetsTopicRunMaps.for_job(job))

    def copy_to_end(self, **more: str) -> None:
        """Copy up to the current end, then drain."""
        job = self.job(**more)
        with self.harness(job) as harness:
            harness.wait_until_caught_up(self.source_end_offsets(job))
            harness.drain()

    def partition_logs(self, partition: TopicPartition) -> tuple[PartitionLog, PartitionLog]:
        """The partition's logs on both clusters."""
        source, target = self.source.access.new_router(), self.target.access.new_router()
        try:
            remote = partition._replace(topic=f"A.{partition.topic}")
            return read_partition_log(source, partition), read_partition_log(target, remote)
        finally:
            source.close()
            target.close()

    def expected_offset(self, partition: TopicPartition, position: int) -> int:
        """The target offset of a source position, found by comparing the logs."""
        source, target = self.partition_logs(partition)
        expected, copied = source.expected_records, target.records
        assert len(expected) == len(copied)
        for original, copy in zip(expected, copied, strict=True):
            if original.offset >= position:
                return copy.offset
        return copied[-1].offset + 1

    def known_runs(self) -> RunMapsState:
        """The run maps in the offsets topic."""
        known = RunMapsState("A")
        for record in read_topic(self.target.access, f"offsets.{self.name}"):
            known.apply(StoredOffset.decode(RecordBytes(record.key, record.value)))
        return known

    def source_end_offsets(self, job: CopyJob) -> dict[str, int]:
        """The current end offsets of the source partitions, for read_committed."""
        router = self.source.access.new_router()
        try:
            every = list(job.task_of_partition())
            listed = list_offsets(router, dict.fromkeys(every, LATEST), read_committed=True)
        finally:
            router.close()
        return {str(p): outcome.value.offset for p, outcome in listed.items() if outcome.value}
