"""One tracked partition: holds, repositioning, clean ends."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.copy.control.messages import Hello, LeaseProgress
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.model import TopicPartition
from tests.support.copy.pending_batches import make_lease

TASK = Hello(task=0, attempt=1, host="h", pid=1)


def tracked_partition() -> TrackedPartition:
    made = TrackedPartition(TopicPartition("orders", 0), TopicPartition("primary.orders", 0), 0)
    made.set_lease(make_lease())
    return made


def test_a_hold_ends_and_a_halt_does_not() -> None:
    held, halted = tracked_partition(), tracked_partition()
    held.hold("no leader", 0.0, then=LeaseState.WAITING)
    halted.hold("gone", 0.0, then=LeaseState.WAITING, forever=True)
    assert [one.view(0.0).halted for one in (held, halted)] == [False, True]
    assert [one.view(0.0).reason for one in (held, halted)] == ["no leader", "gone"]
    for one in (held, halted):
        one.end_hold_if_due(1e9)
    assert [one.state for one in (held, halted)] == [LeaseState.WAITING, LeaseState.HELD]


def test_once_granted_a_repositioned_partition_is_taken_over_like_any_other() -> None:
    """Its owner may have appended records that it did not report: they must not be copied again."""
    moved = tracked_partition()
    moved.seek(500)
    assert moved.is_repositioned, "the end of the target says nothing about the position"
    moved.grant_to(TASK)
    assert not moved.is_repositioned


def test_a_clean_end_without_any_record_must_still_be_stored_as_closed() -> None:
    """The ledger holds an open entry of every lease: the next driver would fence it."""
    tracked = tracked_partition()
    tracked.is_dirty = False
    tracked.grant_to(TASK)
    tracked.release(clean=True, now=1.0)
    assert tracked.is_dirty


def test_records_of_earlier_drivers_are_not_copied_by_this_one() -> None:
    tracked = tracked_partition()
    assert tracked.lease
    tracked.set_lease(replace(tracked.lease, records=100))
    lease = tracked.lease
    tracked.grant_to(TASK)
    assert (tracked.view(0.0).records, tracked.view(0.0).copied) == (100, 0)
    tracked.advance_to(lease.position + 9, lease.expected + 8, records=108)
    tracked.advance_to(lease.position + 9, lease.expected + 8, records=108)
    assert (tracked.view(0.0).records, tracked.view(0.0).copied) == (108, 8)


def caught_up_partition() -> TrackedPartition:
    """Return a leased partition that is copied up to the end of the source."""
    tracked = tracked_partition()
    tracked.grant_to(TASK)
    lease = tracked.lease
    assert lease
    tracked.on_progress(
        LeaseProgress(
            position=lease.position, expected=lease.expected, records=0, end_offset=lease.position
        )
    )
    return tracked


def test_a_lag_of_0_is_shown_only_while_its_owner_reports_it() -> None:
    tracked = caught_up_partition()
    assert tracked.view(1e9).end >= 0
    assert tracked.view(1e9, is_owner_silent=True).end == -1
    tracked.release(clean=True, now=10.0)
    assert tracked.view(12.0).end >= 0, "the next owner comes soon"
    assert tracked.view(16.0).end == -1
    tracked.release(clean=False, now=10.0)
    assert tracked.view(10.0).end == -1
    assert tracked.last_known_end >= 0


def test_a_lag_above_0_stays_while_nothing_is_copied() -> None:
    tracked = caught_up_partition()
    assert tracked.lease
    tracked.set_end(tracked.lease.position + 5)
    tracked.release(clean=False, now=10.0)
    assert tracked.view(1e9).end == tracked.lease.position + 5


def test_an_end_that_the_owner_does_not_know_is_unknown() -> None:
    tracked = caught_up_partition()
    end = tracked.end_offset
    tracked.set_end(-1)
    assert tracked.view(0.0).end == -1
    assert tracked.last_known_end == end


def refused_again(held_until: float) -> TrackedPartition:
    """Return a partition that was held, whose next owner has reported nothing new yet."""
    tracked = tracked_partition()
    tracked.hold("too large", 0.0, then=LeaseState.WAITING)
    tracked.held_until = held_until
    tracked.end_hold_if_due(held_until)
    tracked.grant_to(TASK)
    report_progress(tracked, copied=0)
    return tracked


def report_progress(tracked: TrackedPartition, *, copied: int, behind: int = 7) -> None:
    assert tracked.lease
    position = tracked.lease.position + copied
    tracked.on_progress(
        LeaseProgress(
            position=position,
            expected=tracked.lease.expected + copied,
            records=tracked.lease.records + copied,
            end_offset=position + behind,
        )
    )


def test_the_reason_of_a_hold_stands_until_the_next_owner_gets_further() -> None:
    tracked = refused_again(10.0)
    assert tracked.view(11.0).reason == "too large", "the owner does not know it yet"
    report_progress(tracked, copied=1)
    assert not tracked.view(11.0).reason


def test_the_reason_of_a_hold_ends_with_nothing_left_to_copy_or_after_a_while() -> None:
    tracked = refused_again(10.0)
    assert not tracked.view(16.0).reason
    report_progress(tracked, copied=0, behind=0)
    assert not tracked.view(11.0).reason


def test_a_doubtful_partition_says_what_it_waits_for_rather_than_how_its_lease_ended() -> None:
    tracked = caught_up_partition()
    tracked.release(clean=False, now=1.0)
    tracked.reason = "not acknowledged in time while draining"
    assert tracked.view(2.0).reason == "not acknowledged in time while draining"
    error = "target: west: no answer in time"
    assert tracked.view(2.0, default_reason=error).reason == error
    tracked.hold("no leader", 2.0, then=LeaseState.DOUBTFUL)
    assert tracked.view(2.0, default_reason=error).reason == "no leader"
