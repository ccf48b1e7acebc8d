"""The messages between tasks, slots, the driver and Spark's query.

    task   → driver   Hello  ProgressReport  LeaseEnded  EpochEnded  TaskDone
    driver → task     Welcome  GrantLeases  RevokeLeases  ReportAck  SetRateLimit  Drain  AbortTask
                      EndEpoch  EpochEndedAck
    slot   → driver   SlotHello  TaskEnded
    driver → slot     StartTask  EndEpoch  ReleaseSlot  Drain
    query  → driver   RequestEpoch           driver → query   EpochAssignment

A slot is a Spark task; it runs the tasks of connectors that the driver starts in it, each in a
thread with a control connection of its own. A slot may outlive its Spark task: after `EndEpoch` it
returns its receipts and copies on, until the Spark task of the next epoch in the same process
adopts it with another `SlotHello`, or the driver releases it.

Every message is a frozen value that travels as one JSON object with its `type`. A task never asks
for a partition. The driver grants leases, the task reports on them once a second and returns each
one with `LeaseEnded` and a reason. Without a `ReportAck` for the lease timeout the task stops
copying. Without a `ProgressReport` for the task timeout the driver takes the leases away.

`message_json` converts them to and from bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.record_ages import RecordAges
from sparkmirror.copy.transactional_producer_config import TransactionalProducer


class LeaseEndReason(enum.StrEnum):
    """Why a lease ended. It decides what the driver does before the next lease."""

    CLOSED = "closed"
    """Everything sent is acknowledged. The next owner continues with the same producer."""
    AMBIGUOUS = "ambiguous"
    """The outcome of a sent batch is unknown, and a resend cannot find it out."""
    FENCED = "fenced"
    """Another owner has taken over the partition."""
    OUT_OF_RANGE = "out-of-range"
    """The source's log does not have the position: retention, truncation or another topic."""
    SOURCE_GONE = "source-gone"
    """The source topic was deleted, or recreated under the same name."""
    TARGET_GONE = "target-gone"
    """The remote topic was deleted, or recreated under the same name."""
    REFUSED = "refused"
    """The target refuses a record: too large, damaged, a timestamp out of bounds."""
    NOT_AUTHORIZED = "not-authorized"
    """An ACL is missing on the source or the target."""
    CODEC_REFUSED = "codec-refused"
    """The target refuses the codec of a batch; see `LeaseEnded.refused_codec`."""
    TOPIC_WANTED = "topic-wanted"
    """The next record goes to a topic that must be created; see `LeaseEnded.wanted_topic`."""


