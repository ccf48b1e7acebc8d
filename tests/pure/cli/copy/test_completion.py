"""Caught up, stuck or still copying: judged from snapshots."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.cli.copy.completion import CompletionCheck, CopyState, blocked_partitions
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView


def _view(position: int, state: str = "leased", reason: str = "") -> PartitionView:
    return PartitionView(remote="a", task=0, state=state, position=position, reason=reason)


def _halted(position: int) -> PartitionView:
    return replace(_view(position, "held", "gone"), halted=True)


def _snapshot(*views: PartitionView) -> CopySnapshot:
    return CopySnapshot(partitions={f"a-{number}": view for number, view in enumerate(views)})


def test_caught_up_when_every_partition_has_passed_its_goal() -> None:
    goal = CompletionCheck({"a-0": 5, "a-1": 0})
    assert goal.evaluate(_snapshot(_view(4), _view(0)), 0) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_view(5), _view(-1)), 1) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_view(7), _view(0)), 2) is CopyState.CAUGHT_UP


def test_a_partition_of_which_nothing_is_known_is_not_there_yet() -> None:
    goal = CompletionCheck({"a-0": 0})
    assert goal.evaluate(CopySnapshot(), 0) is CopyState.COPYING
    assert goal.evaluate(CopySnapshot(), 10_000) is CopyState.COPYING


def test_a_copy_without_a_goal_never_catches_up() -> None:
    assert CompletionCheck(None).evaluate(_snapshot(_view(9)), 0) is CopyState.COPYING


def test_a_halted_loss_is_stuck_at_once_when_all_else_is_there() -> None:
    goal = CompletionCheck({"a-0": 5, "a-1": 5})
    assert goal.evaluate(_snapshot(_halted(0), _view(3)), 0) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_halted(0), _view(5)), 1) is CopyState.STUCK
    (block,) = blocked_partitions(_snapshot(_halted(0), _view(5)))
    assert (block.partition, block.reason, block.is_halted) == ("a-0", "gone", True)


def test_a_halted_partition_is_not_there_wherever_it_stands() -> None:
    goal = CompletionCheck({"a-0": 5})
    assert goal.evaluate(_snapshot(_halted(100)), 0) is CopyState.STUCK


def test_a_held_partition_may_come_right_for_a_while() -> None:
    goal = CompletionCheck({"a-0": 5}, stuck_after_s=60)
    held = _view(0, "held", "no leader")
    assert goal.evaluate(_snapshot(held), 0) is CopyState.COPYING
    assert goal.evaluate(_snapshot(held), 59) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_view(1, "held", "no leader")), 59.5) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_view(1, "held", "no leader")), 119) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_view(1, "held", "no leader")), 120) is CopyState.STUCK


def test_patience_is_not_renewed_by_those_that_are_there_already() -> None:
    goal = CompletionCheck({"a-0": 5, "a-1": 5}, stuck_after_s=60)
    held = _view(0, "held", "no leader")
    goal.evaluate(_snapshot(held, _view(5)), 0)
    assert goal.evaluate(_snapshot(held, _view(500)), 61) is CopyState.STUCK


def test_a_task_that_waits_for_a_broker_counts_as_held() -> None:
    goal = CompletionCheck({"a-0": 5}, stuck_after_s=60)
    waiting = _view(0, "leased", "source: connection refused")
    goal.evaluate(_snapshot(waiting), 0)
    assert goal.evaluate(_snapshot(waiting), 61) is CopyState.STUCK


def test_slowness_is_not_being_stuck() -> None:
    goal = CompletionCheck({"a-0": 5}, stuck_after_s=60)
    for state in ("leased", "waiting", "doubtful"):
        goal.evaluate(_snapshot(_view(0, state)), 0)
        assert goal.evaluate(_snapshot(_view(0, state)), 10_000) is CopyState.COPYING


def test_without_a_goal_only_losses_everywhere_end_it() -> None:
    goal = CompletionCheck(None, stuck_after_s=60)
    held = _view(0, "held", "no leader")
    goal.evaluate(_snapshot(held), 0)
    assert goal.evaluate(_snapshot(held), 10_000) is CopyState.COPYING
    assert goal.evaluate(_snapshot(_halted(0)), 10_001) is CopyState.STUCK
    (block,) = blocked_partitions(_snapshot(held))
    assert not block.is_halted
