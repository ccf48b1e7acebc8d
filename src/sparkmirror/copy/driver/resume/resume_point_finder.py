"""Finds the resume points of partitions: queries both clusters, then decides.

The decision is in `resume_point_decision`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.copy.driver.cluster_queries import ClusterQueries, LogRange
from sparkmirror.copy.driver.fencing.fence import PartitionFencer
from sparkmirror.copy.driver.resume.data_loss import find_loss, renamed_from
from sparkmirror.copy.driver.resume.existing.existing_records_finder import ExistingRecordsFinder
from sparkmirror.copy.driver.resume.existing.on_existing_policy import (
    ExistingDecision,
    ExistingPartition,
)
from sparkmirror.copy.driver.resume.resume_point_decision import (
    PartitionLogs,
    ResumeMode,
    ResumePoint,
    resume_mode,
    resume_point,
    start_offset,
)
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.job import CopyJob, StartMode
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, default_remote_name, stored_remote_name
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH
from sparkmirror.wire.protocol.error_codes import ErrorCode


@dataclass(slots=True)
class ResumePointFinder:
    """Finds resume points. Blocks; belongs to the conductor's thread."""

    job: CopyJob
    clusters: ClusterQueries
    fences: PartitionFencer
    existing: ExistingRecordsFinder = field(init=False)

    def __post_init__(self) -> None:
        self.existing = ExistingRecordsFinder(self.clusters)

    def find(
        self, partitions: list[TrackedPartition], entries: Mapping[TopicPartition, LedgerEntry]
    ) -> dict[TrackedPartition, ResumePoint]:
        """Query both clusters, in a few requests for all partitions, and decide for each one."""
        ranges = self.clusters.source_ranges([tracked.source for tracked in partitions])
        ends = self.clusters.target_ends([tracked.target for tracked in partitions])
        source_ids = self.clusters.topic_ids(
            self.clusters.source, {tracked.source.topic for tracked in partitions}
        )
        target_ids = self.clusters.topic_ids(
            self.clusters.target, {tracked.target.topic for tracked in partitions}
        )
        starts = self._start_offsets([p for p in partitions if p.source not in entries], ranges)
        existing = self._decide_existing(partitions, ranges, ends, starts)
        readable = [p for p in partitions if isinstance(ranges[p.source], LogRange)]
        epoch_ends = self.clusters.epoch_ends(_last_epochs(readable, entries))
        found: dict[TrackedPartition, ResumePoint] = {}
        for tracked in partitions:
            logs = _partition_logs(
                tracked,
                source_range=ranges[tracked.source],
                epoch_end=epoch_ends.get(tracked.source),
                target_end=ends[tracked.target],
                source_topic_id=source_ids[tracked.source.topic],
                target_topic_id=target_ids[tracked.target.topic],
            )
            if isinstance(logs, str):
                found[tracked] = ResumePoint(error=logs)
            else:
                decision = existing.get(tracked.source)
                if isinstance(decision, str):
                    found[tracked] = ResumePoint(error=decision)
                elif decision and decision.position is None:
                    found[tracked] = ResumePoint(
                        existing=decision, source_end=logs.source_range.end
                    )
                else:
                    entry = entries.get(tracked.source)
                    start = decision.position if decision else starts.get(tracked.source)
                    point = self._find_one(logs, entry, start, tracked.last_known_end)
                    found[tracked] = replace(point, existing=decision)
        return found

    def _decide_existing(
        self,
        partitions: Iterable[TrackedPartition],
        ranges: Mapping[TopicPartition, LogRange | ErrorCode],
        ends: Mapping[TopicPartition, int | ErrorCode],
        starts: Mapping[TopicPartition, int],
    ) -> Mapping[TopicPartition, ExistingDecision | str]:
        """Decide for partitions without a ledger entry whose remote partition holds records."""
        looked_at = [p for p in partitions if p.source in starts and has_offsets(ends[p.target])]
        target_ranges = (
            self.clusters.target_ranges([p.target for p in looked_at]) if looked_at else {}
        )
        holding: dict[TopicPartition, ExistingPartition] = {}
        errors: dict[TopicPartition, str] = {}
        for tracked in looked_at:
            source_range, target_range = ranges[tracked.source], target_ranges[tracked.target]
            if isinstance(target_range, ErrorCode):
                errors[tracked.source] = f"target: {tracked.target}: {target_range}"
            elif target_range.start < target_range.high_watermark:
                assert isinstance(source_range, LogRange)
                holding[tracked.source] = ExistingPartition(
                    source=tracked.source,
                    target=tracked.target,
                    source_range=source_range,
                    target_range=target_range,
                    start=starts[tracked.source],
                )
        return errors | self.existing.decide(self.job, holding)

    def _find_one(
        self,
        logs: PartitionLogs,
        entry: LedgerEntry | None,
        start: int | None,
        last_known_end: int,
    ) -> ResumePoint:
        logs = self._with_names(logs, entry)
        is_renamed = bool(logs.renamed_from)
        loss = (
            find_loss(
                *(entry, logs.source_range, logs.topic_ids, last_known_end), is_renamed=is_renamed
            )
            if entry
            else None
        )
        mode = resume_mode(
            *(entry, loss, logs.target_end, self.job.is_exactly_once), is_renamed=is_renamed
        )
        if mode is ResumeMode.CONTINUE and not self.fences.is_idempotent:
            mode = ResumeMode.ADOPT  # the target has no producer ids any more
        identity = self._new_identity(logs) if mode.needs_new_identity else None
        if entry is None:
            assert start is not None
            entry = LedgerEntry(position=start)
        return resume_point(mode, entry, loss, logs, identity, self.job.is_exactly_once)

    def _with_names(self, logs: PartitionLogs, entry: LedgerEntry | None) -> PartitionLogs:
        """Add the name of the remote topic as the ledger stores it, and the former name."""
        alias, source, remote = self.job.settings.source_alias, logs.source, logs.target.topic
        default = default_remote_name(alias, source.topic)
        return replace(
            logs,
            stored_remote=stored_remote_name(alias, source.topic, remote, logs.target_topic_id),
            renamed_from=(
                renamed_from(entry, remote, default, logs.target_topic_id) if entry else ""
            ),
        )

    def _new_identity(self, logs: PartitionLogs) -> LeaseIdentity:
        """The identity of the partition's fence, anchored at the end of the target."""
        if self.job.is_exactly_once:
            return TRANSACTIONAL_IDENTITY
        producer = self.fences.identity_for(logs.target)
        return LeaseIdentity(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            anchor=logs.target_end,
        )

    def _start_offsets(
        self,
        partitions: list[TrackedPartition],
        ranges: Mapping[TopicPartition, LogRange | ErrorCode],
    ) -> dict[TopicPartition, int]:
        """Start offsets of partitions without a ledger entry."""
        start = self.job.start
        readable = {p.source: r for p in partitions if isinstance(r := ranges[p.source], LogRange)}
        offsets: Mapping[TopicPartition, int | ErrorCode] = {}
        if start.at is StartMode.TIMESTAMP and readable:
            offsets = self.clusters.offsets_for_time(readable, start.timestamp_ms)
        return {
            partition: start_offset(start, partition, source_range, offsets.get(partition))
            for partition, source_range in readable.items()
        }


