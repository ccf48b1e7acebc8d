"""One control message of each type, with a value in every field."""

from __future__ import annotations

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.control.messages import (
    AbortTask,
    ControlMessage,
    Drain,
    EndEpoch,
    EpochAssignment,
    EpochEnded,
    EpochEndedAck,
    GrantLeases,
    Hello,
    LeaseEnded,
    LeaseEndReason,
    LeaseProgress,
    ProgressReport,
    ReleaseSlot,
    ReportAck,
    RequestEpoch,
    RevokeLeases,
    SetRateLimit,
    SlotHello,
    StartTask,
    TaskDone,
    TaskEnded,
    Welcome,
)
from sparkmirror.copy.record_ages import AgeSummary, RecordAges
from sparkmirror.copy.settings import CopySettings, target_limits_to_json
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease

CONTROL_MESSAGES: tuple[ControlMessage, ...] = (
    Hello(task=1, attempt=2, host="h", pid=3),
    ProgressReport(
        progress={
            "t-0": LeaseProgress(position=1, expected=2, records=5, end_offset=3, held_reason="why")
        },
        runs=[("t-0", 1, 2, 3)],
        lanes={"t": {"plain": 4}},
        bytes={"t-0": 6},
        ages={"t-0": RecordAges(AgeSummary(1, 2, 3, 4, 5), AgeSummary(1, 3, 4, 5, 6))},
        suppressed={"t-0": 7},
        filtered={"t-0": 8},
        skipped={"t-0": 9},
        failures={"t-0": FailureCounts(1, 2, 3, 4)},
    ),
    LeaseEnded(
        partition="t-0",
        reason=LeaseEndReason.FENCED,
        message="w",
        position=1,
        expected=2,
        records=5,
        is_clean=False,
    ),
    TaskDone(),
    Welcome(settings=CopySettings(source={"bootstrap.servers": "a:1"}).to_json()),
    GrantLeases(
        leases=[make_lease()],
        target_limits={"primary.orders": target_limits_to_json(TargetLimits())},
        policy_topics={"orders": "primary.orders"},
    ),
    RevokeLeases(partitions=["t-0"]),
    ReportAck(),
    SetRateLimit(bytes_per_s=9),
    Drain(),
    AbortTask(reason="why"),
    RequestEpoch(finished_epoch=4),
    EpochAssignment(number=5, slots=2),
    SlotHello(slot=1, attempt=2, host="h", pid=3, epoch=4),
    StartTask(job="j", flow="f", task=1, attempt=2, retry=3),
    TaskEnded(job="j", task=1, attempt=2, error="e"),
    EndEpoch(epoch=4),
    EpochEnded(epoch=4),
    EpochEndedAck(epoch=4),
    ReleaseSlot(),
)
