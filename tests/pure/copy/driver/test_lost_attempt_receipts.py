"""Pending receipts: every record is in one receipt, whichever attempt is lost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts, MissingReceipt
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.model import TopicPartition
from tests.support.copy.pending_batches import make_lease


def hello(attempt: int = 0, epoch: int = 1) -> Hello:
    return Hello(task=0, attempt=attempt, host="h", pid=1, epoch=epoch)


def tracked_partition(owner: Hello | None = None) -> TrackedPartition:
    tracked = TrackedPartition(TopicPartition("orders", 0), TopicPartition("primary.orders", 0), 0)
    tracked.set_lease(make_lease())
    if owner:
        tracked.grant_to(owner)
    return tracked


def copy(tracked: TrackedPartition, records: int, size: int = 0) -> None:
    """Report the next records as copied."""
    assert tracked.lease
    lease = tracked.lease
    tracked.advance_to(lease.position + records, lease.expected + records, lease.records + records)
    tracked.bytes += size


def pending_receipts() -> LostAttemptReceipts:
    ticks = itertools.count(1000)
    return LostAttemptReceipts(lambda: next(ticks))


def summed(missing: list[MissingReceipt]) -> list[tuple[int, int, int, int, int]]:
    """Attempt, source range, records and bytes of each receipt."""
    receipts = [(one.hello.attempt, one.receipt) for one in missing]
    return [(n, r.source_first, r.source_last, r.records, r.bytes) for n, r in receipts]


def test_a_committed_receipt_is_dropped() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5)
    pending.add(hello(), tracked)
    pending.on_attempt_done(hello())
    assert pending.close_epoch(1, succeeded=True) == []
    assert pending.close_epoch(2, succeeded=False) == []


def test_a_lost_attempt_leaves_what_it_reported_and_what_the_takeover_found() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5, 700)
    pending.add(hello(), tracked)
    pending.on_attempt_lost(hello())
    tracked.release(clean=False, now=0.0)
    copy(tracked, 3)
    pending.add(hello(), tracked)
    (one,) = pending.close_epoch(1, succeeded=True)
    assert summed([one]) == [(0, 100, 107, 8, 700)]
    assert (one.receipt.target_first, one.receipt.target_last) == (50, 57)
    assert (one.started_ms, one.ended_ms) == (1000, 1001)
    assert pending.close_epoch(2, succeeded=True) == []


def test_records_found_after_the_epoch_was_closed_are_written_with_the_next_epoch() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    pending.on_attempt_lost(hello())
    tracked.release(clean=False, now=0.0)
    assert pending.close_epoch(1, succeeded=True) == []
    copy(tracked, 3)
    pending.add(hello(), tracked)
    assert summed(pending.close_epoch(2, succeeded=True)) == [(0, 100, 102, 3, 0)]


def test_a_failed_epoch_leaves_all_its_receipts_missing() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5)
    pending.add(hello(), tracked)
    pending.on_attempt_done(hello())
    assert summed(pending.close_epoch(1, succeeded=False)) == [(0, 100, 104, 5, 0)]


def test_an_attempt_that_ends_late_belongs_to_its_own_epoch() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5)
    assert pending.close_epoch(1, succeeded=True) == []
    pending.add(hello(), tracked)
    pending.on_attempt_done(hello())
    assert pending.close_epoch(2, succeeded=False) == [], "its epoch was committed"


def test_attempts_of_a_later_epoch_are_not_closed() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello(epoch=2))
    pending.on_attempt_started(hello(epoch=2))
    copy(tracked, 5)
    pending.add(hello(epoch=2), tracked)
    pending.on_attempt_done(hello(epoch=2))
    assert pending.close_epoch(1, succeeded=False) == []
    assert pending.close_epoch(2, succeeded=True) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans(), st.booleans())))
def test_committed_and_missing_receipts_are_all_records(
    attempts: list[tuple[int, int, bool, bool]],
) -> None:
    """Each attempt: records reported, records found later, is it lost, is its epoch committed."""
    pending, tracked, landed, missing = pending_receipts(), tracked_partition(), 0, 0
    for number, (reported, found, is_lost, lands) in enumerate(attempts):
        attempt = hello(number, epoch=number)
        pending.on_attempt_started(attempt)
        tracked.grant_to(attempt)
        copy(tracked, reported)
        pending.add(attempt, tracked)
        tracked.release(clean=not is_lost, now=0.0)
        if is_lost:
            pending.on_attempt_lost(attempt)
            copy(tracked, found)
            pending.add(attempt, tracked)
            assert tracked.lease
            tracked.set_lease(tracked.lease)
        else:
            pending.on_attempt_done(attempt)
            landed += reported if lands else 0
        missing += sum(one.receipt.records for one in pending.close_epoch(number, succeeded=lands))
    assert tracked.lease
    assert landed + missing == tracked.lease.records
