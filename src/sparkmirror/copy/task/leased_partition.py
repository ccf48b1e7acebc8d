"""One leased partition with everything a task knows about it: its queue, its rules, its troubles.

`Partition` is the arithmetic of what lies where. A `Course` adds what decides whether it may be
fetched and sent now: what each side waits for, since when and why, and whether it is on its way
out.

    open ──close────────▶ what was sent is acknowledged ─────────▶ out (CLOSED)
      ├────finish_with──▶ what was fetched is on the target ─────▶ out (trouble at the source)
      └────end_with─────▶ no request holds its bytes any more ───▶ out (trouble at the target)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.messages import LeaseEndReason, LeaseProgress
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.partition_queue import PartitionQueue

UNKNOWN_END_OFFSET = -1


@dataclass(slots=True)
class PartitionBackoff:
    """One side of a partition waits for something that may pass, longer each time."""

    reason: str = ""
    until: float = 0.0
    _backoff: Backoff = field(default_factory=lambda: Backoff(max_s=2.0))

    def start(self, why: str, now: float) -> None:
        """Wait, because of this."""
        self.reason, self.until = why, now + self._backoff.next_delay_s()

    def clear(self) -> None:
        """Whatever it was has passed."""
        if self.reason:
            self.reason, self.until = "", 0.0
            self._backoff.reset()


@dataclass(slots=True, eq=False)
class LeasedPartition:
    """The course of one partition from lease to end."""

    queue: PartitionQueue
    converter: BatchConverter
    end_offset: int = UNKNOWN_END_OFFSET
    """Where the source's log ends, as far as may be read; -1 until it was fetched once."""
    max_timestamp_ms: int = -1
    """Largest timestamp acknowledged."""
    preferred_read_replica: int | None = None
    """The broker the source would rather have us read from (its rack is ours)."""
    needs_sequence_check: bool = False
    """Whether the broker doubts a sequence: what it has already must be found out first."""
    needs_resend_check: bool = False
    """Whether nobody answered for what was sent: it waits to know whether it may come again."""
    fetch_backoff: PartitionBackoff = field(default_factory=PartitionBackoff)
    send_backoff: PartitionBackoff = field(default_factory=PartitionBackoff)
    end_reason: LeaseEndReason | None = None
    end_message: str = ""
    _sends_queue_first: bool = False
    """Whether what is queued still goes to the target before it is out."""
    key: str = field(init=False)
    """Its name on the control channel."""

    def __post_init__(self) -> None:
        self.key = str(self.queue.lease.source)

    @property
    def is_ending(self) -> bool:
        """Whether nothing new is fetched for it."""
        return self.end_reason is not None

    @property
    def can_send(self) -> bool:
        """Whether what is queued may still be sent."""
        return self.end_reason is None or self._sends_queue_first

    @property
    def is_ended(self) -> bool:
        """Whether it can be given back: no request holds its bytes, nothing is left to finish."""
        if self.end_reason is None or self.queue.open_requests:
            return False
        return not (self._sends_queue_first and self.queue.unacknowledged())

    def close(self) -> None:
        """Give it back as soon as what was sent is acknowledged."""
        if self.end_reason is None:
            self.end_reason, self._sends_queue_first = LeaseEndReason.CLOSED, True
            self.queue.drop_unsent()

    def end_after_queue(self, how: LeaseEndReason, why: str) -> None:
        """Give it back when all that was fetched is on the target: the source brings no more."""
        if self.end_reason is None:
            self.end_reason, self.end_message, self._sends_queue_first = how, why, True

    def end_now(self, how: LeaseEndReason, why: str) -> None:
        """Give it back as soon as no request holds its bytes: nothing more can be sent.

        The first reason stands, but for one that only waited for the queue to be sent.
        """
        if self.can_send:
            self.end_reason, self.end_message, self._sends_queue_first = how, why, False

    def progress(self, trouble: str = "") -> LeaseProgress:
        """Where it stands, for the report; `trouble` is what keeps its brokers away."""
        lease = self.queue.durable_lease
        return LeaseProgress(
            position=lease.position,
            expected=lease.expected,
            records=lease.records,
            end_offset=self.end_offset,
            max_timestamp_ms=self.max_timestamp_ms,
            held_reason=self.end_message
            or trouble
            or self.send_backoff.reason
            or self.fetch_backoff.reason,
            leader_epoch=self.converter.leader_epoch,
        )
