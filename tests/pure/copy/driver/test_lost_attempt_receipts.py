"""Pending receipts: every record is in one receipt, whichever attempt is lost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts, MissingReceipt
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.receipt import AttemptEpoch
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


def returned(*attempts: Hello) -> set[AttemptEpoch]:
    """The attempts whose rows have come."""
    return {AttemptEpoch(one.epoch, one.attempt) for one in attempts}


def test_a_receipt_that_has_come_is_dropped() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5)
    pending.add(hello(), tracked)
    pending.on_attempt_ended(hello())
    assert pending.close_epoch(1, returned(hello())) == []
    assert pending.close_epoch(2, ()) == []


def test_a_lost_attempt_leaves_what_it_reported_and_what_the_takeover_found() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5, 700)
    pending.add(hello(), tracked)
    pending.on_attempt_ended(hello())
    tracked.release(clean=False, now=0.0)
    copy(tracked, 3)
    pending.add(hello(), tracked)
    (one,) = pending.close_epoch(1, ())
    assert summed([one]) == [(0, 100, 107, 8, 700)]
    assert (one.receipt.target_first, one.receipt.target_last) == (50, 57)
    assert (one.started_ms, one.ended_ms) == (1000, 1001)
    assert pending.close_epoch(2, ()) == []


def test_records_found_after_the_epoch_was_closed_are_written_with_the_next_epoch() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    pending.on_attempt_ended(hello())
    tracked.release(clean=False, now=0.0)
    assert pending.close_epoch(1, ()) == []
    copy(tracked, 3)
    pending.add(hello(), tracked)
    assert summed(pending.close_epoch(2, ())) == [(0, 100, 102, 3, 0)]


def test_receipts_of_an_attempt_that_is_done_are_missing_if_they_have_not_come() -> None:
    """The process may die between its last message and the end of its Spark task."""
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5)
    pending.add(hello(), tracked)
    pending.on_attempt_ended(hello())
    other = hello(attempt=1)
    assert summed(pending.close_epoch(1, returned(other))) == [(0, 100, 104, 5, 0)]


def test_an_attempt_that_ends_late_belongs_to_its_own_epoch() -> None:
    pending, tracked = pending_receipts(), tracked_partition(hello())
    pending.on_attempt_started(hello())
    copy(tracked, 5)
    assert pending.close_epoch(1, returned(hello())) == []
    pending.add(hello(), tracked)
    pending.on_attempt_ended(hello())
    assert pending.close_epoch(2, ()) == [], "its rows have come with those of its epoch"


def test_attempts_of_a_later_epoch_are_not_closed() -> None:
    later = hello(epoch=2)
    pending, tracked = pending_receipts(), tracked_partition(later)
    pending.on_attempt_started(later)
    copy(tracked, 5)
    pending.add(later, tracked)
    pending.on_attempt_ended(later)
    assert pending.close_epoch(1, ()) == []
    assert pending.close_epoch(2, returned(later)) == []


def test_an_attempt_that_outlives_its_epoch_has_receipts_in_both() -> None:
    first, second = hello(attempt=3), hello(attempt=3, epoch=2)
    pending, tracked = pending_receipts(), tracked_partition(first)
    pending.on_attempt_started(first)
    copy(tracked, 5)
    pending.add(first, tracked)
    pending.on_epoch_ended(first)
    copy(tracked, 2)
    assert pending.close_epoch(1, returned(first)) == []
    pending.add(first, tracked)
    pending.on_attempt_ended(first)
    [missing] = pending.close_epoch(2, ())
    assert (missing.hello, missing.receipt.records) == (second, 2)
    assert (missing.started_ms, missing.ended_ms) == (1001, 1002)


def test_rows_of_one_epoch_say_nothing_about_the_other_epochs_of_an_attempt() -> None:
    first, second = hello(attempt=3), hello(attempt=3, epoch=2)
    pending, tracked = pending_receipts(), tracked_partition(first)
    pending.on_attempt_started(first)
    for _ in range(2):
        copy(tracked, 5)
        pending.add(first, tracked)
        pending.on_epoch_ended(first)
    assert summed(pending.close_epoch(1, ())) == [(3, 100, 104, 5, 0)]
    assert pending.close_epoch(2, returned(second)) == []


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), min_size=1, max_size=4)
    ),
    st.integers(0, 5),
)
def test_returned_and_missing_receipts_are_all_records(
    attempts: list[list[tuple[int, bool, bool]]], found: int
) -> None:
    """Each attempt copies in one or more epochs and is lost in the last one.

    Each of its epochs: records reported, have its rows come, is the epoch closed before the
    conductor has read that it ended. No rows come from the last one.
    """
    pending, tracked, landed, missing, epoch = pending_receipts(), tracked_partition(), 0, 0, 1
    for number, epochs in enumerate(attempts):
        attempt = hello(number, epoch=epoch)
        pending.on_attempt_started(attempt)
        tracked.grant_to(attempt)
        for reported, lands, is_closed_early in epochs[:-1]:
            copy(tracked, reported)
            rows = {AttemptEpoch(epoch, number)} if lands else set()
            early = pending.close_epoch(epoch, rows) if is_closed_early else []
            pending.add(attempt, tracked)
            pending.on_epoch_ended(attempt)
            late = [] if is_closed_early else pending.close_epoch(epoch, rows)
            landed += reported if lands else 0
            missing += sum(one.receipt.records for one in [*early, *late])
            epoch += 1
        copy(tracked, epochs[-1][0])
        pending.add(attempt, tracked)
        pending.on_attempt_ended(attempt)
        tracked.release(clean=False, now=0.0)
        copy(tracked, found)
        pending.add(attempt, tracked)
        assert tracked.lease
        tracked.set_lease(tracked.lease)
        missing += sum(one.receipt.records for one in pending.close_epoch(epoch, ()))
        epoch += 1
    assert tracked.lease
    assert landed + missing == tracked.lease.records
