"""How a lease ends: what is still sent, and when the lease can be returned."""

from __future__ import annotations

import pytest

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.leased_partition import (
    REACHABLE,
    BrokerReachability,
    LeasedPartition,
    PartitionBackoff,
)
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from tests.support.copy.pending_batches import (
    make_batch,
    make_lease,
    make_partition,
    without_producer_id,
)


def partition_with_two_batches(*, is_idempotent: bool = True) -> LeasedPartition:
    """Return a partition with two batches, the first partition in flight."""
    lease = make_lease(position=0)
    queue = PartitionQueue(lease if is_idempotent else without_producer_id(lease))
    for offset in (0, 1):
        queue.enqueue(make_batch(offset, 1))
    assert queue.next_to_send()
    return make_partition(queue)


def acknowledge(partition: LeasedPartition) -> None:
    partition.queue.acknowledge(partition.queue.in_flight[0])
    partition.queue.on_request_done()


def test_an_error_at_the_source_ends_the_lease_after_the_queue_is_acknowledged() -> None:
    partition = partition_with_two_batches()
    partition.end_after_queue(LeaseEndReason.OUT_OF_RANGE, "retention")
    acknowledge(partition)
    before = partition.is_ended
    assert partition.can_send
    assert partition.queue.next_to_send()
    acknowledge(partition)
    assert (before, partition.is_ended) == (False, True)
    assert partition.queue.position == 2


def test_an_error_at_the_target_ends_the_lease_after_the_open_requests() -> None:
    partition = partition_with_two_batches()
    partition.end_now(LeaseEndReason.TARGET_GONE, "deleted")
    assert not partition.can_send
    before = partition.is_ended
    partition.queue.on_request_done()
    assert (before, partition.is_ended) == (False, True)


def test_close_drops_the_batches_that_were_not_sent() -> None:
    partition = partition_with_two_batches()
    partition.close()
    acknowledge(partition)
    assert partition.is_ended
    assert partition.queue.position == 1


def test_without_producer_ids_close_also_drops_the_batches_that_an_error_at_the_source_left() -> (
    None
):
    partition = partition_with_two_batches(is_idempotent=False)
    partition.end_after_queue(LeaseEndReason.OUT_OF_RANGE, "retention")
    partition.close()
    acknowledge(partition)
    assert partition.is_ended
    assert (partition.end_reason, partition.end_message) == (LeaseEndReason.CLOSED, "")
    assert partition.queue.position == 1, "the next owner finds the error again"


def test_close_keeps_the_batches_that_the_source_may_have_lost() -> None:
    partition = partition_with_two_batches()
    partition.end_after_queue(LeaseEndReason.OUT_OF_RANGE, "retention")
    partition.close()
    acknowledge(partition)
    assert partition.queue.next_to_send()
    acknowledge(partition)
    assert (partition.is_ended, partition.queue.position) == (True, 2)
    assert partition.end_reason is LeaseEndReason.OUT_OF_RANGE


def test_close_does_not_replace_an_error_at_the_target() -> None:
    partition = partition_with_two_batches()
    partition.end_now(LeaseEndReason.FENCED, "another owner")
    partition.close()
    assert (partition.end_reason, partition.can_send) == (LeaseEndReason.FENCED, False)


@pytest.mark.parametrize("first", ["close", "end-after-queue"])
def test_an_error_at_the_target_replaces_an_end_that_waits_for_the_queue(first: str) -> None:
    partition = partition_with_two_batches()
    if first == "close":
        partition.close()
    else:
        partition.end_after_queue(LeaseEndReason.REFUSED, "too large")
    partition.end_now(LeaseEndReason.FENCED, "another owner")
    partition.end_now(LeaseEndReason.REFUSED, "later")
    assert (partition.end_reason, partition.end_message) == (LeaseEndReason.FENCED, "another owner")


def test_a_backoff_grows_and_is_short_again_after_a_success() -> None:
    backoff = PartitionBackoff()
    delays = []
    for _ in range(4):
        backoff.start("why", 0.0)
        delays.append(backoff.until)
    assert delays[3] > 2 * delays[0]
    backoff.clear()
    backoff.start("why", 0.0)
    assert backoff.until < delays[2]


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
    partition = partition_with_two_batches()
    partition.queue.queued_bytes = queued_bytes
    partition.fetch_backoff.until = backoff_until
    if is_ending:
        partition.end_after_queue(LeaseEndReason.REFUSED, "too large")
    assert partition.can_fetch(max_queued_bytes=10, now=5.0) is can_fetch


@pytest.mark.parametrize("cause", ["fetch", "send", "sequence", "none"])
def test_a_backoff_or_a_sequence_check_keeps_the_task_awake(cause: str) -> None:
    partition = partition_with_two_batches()
    if cause == "fetch":
        partition.fetch_backoff.start("why", 0.0)
    elif cause == "send":
        partition.send_backoff.start("why", 0.0)
    partition.needs_sequence_check = cause == "sequence"
    assert partition.is_waiting == (cause != "none")


SOURCE_DOWN = BrokerReachability(source_error="primary: a:1: connection refused")
SILENT = BrokerReachability(is_source_silent=True)


@pytest.mark.parametrize(
    ("end", "brokers", "shown"),
    [
        pytest.param(9, REACHABLE, 9, id="behind"),
        pytest.param(0, REACHABLE, 0, id="caught-up"),
        pytest.param(9, SOURCE_DOWN, -1, id="source-down"),
        pytest.param(9, SILENT, 9, id="silent-behind"),
        pytest.param(0, SILENT, -1, id="silent-caught-up"),
    ],
)
def test_the_end_is_unknown_when_the_source_does_not_answer(
    end: int, brokers: BrokerReachability, shown: int
) -> None:
    partition = make_partition(PartitionQueue(make_lease(position=0)))
    partition.end_offset = end
    assert partition.progress(brokers).end_offset == shown


def test_the_end_is_unknown_while_the_source_refuses_a_fetch() -> None:
    partition = make_partition(PartitionQueue(make_lease(position=0)))
    partition.end_offset = 0
    partition.fetch_backoff.start("source: NOT_LEADER_OR_FOLLOWER", 0.0)
    assert partition.progress().end_offset == -1
    partition.fetch_backoff.clear()
    assert partition.progress().end_offset == 0


def test_the_reason_names_each_side_that_cannot_be_reached() -> None:
    both = BrokerReachability(source_error="primary: down", target_error="backup: down")
    partition = make_partition(PartitionQueue(make_lease()))
    assert partition.progress(both).held_reason == "target: backup: down; source: primary: down"
    assert partition.progress().held_reason == ""
