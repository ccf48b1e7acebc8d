"""Batches that were sent and not acknowledged: may the task send them again?

Two cases, each with a checker. Both run in the task's background on a router of their own.

1. The target refuses a sequence (`SequenceChecker`). A broker that was restarted remembers only the
   newest batch of a producer. It answers every older batch with OUT_OF_ORDER_SEQUENCE_NUMBER,
   although its log has the batch. DescribeProducers returns the last sequence that the leader has
   of our producer, and a sequence stands for one target offset. When the high watermark has passed
   this offset, everything below it is on the target: it is acknowledged, the rest is sent again.

2. A request got no answer (`ResendChecker`). A leader recognises a batch by its sequence while it
   remembers the producer. How long it does depends on record timestamps and on its own clock, and
   our clock may be a day off. So the task asks the leader:

    the leader knows the producer           it recognises duplicates: send again
    it does not, and its log ends at the    it has none of the batches: send again
    expected offset of the oldest batch
    it does not, and its log is longer      end the lease: the driver compares both logs
    the task has no right to ask, or the    send again: data that is old by our own clock does not
    broker is older than Kafka 2.8          get here

Where the answer is unknown, the lease ends and the driver decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.errors import (
    ClusterTimeout,
    ClusterUnavailable,
    MirrorError,
    NotAuthorized,
    UnsupportedByBroker,
)
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.sequence import target_offset_of
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import describe_producers
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import high_watermark, raise_for_code
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets

HIGH_WATERMARK_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.05
REQUEST_TIMEOUT_S = 3.0


# -- 1. a refused sequence -------------------------------------------------------------------------


class ProducerSuperseded(ClusterUnavailable):
    """The broker knows our producer with a higher epoch: another owner has taken over."""

    retriable = False


def appended_end(router: Router, lease: Lease, expected: int) -> int | None:
    """Return the target offset up to which the target has our batches; None if it is unknown.

    `expected` is the next target offset according to acknowledgements. Blocks until the high
    watermark has passed the offset. Raises ClusterTimeout or ProducerSuperseded.
    """
    identity, partition = lease.identity, lease.target
    described = describe_producers(router, [partition])[partition]
    raise_for_code(router, partition, described.code)
    known = (described.value or {}).get(identity.producer_id)
    if known is None:
        return None
    if known.epoch > identity.producer_epoch:
        raise ProducerSuperseded(router.client.cluster, f"another owner has taken over {partition}")
    end = target_offset_of(known.last_sequence, identity.anchor, near=expected) + 1
    deadline = time.monotonic() + HIGH_WATERMARK_TIMEOUT_S
    while high_watermark(router, partition) < end:
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"{partition} holds records up to offset {end} that its replicas do not confirm;"
                " check the in-sync replicas of the remote topic",
            )
        time.sleep(POLL_INTERVAL_S)
    return end


@dataclass(slots=True)
class SequenceChecker:
    """Finds out how much the target has of a partition whose sequence it refuses."""

    loop: EventLoop
    router: Router
    sender: Sender
    _is_checking: bool = False

    def poll(self, partitions: Iterable[LeasedPartition]) -> None:
        """Start a check of the first partition that needs one and has no open request."""
        if self._is_checking:
            return
        for partition in partitions:
            if (
                partition.needs_sequence_check
                and not partition.queue.open_requests
                and partition.can_send
            ):
                self._check(partition)
                return

    def _check(self, partition: LeasedPartition) -> None:
        self._is_checking = True
        queue = partition.queue
        self.loop.run_in_executor(
            partial(appended_end, self.router, queue.lease, queue.expected),
            partial(self._on_end_offset, partition),
            partial(self._on_error, partition),
        )

    def _on_end_offset(self, partition: LeasedPartition, end: int | None) -> None:
        partition.mark_changed()
        self._is_checking = partition.needs_sequence_check = False
        on_found = partial(self._on_found, partition)
        if end is None or not partition.queue.acknowledge_up_to(end, on_found):
            partition.end_now(
                LeaseEndReason.AMBIGUOUS,
                "the target refuses a sequence and does not hold the batch",
            )
        partition.queue.resend_in_flight()
        self.sender.mark_ready(partition)

    def _on_found(
        self, partition: LeasedPartition, batch: PendingBatch, runs: list[OffsetRun]
    ) -> None:
        """The target has a batch: it counts as copied, and is not sent again."""
        partition.suppressed += batch.record_count
        self.sender.counter.count(partition, batch, runs)

    def _on_error(self, partition: LeasedPartition, error: MirrorError) -> None:
        partition.mark_changed()
        self._is_checking = partition.needs_sequence_check = False
        partition.end_now(LeaseEndReason.AMBIGUOUS, str(error))


# -- 2. a request without an answer ----------------------------------------------------------------


NO_ANSWER = ErrorCode.LEADER_NOT_AVAILABLE


class UnacknowledgedSend(NamedTuple):
    """The producer that sent to a remote partition, and the expected offset of its oldest batch."""

    producer_id: int
    expected: int


def may_resend(
    sent: UnacknowledgedSend,
    code: ErrorCode,
    producers: Iterable[int] | None,
    end_code: ErrorCode = NO_ANSWER,
    end_offset: int | None = None,
) -> bool | None:
    """Return whether batches may be sent again; None if the leader must be asked again later.

    `code` and `producers` are the answer to DescribeProducers, `end_code` and `end_offset` the
    answer to ListOffsets. Each answer is a value or an error; without a leader it is NO_ANSWER.
    """
    if producers is None:
        return True if _resend_reveals_error(code) else None
    if sent.producer_id in producers:
        return True
    if end_offset is None:
        return True if _resend_reveals_error(end_code) else None
    return end_offset == sent.expected


def _resend_reveals_error(code: ErrorCode) -> bool:
    """Whether the error does not pass by itself. The response to the resend then tells it."""
    return not code.is_retriable or code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def find_resendable(
    router: Router, sent: Mapping[TopicPartition, UnacknowledgedSend]
) -> dict[TopicPartition, bool]:
    """Ask the leaders which partitions may send again. Blocks.

    Leaves out the partitions that must be asked about again later.
    """
    try:
        described = describe_producers(router, sent, timeout_s=REQUEST_TIMEOUT_S)
    except (NotAuthorized, UnsupportedByBroker):
        return dict.fromkeys(sent, True)
    forgotten = [
        partition
        for partition, (_, producers) in described.items()
        if producers is not None and sent[partition].producer_id not in producers
    ]
    ends = list_offsets(router, dict.fromkeys(forgotten, LATEST), timeout_s=REQUEST_TIMEOUT_S)
    decisions: dict[TopicPartition, bool] = {}
    for partition, (code, producers) in described.items():
        end_code, listed = ends.get(partition, (NO_ANSWER, None))
        end_offset = listed.offset if listed else None
        decision = may_resend(sent[partition], code, producers, end_code, end_offset)
        if decision is not None:
            decisions[partition] = decision
    return decisions


@dataclass(slots=True)
class ResendChecker:
    """Allows partitions to send again, or ends their leases."""

    loop: EventLoop
    router: Router
    sender: Sender
    _is_checking: bool = False

    def poll(self, partitions: Iterable[LeasedPartition], now: float) -> None:
        """Start one check of all partitions that need it, have no open request and no backoff."""
        if self._is_checking:
            return
        waiting = {
            partition.target: partition
            for partition in partitions
            if partition.needs_resend_check
            and partition.can_send
            and not partition.queue.open_requests
            and now >= partition.send_backoff.until
        }
        if not waiting:
            return
        self._is_checking = True
        sent = {
            target: UnacknowledgedSend(
                partition.queue.lease.identity.producer_id, partition.queue.expected
            )
            for target, partition in waiting.items()
        }
        self.loop.run_in_executor(
            partial(find_resendable, self.router, sent),
            partial(self._on_result, waiting),
            partial(self._on_error, waiting),
        )

    def _on_result(
        self,
        waiting: Mapping[TopicPartition, LeasedPartition],
        decisions: Mapping[TopicPartition, bool],
    ) -> None:
        self._is_checking = False
        for target, partition in waiting.items():
            partition.mark_changed()
            if target not in decisions:
                partition.send_backoff.start(partition.send_backoff.reason, time.monotonic())
            elif decisions[target]:
                partition.needs_resend_check = False
                self.sender.mark_ready(partition)
            else:
                partition.end_now(
                    LeaseEndReason.AMBIGUOUS,
                    f"{partition.send_backoff.reason}; the target has forgotten the producer, so"
                    " nothing is sent again without a check of the target",
                )

    def _on_error(
        self, waiting: Mapping[TopicPartition, LeasedPartition], error: MirrorError
    ) -> None:
        self._is_checking = False
        for partition in waiting.values():
            partition.mark_changed()
            partition.send_backoff.start(f"target: {error}", time.monotonic())
