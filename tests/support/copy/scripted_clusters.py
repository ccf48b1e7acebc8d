"""Clusters, fences and a ledger in memory, for tests of the conductor without brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sparkmirror.copy.driver.cluster_queries import ClusterQueries, LogRange, LogRanges
from sparkmirror.copy.driver.fencing.fence import LogEnd, PartitionFencer
from sparkmirror.copy.driver.fencing.producer_support import ProducerSupport
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ClusterError, MirrorError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch

FENCE_PRODUCER = ProducerIdAndEpoch(9, 2)
PROPERTIES = {"bootstrap.servers": "127.0.0.1:1"}
SETTINGS = CopySettings(source=PROPERTIES, target=PROPERTIES)


def copy_job(*tasks: tuple[TopicPartition, ...], **more: Any) -> CopyJob:
    """Return a job with these tasks; the remote topic of `t` is `A.t`."""
    topics = {partition.topic for task in tasks for partition in task}
    return CopyJob(
        connector="c",
        group_id="g",
        settings=replace(SETTINGS, source_alias="A"),
        offsets_topic="offsets",
        remote_topics={topic: f"A.{topic}" for topic in topics},
        tasks=dict(enumerate(tasks)),
        task_count=len(tasks),
        **more,
    )


class ScriptedClusters(ClusterQueries):
    """Answers every query of a kind with one value, and sends no request."""

    source_range: LogRange | ErrorCode = LogRange(start=0, end=200, high_watermark=200)
    target_end: int | ErrorCode = 50
    target_range: LogRange | ErrorCode | None = None
    topic_id: str | ErrorCode = ""
    epoch_end: int | ErrorCode = 200
    limits: TargetLimits | ErrorCode = TargetLimits()
    metadata_requests = 0

    @classmethod
    def scripted(cls) -> ScriptedClusters:
        made = cls.create(SETTINGS)
        assert isinstance(made, ScriptedClusters)
        return made

    def source_ranges(self, partitions: Iterable[TopicPartition]) -> LogRanges:
        return dict.fromkeys(partitions, self.source_range)

    def target_ends(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | ErrorCode]:
        return dict.fromkeys(partitions, self.target_end)

    def target_ranges(self, partitions: Iterable[TopicPartition]) -> LogRanges:
        """Remote partitions that hold nothing, unless a range is scripted."""
        end = 0 if isinstance(self.target_end, ErrorCode) else self.target_end
        empty = LogRange(start=end, end=end, high_watermark=end)
        return dict.fromkeys(partitions, self.target_range or empty)

    def topic_ids(self, router: Router, topics: Iterable[str]) -> dict[str, str | ErrorCode]:
        self.metadata_requests += 1
        return dict.fromkeys(topics, self.topic_id)

    def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ErrorCode]:
        return dict.fromkeys(epochs, self.epoch_end)

    def target_limits(self, topics: Iterable[str]) -> dict[str, TargetLimits | ErrorCode]:
        return dict.fromkeys(topics, self.limits)


class ScriptedFences(PartitionFencer):
    """Fences every partition with one outcome, and counts."""

    def __init__(self, clusters: ClusterQueries) -> None:
        super().__init__(clusters.target, "g-c")
        self.scripted_support = ProducerSupport()
        self.outcome: LogEnd | ErrorCode | MirrorError = LogEnd(FENCE_PRODUCER, 51)
        self.first_identity = FENCE_PRODUCER
        self.unfenced_identity = ProducerIdAndEpoch(77, 0)
        self.fenced: list[TopicPartition] = []

    @property
    def support(self) -> ProducerSupport:
        return self.scripted_support

    def identity_for(self, partition: TopicPartition) -> ProducerIdAndEpoch:
        return self.first_identity

    def fenceable_producer_id(self, partition: TopicPartition) -> int | None:
        return self.first_identity.producer_id if self.support.has_transactions else None

    def new_unfenced_identity(self) -> ProducerIdAndEpoch:
        return self.unfenced_identity

    def fence(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LogEnd | ErrorCode]:
        if isinstance(self.outcome, MirrorError):
            raise self.outcome
        wanted = list(partitions)
        self.fenced += wanted
        return dict.fromkeys(wanted, self.outcome)


class InMemoryLedger:
    """A ledger in memory that keeps every write. Ledgers with the same log share it."""

    def __init__(self, log: list[LedgerChange] | None = None) -> None:
        self.log: list[LedgerChange] = [] if log is None else log
        self._read = 0
        self.entries: dict[TopicPartition, LedgerEntry] = {}
        self.writes: list[dict[TopicPartition, LedgerEntry]] = []
        self.error: MirrorError | None = None
        self.on_retry: Callable[[ClusterError], None] = lambda _: None

    def load(self) -> dict[TopicPartition, LedgerEntry]:
        self.changes()
        return dict(self.entries)

    def changes(self) -> list[LedgerChange]:
        """Return what was written since the last call, by any ledger of the log."""
        new, self._read = self.log[self._read :], len(self.log)
        for partition, entry in new:
            if entry is None:
                self.entries.pop(partition, None)
            else:
                self.entries[partition] = entry
        return new

    def save(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Store the entries, or raise the scripted error."""
        if self.error:
            raise self.error
        self.writes.append(dict(entries))
        self.entries |= entries
        self.log += [LedgerChange(partition, entry) for partition, entry in entries.items()]

    def cancel(self) -> None:
        """No-op."""

    def set_on_retry(self, on_retry: Callable[[ClusterError], None]) -> None:
        """Keep the callback."""
        self.on_retry = on_retry

    def close(self) -> None:
        pass
