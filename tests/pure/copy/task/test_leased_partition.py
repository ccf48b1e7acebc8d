"""The ways out of a course: what is still sent, and when it is given back."""

from __future__ import annotations

import pytest

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.leased_partition import LeasedPartition, PartitionBackoff
from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits


def course() -> LeasedPartition:
    """A course with two batches, the first of them in flight."""
    partition = PartitionQueue(
        Lease(
            source=TopicPartition("orders", 0),
            target=TopicPartition("primary.orders", 0),
            position=0,
            expected=0,
            identity=LeaseIdentity(producer_id=1, producer_epoch=0, anchor=0),
        )
    )
    for offset in (0, 1):
        batch = memoryview(build_batch([Record(offset, 1, None, b"v")]))
        partition.enqueue(
            PendingBatch(
                header=read_header(batch),
                batch=batch,
                spans=((offset, 1),),
                next_source_offset=offset + 1,
                release=lambda: None,
            )
        )
    assert partition.next_to_send()
    return LeasedPartition(
        partition, BatchConverter(TargetLimits(max_message_bytes=1000, log_append_time=False))
    )


def acknowledge(one: LeasedPartition) -> None:
    one.queue.acknowledge(one.queue.in_flight[0])
    one.queue.on_request_done()


def test_trouble_at_the_source_waits_until_all_that_was_fetched_is_copied() -> None:
    one = course()
    one.end_after_queue(LeaseEndReason.OUT_OF_RANGE, "retention")
    acknowledge(one)
    before = one.is_ended
    assert one.can_send
    assert one.queue.next_to_send()
    acknowledge(one)
    assert (before, one.is_ended) == (False, True)
    assert one.queue.position == 2


def test_trouble_at_the_target_waits_for_answers_only() -> None:
    one = course()
    one.end_now(LeaseEndReason.TARGET_GONE, "deleted")
    assert not one.can_send
    before = one.is_ended
    one.queue.on_request_done()
    assert (before, one.is_ended) == (False, True)


def test_a_close_lets_go_of_what_was_not_sent() -> None:
    one = course()
    one.close()
    acknowledge(one)
    assert one.is_ended
    assert one.queue.position == 1


@pytest.mark.parametrize("first", ["close", "finish"])
def test_trouble_at_the_target_ends_what_was_finishing(first: str) -> None:
    one = course()
    if first == "close":
        one.close()
    else:
        one.end_after_queue(LeaseEndReason.REFUSED, "too large")
    one.end_now(LeaseEndReason.FENCED, "somebody else")
    one.end_now(LeaseEndReason.REFUSED, "later")
    assert (one.end_reason, one.end_message) == (LeaseEndReason.FENCED, "somebody else")


def test_a_wait_grows_and_begins_anew_after_a_success() -> None:
    wait = PartitionBackoff()
    pauses = []
    for _ in range(4):
        wait.start("why", 0.0)
        pauses.append(wait.until)
    assert pauses[3] > 2 * pauses[0]
    wait.clear()
    wait.start("why", 0.0)
    assert wait.until < pauses[2]


@pytest.mark.parametrize(
    ("queued_bytes", "backoff_until", "is_ending", "can_fetch"),
    [
        (9, 0.0, False, True),
        (10, 0.0, False, False),
        (9, 5.1, False, False),
        (9, 5.0, False, True),
        (9, 0.0, True, False),
    ],
    ids=["idle", "queue-full", "in-backoff", "backoff-over", "lease-ends"],
)
def test_a_partition_is_fetched_unless_it_is_full_waits_or_ends(
    queued_bytes: int, backoff_until: float, is_ending: bool, can_fetch: bool
) -> None:
    one = course()
    one.queue.queued_bytes = queued_bytes
    one.fetch_backoff.until = backoff_until
    if is_ending:
        one.end_after_queue(LeaseEndReason.REFUSED, "too large")
    assert one.can_fetch(max_queued_bytes=10, now=5.0) is can_fetch


@pytest.mark.parametrize("cause", ["fetch", "send", "sequence", "none"])
def test_a_backoff_or_a_sequence_check_keeps_the_task_awake(cause: str) -> None:
    one = course()
    if cause == "fetch":
        one.fetch_backoff.start("why", 0.0)
    elif cause == "send":
        one.send_backoff.start("why", 0.0)
    one.needs_sequence_check = cause == "sequence"
    assert one.is_waiting == (cause != "none")
