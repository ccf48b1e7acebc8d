"""One tracked partition: holds, repositioning, clean ends, views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import Hello, LeaseProgress
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.record_ages import AgeSummary, RecordAges
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


Change = Callable[[TrackedPartition], None]


def _grant(tracked: TrackedPartition) -> None:
    if tracked.state is LeaseState.WAITING:
        tracked.grant_to(TASK)


def _set_task(tracked: TrackedPartition) -> None:
    tracked.task += 1


def _add_bytes(tracked: TrackedPartition) -> None:
    tracked.bytes += 10


def _add_suppressed(tracked: TrackedPartition) -> None:
    tracked.suppressed += 1


def _report(tracked: TrackedPartition, **values: Any) -> None:
    assert tracked.lease
    before = LeaseProgress(
        position=tracked.lease.position,
        expected=tracked.lease.expected,
        records=tracked.lease.records,
        end_offset=tracked.end_offset,
    )
    tracked.on_progress(replace(before, **values))


CHANGES: dict[str, Change] = {
    "grant": _grant,
    "advance": lambda tracked: report_progress(tracked, copied=3),
    "catch up": lambda tracked: report_progress(tracked, copied=0, behind=0),
    "same report": _report,
    "reason": lambda tracked: _report(tracked, held_reason="no leader"),
    "active": lambda tracked: _report(tracked, active=4),
    "queued": lambda tracked: _report(tracked, queued_bytes=99),
    "timestamp": lambda tracked: _report(tracked, max_timestamp_ms=tracked.newest_ms + 1),
    "epoch": lambda tracked: _report(tracked, leader_epoch=5),
    "bytes": _add_bytes,
    "suppressed": _add_suppressed,
    "ages": lambda tracked: tracked.ages.add(RecordAges(AgeSummary(1, 2, 3, 4, 5))),
    "task": _set_task,
    "end": lambda tracked: tracked.set_end(tracked.end_offset + 1),
    "unknown end": lambda tracked: tracked.set_end(-1),
    "clean end": lambda tracked: tracked.release(clean=True, now=10.0),
    "lost": lambda tracked: tracked.release(clean=False, now=10.0),
    "hold": lambda tracked: tracked.hold("too large", 9.0, then=LeaseState.WAITING),
    "wait": lambda tracked: tracked.wait_for("a moment", 9.0, 1.0),
    "end of hold": lambda tracked: tracked.end_hold_if_due(11.0),
    "taken": lambda tracked: tracked.give_up(0),
    "seek": lambda tracked: tracked.seek(7),
    "new lease": lambda tracked: tracked.set_lease(make_lease(partition=0)),
    "grantor": lambda tracked: tracked.set_grantor("a", 1),
    "transactional": lambda tracked: tracked.make_transactional(),
}


def shows_the_present(tracked: TrackedPartition, now: float, **more: Any) -> bool:
    """Return whether its view is that of a partition with the same values and no kept view."""
    return tracked.view(now, **more) == replace(tracked).view(now, **more)


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_of_a_partition_whose_view_is_kept_is_shown(name: str) -> None:
    tracked = caught_up_partition()
    tracked.view(10.0)
    CHANGES[name](tracked)
    assert shows_the_present(tracked, 10.0)


@given(
    names=st.lists(st.sampled_from(sorted(CHANGES)), max_size=20),
    now=st.sampled_from([10.0, 12.0, 1e9]),
    is_owner_silent=st.booleans(),
    default_reason=st.sampled_from(["", "the driver asks both clusters"]),
)
def test_a_view_that_is_kept_says_what_a_new_one_would_say(
    names: list[str], now: float, is_owner_silent: bool, default_reason: str
) -> None:
    tracked = caught_up_partition()
    for name in names:
        CHANGES[name](tracked)
        _grant(tracked)
        assert shows_the_present(tracked, now)
        assert shows_the_present(
            tracked, now, is_owner_silent=is_owner_silent, default_reason=default_reason
        )


def test_the_view_of_a_partition_that_is_copied_and_does_not_move_is_the_same_object() -> None:
    tracked = caught_up_partition()
    first = tracked.view(1.0)
    _report(tracked)
    assert tracked.view(1e9) is first
    report_progress(tracked, copied=1)
    assert tracked.view(1e9) is not first


@pytest.mark.parametrize("reason", ["reason", "_hold_reason"])
def test_a_view_with_a_reason_is_not_kept(reason: str) -> None:
    tracked = caught_up_partition()
    setattr(tracked, reason, "too large")
    tracked.held_until = 10.0
    assert tracked.view(11.0).reason == "too large"
    assert tracked.view(11.0) is not tracked.view(11.0)
