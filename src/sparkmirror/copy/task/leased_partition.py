"""One leased partition with everything a task knows about it.

`PartitionQueue` has the offsets and the batches. `LeasedPartition` adds what decides whether the
partition may be fetched and sent now: backoffs with their reasons, open checks, and the end of the
lease.

    leased ──close────────────▶ sent batches are acknowledged ──────▶ ended (CLOSED)
      ├─────end_after_queue───▶ fetched batches are acknowledged ───▶ ended (error at the source)
      └─────end_now───────────▶ no open request has its batches ────▶ ended (error at the target)

A lease that is closed sends nothing again that the target certainly lacks: the next owner fetches
it again. Only a batch whose outcome is unknown is still sent, under the same sequence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.control.messages import NO_CODEC, LeaseEndReason, LeaseProgress
from sparkmirror.copy.record_ages import AgeCounter, RecordAges
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.produce import partition_overhead

UNKNOWN_END_OFFSET: Final = -1
DEAD_LETTER_WAIT_S: Final = 0.1
"""How long a full queue with dead letters is not looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerReachability:
    """Whether the brokers of a partition can be reached. An error is empty if they can."""

    source_error: str = ""
    target_error: str = ""
    is_source_silent: bool = False
    """Whether the source has not answered a fetch for so long that the end may have moved."""

    @property
    def error(self) -> str:
        """Both errors with their sides; empty if both brokers can be reached."""
        sides = {"target": self.target_error, "source": self.source_error}
        return "; ".join(f"{side}: {error}" for side, error in sides.items() if error)


REACHABLE: Final = BrokerReachability()


class ProgressValues(NamedTuple):
    """The members of LeaseProgress."""

    position: int
    expected: int
    records: int
    end_offset: int
    max_timestamp_ms: int
    held_reason: str
    leader_epoch: int
    active: int
    queued_bytes: int

    def to_progress(self) -> LeaseProgress:
        """Return the message's part of the partition."""
        return LeaseProgress(**self._asdict())


@dataclass(slots=True)
class PartitionBackoff:
    """A partition waits before it fetches or sends again, longer each time."""

    reason: str = ""
    until: float = 0.0
    _backoff: Backoff = field(default_factory=lambda: Backoff(max_s=2.0))

    def start(self, reason: str, now: float) -> None:
        """Wait because of this reason."""
        self.reason, self.until = reason, now + self._backoff.next_delay_s()

    def clear(self) -> None:
        """Stop waiting; the next wait is short again."""
        if self.reason:
            self.reason, self.until = "", 0.0
            self._backoff.reset()


def ignore_change(partition: LeasedPartition) -> None:
    """For a partition of which nothing is reported."""