NO_CODEC = 0
"""The number of the codec that no target refuses: no compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A task attempt has started and waits for its welcome."""

    type: ClassVar[str] = "hello"
    task: int
    attempt: int
    host: str
    pid: int
    epoch: int = 0
    retry: int = 0
    """The number of earlier attempts of the task in its epoch."""
    job: str = ""
    """The name of the job that the task belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseProgress:
    """The state of one partition: next offsets, records copied so far, end of the source."""

    position: int
    expected: int
    records: int
    end_offset: int
    max_timestamp_ms: int = -1
    held_reason: str = ""
    leader_epoch: int = -1
    """Leader epoch of the last fetched batch."""
    active: int = 0
    """Records that are fetched and not acknowledged."""
    queued_bytes: int = 0
    """Their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """What was copied since the last report, and the changed partitions, by source partition."""

    type: ClassVar[str] = "report"
    progress: dict[str, LeaseProgress]
    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    lanes: dict[str, dict[str, int]] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    ages: dict[str, RecordAges] = field(default_factory=dict)
    suppressed: dict[str, int] = field(default_factory=dict)
    """Records that are not sent again, because the target has them."""
    filtered: dict[str, int] = field(default_factory=dict)
    """Records that transformations dropped."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that failed in a transformation and are not copied (`errors.tolerance=all`)."""
    failures: dict[str, FailureCounts] = field(default_factory=dict)
    """What was logged and written about such records."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed since the last report, so that it only renews the lease."""
        return not (
            self.progress
            or self.runs
            or self.lanes
            or self.bytes
            or self.suppressed
            or self.failures
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """A lease is returned. The task does not write to the partition again."""

    type: ClassVar[str] = "ended"
    partition: str
    reason: LeaseEndReason
    message: str
    position: int
    expected: int
    records: int
    is_clean: bool
    """Whether the outcome of everything sent is known."""
    refused_codec: int = NO_CODEC
    """The number of the codec that the target refuses."""
    wanted_topic: str = ""
    """The topic that must exist before the next record can be copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDone:
    """Every lease is returned; the task ends."""

    type: ClassVar[str] = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The settings of the task: see `copy.settings`."""

    type: ClassVar[str] = "welcome"
    settings: dict[str, Any] = field(repr=False)
    """Client properties are among them, and so passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLeases:
    """New leases, and the limits of their remote topics.

    In exactly-once mode with the transactional producer. A new one replaces the last one.
    """

    type: ClassVar[str] = "grant"
    leases: list[Lease]
    target_limits: dict[str, dict[str, Any]]
    transactional_producer: TransactionalProducer | None = None
    policy_topics: dict[str, str] = field(default_factory=dict)
    """The names of remote topics before transformations route them, by source topic."""
    routed_topics: dict[str, int] = field(default_factory=dict)
    """Other topics that transformations send records to, and how many partitions each has.
    `target_limits` has their limits too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeLeases:
    """Return these leases when their batches in flight are acknowledged."""

    type: ClassVar[str] = "revoke"
    partitions: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAck:
    """The driver has received a report: every lease is renewed from the time of that report.

    The driver answers each report once. So a task that was suspended and reads an old ReportAck
    renews its leases only from the time of the old report.
    """

    type: ClassVar[str] = "report-ack"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRateLimit:
    """Copy at most so many bytes per second from now on; 0 means no limit."""

    type: ClassVar[str] = "set-rate-limit"
    bytes_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Return all leases, then send `TaskDone`. To a slot: end when your tasks have ended."""

    type: ClassVar[str] = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpoch:
    """The epoch ends, and copying goes on. A task divides its receipts and sends `EpochEnded`.

    To a slot: return the receipts of the epoch when your tasks have divided theirs.
    """

    type: ClassVar[str] = "end-epoch"
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnded:
    """What the task reported before belongs to this epoch, what it reports later to the next."""

    type: ClassVar[str] = "epoch-ended"
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndedAck:
    """The driver has `EpochEnded`: the task may return the receipts of the epoch."""

    type: ClassVar[str] = "epoch-ended-ack"
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSlot:
    """No Spark task has adopted the slot in time: end when your tasks have ended."""

    type: ClassVar[str] = "release-slot"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTask:
    """The driver has given up the task attempt and granted its leases to others: stop at once."""

    type: ClassVar[str] = "abort"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHello:
    """A slot has started and waits for tasks to run, or a Spark task has adopted it."""

    type: ClassVar[str] = "slot-hello"
    slot: int
    attempt: int
    """Spark's number of the attempt; Spark never uses it twice."""
    host: str
    pid: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask:
    """Run this task attempt in a thread of the slot."""

    type: ClassVar[str] = "start-task"
    job: str
    flow: str
    task: int
    attempt: int
    retry: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """The thread of a task attempt has ended. An empty error means that it was drained."""

    type: ClassVar[str] = "task-ended"
    job: str
    task: int
    attempt: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEpoch:
    """The query has finished an epoch, its receipts are written. It asks for the next epoch."""

    type: ClassVar[str] = "request-epoch"
    finished_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAssignment:
    """The epoch to run and its number of slots. The finished epoch again means: none for now."""

    type: ClassVar[str] = "epoch"
    number: int
    slots: int
    log_levels: Mapping[str, int] = field(default_factory=dict)
    """Levels that the slots of the epoch set, by Python logger."""


TaskMessage = Hello | ProgressReport | LeaseEnded | EpochEnded | TaskDone
DriverMessage = (
    Welcome
    | GrantLeases
    | RevokeLeases
    | ReportAck
    | SetRateLimit
    | Drain
    | EndEpoch
    | EpochEndedAck
    | AbortTask
)
SlotMessage = SlotHello | StartTask | ReleaseSlot | TaskEnded
ControlMessage = TaskMessage | DriverMessage | SlotMessage | RequestEpoch | EpochAssignment
