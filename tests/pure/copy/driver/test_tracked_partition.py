"""What the conductor remembers of one partition."""

from __future__ import annotations

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.model import TopicPartition
from tests.support.copy.pending_batches import make_lease

TASK = Hello(task=0, attempt=1, host="h", pid=1)


def place() -> TrackedPartition:
    made = TrackedPartition(TopicPartition("orders", 0), TopicPartition("primary.orders", 0), 0)
    made.set_lease(make_lease())
    return made


def test_what_is_held_is_tried_again_and_what_is_halted_is_not() -> None:
    held, halted = place(), place()
    held.hold("no leader", 0.0, then=LeaseState.WAITING)
    halted.hold("gone", 0.0, then=LeaseState.WAITING, forever=True)
    assert [one.view().halted for one in (held, halted)] == [False, True]
    assert [one.view().reason for one in (held, halted)] == ["no leader", "gone"]
    for one in (held, halted):
        one.end_hold_if_due(1e9)
    assert [one.state for one in (held, halted)] == [LeaseState.WAITING, LeaseState.HELD]


def test_once_granted_a_relocated_place_is_taken_over_like_any_other() -> None:
    """Whoever had it may have appended more than it told: that is not to be copied again."""
    moved = place()
    moved.seek(500)
    assert moved.is_repositioned, "what lies on the target says nothing of where it goes on"
    moved.grant_to(TASK)
    assert not moved.is_repositioned