@dataclass(slots=True, eq=False)
class LeasedPartition:
    """One partition from its grant to the end of its lease."""

    queue: PartitionQueue
    converter: BatchConverter
    on_change: Callable[[LeasedPartition], None] = ignore_change
    """Called when the partition may have changed (`changed_partitions`)."""
    end_offset: int = UNKNOWN_END_OFFSET
    """The end of the source's log, as far as it may be read; -1 before the first fetch."""
    max_timestamp_ms: int = -1
    """Largest timestamp acknowledged."""
    latencies: AgeCounter = field(default_factory=AgeCounter)
    """The ages of the records acknowledged since the last report."""
    suppressed: int = 0
    """Records that a check found on the target since the last report: they are not sent again."""
    failures: FailureCounts = FailureCounts()
    """What became of dead letters since the last report."""
    dead_letter_error: str = ""
    """Why its dead letters are not written at the moment; empty if they are."""
    preferred_read_replica: int | None = None
    """The broker from which the source wants us to fetch, because it is in our rack."""
    needs_sequence_check: bool = False
    """Whether the target refused a sequence: `SequenceChecker` must compare the log first."""
    needs_resend_check: bool = False
    """Whether sent batches got no answer: `ResendChecker` must allow the resend first."""
    fetch_backoff: PartitionBackoff = field(default_factory=PartitionBackoff)
    send_backoff: PartitionBackoff = field(default_factory=PartitionBackoff)
    end_reason: LeaseEndReason | None = None
    end_message: str = ""
    refused_codec: int = NO_CODEC
    """The codec that the target refused, by its number."""
    _sends_queue_first: bool = False
    """Whether queued batches are still sent before the lease ends."""
    source: TopicPartition = field(init=False)
    target: TopicPartition = field(init=False)
    key: str = field(init=False)
    """The source partition as control messages name it."""
    produce_overhead: int = field(init=False)
    """The most bytes that it adds to a Produce request besides its batch."""
    source_topic_id: str = field(init=False)
    target_topic_id: str = field(init=False)

    wanted_topic: str = field(init=False, default="")
    """The topic that must be created before more records can be copied."""

    def __post_init__(self) -> None:
        lease = self.queue.lease
        self.source, self.target, self.key = lease.source, lease.target, str(lease.source)
        self.produce_overhead = partition_overhead(lease.target.topic)
        self.source_topic_id, self.target_topic_id = lease.source_topic_id, lease.target_topic_id

    @property
    def is_ending(self) -> bool:
        """Whether the task fetches no more of it."""
        return self.end_reason is not None

    @property
    def can_send(self) -> bool:
        """Whether queued batches may still be sent."""
        return self.end_reason is None or self._sends_queue_first

    @property
    def is_ended(self) -> bool:
        """Whether the lease can be returned: no open request, nothing left to send."""
        if self.end_reason is None or self.queue.has_open_requests:
            return False
        is_queue_empty = not (self.queue.unacknowledged() or self.queue.dead_letters)
        return is_queue_empty or not self._sends_queue_first

    @property
    def leased(self) -> LeasedPartition:
        """The partition whose records it sends: itself, or see `routing_partition`."""
        return self

    def senders(self) -> Iterable[LeasedPartition]:
        """Everything that sends records of it: itself, and one more for each topic of routes."""
        return (self,)

    @property
    def send_reason(self) -> str:
        """Why nothing is sent for the moment; empty if nothing prevents it."""
        return self.send_backoff.reason

    @property
    def is_waiting(self) -> bool:
        """Whether a backoff or a check will end without an event from a socket."""
        return bool(
            self.fetch_backoff.reason or self.send_backoff.reason or self.needs_sequence_check
        )

    @property
    def needs_attention(self) -> bool:
        """Whether the lease ends, or a backoff or a check keeps it from being fetched or sent."""
        return self.is_ending or self.is_waiting or self.needs_resend_check

    @property
    def backoff_ends(self) -> tuple[float, ...]:
        """When the task may fetch and when it may send; 0.0 if it may at once."""
        return self.fetch_backoff.until, self.send_backoff.until

    def mark_changed(self) -> None:
        """Record that the partition may have changed."""
        self.on_change(self)

    def can_fetch(self, max_queued_bytes: int, now: float) -> bool:
        """Whether the next fetch request may name the partition."""
        return (
            self.queue.queued_bytes < max_queued_bytes
            and self.queue.may_fetch_more
            and now >= self.fetch_backoff.until
            and self.end_reason is None
        )

    def fetchable_at(self, max_queued_bytes: int) -> float:
        """Return the earliest moment at which a request may name the partition.

        A full queue waits for the target, which gets nothing before the end of its backoff. How
        long dead letters take is unknown.
        """
        if self.queue.queued_bytes < max_queued_bytes and self.queue.may_fetch_more:
            return self.fetch_backoff.until
        waits_until = max(self.fetch_backoff.until, self.send_backoff.until)
        if self.queue.dead_letters:
            waits_until = max(waits_until, time.monotonic() + DEAD_LETTER_WAIT_S)
        return waits_until

    @property
    def has_ages(self) -> bool:
        """Whether records were fetched or acknowledged since the last call of `pop_ages`."""
        return bool(self.latencies.records or self.converter.ages.records)

    def pop_ages(self) -> RecordAges:
        """Return the ages since the last call."""
        ages = RecordAges(self.converter.ages.summarize(), self.latencies.summarize())
        self.converter.ages, self.latencies = AgeCounter(), AgeCounter()
        return ages

    def pop_suppressed(self) -> int:
        """Return the records that were not sent again since the last call."""
        records, self.suppressed = self.suppressed, 0
        return records

    def pop_filtered(self) -> int:
        """Return the records that transformations dropped since the last call."""
        records, self.converter.filtered = self.converter.filtered, 0
        return records

    def pop_skipped(self) -> int:
        """Return the records that failed and are not copied since the last call."""
        records, self.converter.skipped = self.converter.skipped, 0
        return records

    @property
    def has_failures(self) -> bool:
        """Whether `pop_failures` returns anything but zeros."""
        return any(self.failures) or self.converter.errors_logged > 0

    def pop_failures(self) -> FailureCounts:
        """Return what was logged and written about failed records since the last call."""
        counts = self.failures.plus(FailureCounts(errors_logged=self.converter.errors_logged))
        self.failures, self.converter.errors_logged = FailureCounts(), 0
        return counts

    def close(self) -> None:
        """End the lease when the batches that were sent are acknowledged.

        An error at the source waits for the queue, whose records may be gone from the source. It
        does so no longer if nothing would keep those records from coming twice.
        """
        is_waiting_plain = self._sends_queue_first and not self.queue.lease.is_idempotent
        is_closed = self.end_reason is LeaseEndReason.CLOSED
        if self.end_reason is None or (is_waiting_plain and not is_closed):
            self.end_reason, self.end_message = LeaseEndReason.CLOSED, ""
            self._sends_queue_first = True
            self.queue.drop_unsent()
            self.mark_changed()

    def on_answer(self) -> None:
        """Count down an answered or lost request. A closed lease drops what was not appended.

        In a transaction the batch stays: the task commits or aborts all of its partitions at once.
        """
        self.mark_changed()
        self.queue.on_request_done()
        if (
            self.end_reason is LeaseEndReason.CLOSED
            and self.queue.transaction is None
            and not self.needs_sequence_check
        ):
            self.queue.drop_unsent()

    def end_after_queue(self, reason: LeaseEndReason, message: str) -> None:
        """End the lease when all fetched batches are acknowledged: the source has no more."""
        if self.end_reason is None:
            self.end_reason, self.end_message, self._sends_queue_first = reason, message, True
            self.mark_changed()

    def end_now(self, reason: LeaseEndReason, message: str, refused_codec: int = NO_CODEC) -> None:
        """End the lease when no open request has its batches: nothing more can be sent.

        The first reason stays, except one that only waited for the queue to be sent.
        """
        if self.can_send:
            self.end_reason, self.end_message, self._sends_queue_first = reason, message, False
            self.refused_codec = refused_codec
            self.mark_changed()

    def end_for_topic(self, topic: str, message: str) -> None:
        """End the lease when all fetched batches are acknowledged: the next record needs a topic.

        The driver creates the topic.
        """
        if self.end_reason is None:
            self.wanted_topic = topic
            self.end_after_queue(LeaseEndReason.TOPIC_WANTED, message)

    def may_begin(self, leader_node: Callable[[TopicPartition], int | None], now: float) -> bool:
        """Whether its batches may be sent, as far as other topics are concerned."""
        return True

    def known_end(self, position: int, brokers: BrokerReachability) -> int:
        """Return the end of the source's log, or -1 if it is unknown now.

        It is unknown while the source refuses or cannot be reached. A source that is only silent
        leaves a lag above 0 as it is, because the lag is at least so large. It makes a lag of 0
        unknown.
        """
        if brokers.source_error or self.fetch_backoff.reason:
            return UNKNOWN_END_OFFSET
        if brokers.is_source_silent and position >= self.end_offset:
            return UNKNOWN_END_OFFSET
        return self.end_offset

    @property
    def shown_end(self) -> str:
        """Why the lease ends, for operators; empty if that is as usual."""
        return "" if self.end_reason is LeaseEndReason.TOPIC_WANTED else self.end_message

    def progress(self, brokers: BrokerReachability = REACHABLE) -> LeaseProgress:
        """Return the state of the partition for the report to the driver."""
        return self.progress_values(brokers).to_progress()

    def progress_values(self, brokers: BrokerReachability = REACHABLE) -> ProgressValues:
        """Return the same as plain values, which cost little to make and to compare."""
        queue = self.queue
        durable = queue.lease if queue.transaction else queue
        position = durable.position
        return ProgressValues(
            position,
            durable.expected,
            durable.records,
            self.known_end(position, brokers),
            self.max_timestamp_ms,
            self.shown_end
            or (brokers is not REACHABLE and brokers.error)
            or self.send_reason
            or self.fetch_backoff.reason
            or self.dead_letter_error,
            self.converter.leader_epoch,
            queue.active_records,
            queue.queued_bytes,
        )
