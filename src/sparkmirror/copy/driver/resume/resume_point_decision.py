"""Resume points: the first lease of each partition, from the ledger entry and both logs.

    ledger entry            target log                resume mode
    none                    holds no records          NEW: where the job says; append at the end
    none                    holds records             NEW: where `existing` decides, or held
    offset only             any                       ADOPT: Java or an operator wrote the offset
    sparkmirror's, closed   ends where the entry says CONTINUE: same identity, no fence
    sparkmirror's, open     any                       DOUBTFUL: fence and reconcile first
    sparkmirror's, closed   longer or shorter         DOUBTFUL
    of a transaction        any                       COMMITTED: it was committed with the data
    without a producer id,  ends where the entry says ADOPT: the target may have producer ids now
    closed
    about a remote topic    any                       ADOPT: go on at the position, in
    with another name                                 the topic that has the name now

In sequenced mode the entry of a transaction is adopted too. A recreated remote topic is empty for
us: the entry is adopted, and the loss is reported. A remote topic has another name if the operator
has changed the replication policy, its separator or a route. Java MirrorMaker 2 then goes on at its
source offset, too. If such an entry is open, its owner may have appended more to the old topic: the
new topic gets these records as well. In exactly-once mode leases have no identity;
but entries of the sequenced mode that are doubtful are fenced and reconciled in both modes.

A loss (the source topic was recreated, its log starts after the position, or the leader epoch of
the last copied record ends before the position) is always reported; the job's policy decides where
copying resumes. Exception: the position of a doubtful partition is not known yet, so only a
recreated topic counts there; the first fetch finds any other loss.

Pure: `resume_point_finder` queries the clusters.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.data_loss import DataLoss, LossKind
from sparkmirror.copy.driver.resume.existing.on_existing_policy import (
    ExistingDecision,
)
from sparkmirror.copy.job import StartMode, StartPosition
from sparkmirror.copy.lease import NOT_IDEMPOTENT, Lease, LeaseIdentity
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
    renamed_from: str = ""
    """The former name of the remote topic, if it has another name now."""
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
    stored_remote: str = ""
    """The name of the remote topic as the ledger stores it."""
    renamed_from: str = ""
    """The name of the remote topic that the ledger entry is about, if it has another name now."""

    @property
    def topic_ids(self) -> tuple[str, str]:
        """Ids of the source and the remote topic."""
        return self.source_topic_id, self.target_topic_id


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
    entry: LedgerEntry | None,
    loss: DataLoss | None,
    target_end: int,
    is_exactly_once: bool,
    *,
    is_renamed: bool = False,
) -> ResumeMode:
    """Decide by the table of this module. `is_renamed`: the remote topic has another name now."""
    if entry is None:
        return ResumeMode.NEW
    if entry.extension is None or is_renamed:
        return ResumeMode.ADOPT
    if loss and loss.kind is LossKind.REMOTE_RECREATED:
        return ResumeMode.ADOPT
    if entry.extension.is_transactional:
        return ResumeMode.COMMITTED if is_exactly_once else ResumeMode.ADOPT
    if entry.extension.is_open or target_end != entry.extension.expected:
        return ResumeMode.DOUBTFUL
    if entry.extension.identity.producer_id == NOT_IDEMPOTENT:
        return ResumeMode.ADOPT
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
            last_epoch=_last_epoch(entry),
            stored_remote=logs.stored_remote,
        )
        return ResumePoint(
            lease=lease, loss=loss, renamed_from=logs.renamed_from, source_end=source_end
        )
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
        last_epoch=_last_epoch(entry),
        chain=entry.extension.chain,
        stored_remote=logs.stored_remote,
    )


def _last_epoch(entry: LedgerEntry) -> tuple[int, int]:
    """The leader epoch before the position: a task needs it to notice a truncated source."""
    epoch = entry.extension.source_epoch if entry.extension else NO_EPOCH
    return epoch, entry.position
