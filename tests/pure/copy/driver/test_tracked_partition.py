"""One tracked partition: holds, repositioning, clean ends."""

from __future__ import annotations

from sparkmirror.copy.control.messages import Hello
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
    assert [one.view().halted for one in (held, halted)] == [False, True]
    assert [one.view().reason for one in (held, halted)] == ["no leader", "gone"]
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
