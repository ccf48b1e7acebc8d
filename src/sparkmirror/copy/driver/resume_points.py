"""Resume points: the first lease of each partition, from the ledger entry and both logs.

    ledger entry            target log                resume mode
    none                    holds no records          NEW: where the job says; append at the end
    none                    holds records             NEW: where `existing` decides, or held
    offset only             any                       ADOPT: Java or an operator wrote the offset
    sparkmirror's, closed   ends where the entry says CONTINUE: same identity, no fence
    sparkmirror's, open     any                       DOUBTFUL: fence and reconcile first
    sparkmirror's, closed   longer or shorter         DOUBTFUL
    of a transaction        any                       COMMITTED: it was committed with the data

In sequenced mode the entry of a transaction is adopted too. A recreated remote topic is empty for
us: the entry is adopted, and the loss is reported. In exactly-once mode leases have no identity;
but entries of the sequenced mode that are doubtful are fenced and reconciled in both modes.

A loss (the source topic was recreated, its log starts after the position, or the leader epoch of
the last copied record ends before the position) is always reported; the job's policy decides where
copying resumes. Exception: the position of a doubtful partition is not known yet, so only a
recreated topic counts there; the first fetch finds any other loss.

`ResumePointFinder` queries the clusters. The decisions are pure functions: `resume_mode`,
`resume_point`, `start_offset`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.copy.driver.cluster_queries import ClusterQueries, LogRange
from sparkmirror.copy.driver.data_loss import DataLoss, LossKind, find_loss
from sparkmirror.copy.driver.existing.existing_records import ExistingDecision, ExistingPartition
from sparkmirror.copy.driver.existing.existing_records_finder import ExistingRecordsFinder
from sparkmirror.copy.driver.fencing.fence import PartitionFencer
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.job import CopyJob, StartMode, StartPosition
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH
from sparkmirror.wire.protocol.error_codes import ErrorCode


class ResumeMode(enum.Enum):
    """How copying of a partition resumes: the rows of the table above."""

    NEW = enum.auto()
    ADOPT = enum.auto()
    CONTINUE = enum.auto()
    DOUBTFUL = enum.auto()
    COMMITTED = enum.auto()

    @property
    def needs_new_identity(self) -> bool:
        """Whether the lease appends at the end of the target under a new identity."""
        return self in (ResumeMode.NEW, ResumeMode.ADOPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """The first lease of a partition, maybe doubtful, maybe with a loss; or an error."""

    lease: Lease | None = None
    is_doubtful: bool = False
    loss: DataLoss | None = None
    error: str = ""
    warning: str = ""
    source_end: int = -1
    target_end: int = -1
    existing: ExistingDecision | None = None
    """What was decided about records in the remote partition; without a position it is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLogs:
    """What the brokers know about a source partition and its remote partition."""

    source: TopicPartition
    target: TopicPartition
    source_range: LogRange
    target_end: int
    source_topic_id: str = ""
    target_topic_id: str = ""

    @property
    def topic_ids(self) -> tuple[str, str]:
        """Ids of the source and the remote topic."""
        return self.source_topic_id, self.target_topic_id


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
        loss = (
            find_loss(entry, logs.source_range, logs.topic_ids, last_known_end) if entry else None
        )
        mode = resume_mode(entry, loss, logs.target_end, self.job.is_exactly_once)
        identity = self._new_identity(logs) if mode.needs_new_identity else None
        if entry is None:
            assert start is not None
            entry = LedgerEntry(position=start)
        return resume_point(mode, entry, loss, logs, identity, self.job.is_exactly_once)

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


def start_offset(
    start: StartPosition,
    partition: TopicPartition,
    source_range: LogRange,
    offset_for_time: int | ErrorCode | None,
) -> int:
    """Return where copying of a partition without a ledger entry starts.

    `offset_for_time` is the broker's answer for the timestamp of `start`: a partition without a
    record of that time or later starts at its end.
    """
    match start.at:
        case StartMode.LATEST:
            return source_range.end
        case StartMode.TIMESTAMP:
            if (
                offset_for_time is None
                or isinstance(offset_for_time, ErrorCode)
                or offset_for_time < 0
            ):
                return source_range.end
            return offset_for_time
        case StartMode.OFFSETS:
            return start.offsets.get(str(partition), source_range.start)
        case StartMode.EARLIEST:
            return source_range.start


def resume_mode(
    entry: LedgerEntry | None, loss: DataLoss | None, target_end: int, is_exactly_once: bool
) -> ResumeMode:
    """Decide by the table of this module."""
    if entry is None:
        return ResumeMode.NEW
    if entry.extension is None or (loss and loss.kind is LossKind.REMOTE_RECREATED):
        return ResumeMode.ADOPT
    if entry.extension.is_transactional:
        return ResumeMode.COMMITTED if is_exactly_once else ResumeMode.ADOPT
    if entry.extension.is_open or target_end != entry.extension.expected:
        return ResumeMode.DOUBTFUL
    return ResumeMode.CONTINUE


def resume_point(
    mode: ResumeMode,
    entry: LedgerEntry,
    loss: DataLoss | None,
    logs: PartitionLogs,
    new_identity: LeaseIdentity | None,
    is_exactly_once: bool,
) -> ResumePoint:
    """Make the lease for a mode. `new_identity` is required if the mode needs one."""
    source_end = logs.source_range.end
    if mode.needs_new_identity:
        assert new_identity is not None
        lease = Lease(
            source=logs.source,
            target=logs.target,
            position=entry.position,
            expected=logs.target_end,
            identity=new_identity,
            records=entry.extension.records if entry.extension else 0,
            source_topic_id=logs.source_topic_id,
            target_topic_id=logs.target_topic_id,
        )
        return ResumePoint(lease=lease, loss=loss, source_end=source_end)
    lease = _continued_lease(entry, logs)
    if mode is ResumeMode.COMMITTED:
        warning = truncation_warning(logs.target, lease.expected, logs.target_end)
        lease = replace(lease, expected=min(lease.expected, logs.target_end))
        return ResumePoint(lease=lease, loss=loss, warning=warning, source_end=source_end)
    is_doubtful = mode is ResumeMode.DOUBTFUL
    if is_doubtful and loss and loss.kind is not LossKind.RECREATED:
        loss = None
    if is_exactly_once and not is_doubtful:
        lease = lease.as_transactional()
    return ResumePoint(
        lease=lease,
        is_doubtful=is_doubtful,
        loss=loss,
        source_end=source_end,
        target_end=logs.target_end,
    )


def truncation_warning(target: TopicPartition, expected: int, end: int) -> str:
    """Return the warning if a remote partition ends before what it acknowledged, else ''."""
    if end >= expected:
        return ""
    return (
        f"{target} ends at offset {end}, not at {expected}: the target has lost records that"
        " it had acknowledged; compare it with the source"
    )


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


def _continued_lease(entry: LedgerEntry, logs: PartitionLogs) -> Lease:
    """The lease that the ledger entry was written for."""
    assert entry.extension is not None
    return Lease(
        source=logs.source,
        target=logs.target,
        position=entry.position,
        expected=entry.extension.expected,
        identity=entry.extension.identity,
        records=entry.extension.records,
        source_topic_id=logs.source_topic_id,
        target_topic_id=logs.target_topic_id,
        last_epoch=(entry.extension.source_epoch, entry.position),
    )