def has_offsets(end: int | ErrorCode) -> bool:
    """Whether a log that ends there may hold records."""
    return not isinstance(end, ErrorCode) and end > 0


def _partition_logs(
    tracked: TrackedPartition,
    *,
    source_range: LogRange | ErrorCode,
    epoch_end: int | ErrorCode | None,
    target_end: int | ErrorCode,
    source_topic_id: str | ErrorCode,
    target_topic_id: str | ErrorCode,
) -> PartitionLogs | str:
    """Combine the brokers' answers; the error text if one is missing.

    Without all answers a loss could stay unnoticed: the conductor asks again later.
    """
    if isinstance(source_range, ErrorCode):
        return f"source: {tracked.source}: {source_range}"
    if isinstance(source_topic_id, ErrorCode):
        return f"source: {tracked.source}: {source_topic_id}"
    if isinstance(epoch_end, ErrorCode):
        return f"source: {tracked.source}: {epoch_end}"
    if isinstance(target_end, ErrorCode):
        return f"target: {tracked.target}: {target_end}"
    if isinstance(target_topic_id, ErrorCode):
        return f"target: {tracked.target}: {target_topic_id}"
    return PartitionLogs(
        source=tracked.source,
        target=tracked.target,
        source_range=replace(source_range, epoch_end=epoch_end),
        target_end=target_end,
        source_topic_id=source_topic_id,
        target_topic_id=target_topic_id,
    )


def _last_epochs(
    partitions: Iterable[TrackedPartition], entries: Mapping[TopicPartition, LedgerEntry]
) -> dict[TopicPartition, int]:
    """The leader epoch of the last copied record, where the ledger has it."""
    known = {p.source: entries[p.source] for p in partitions if p.source in entries}
    return {
        partition: entry.extension.source_epoch
        for partition, entry in known.items()
        if entry.extension and entry.extension.source_epoch != NO_EPOCH
    }
