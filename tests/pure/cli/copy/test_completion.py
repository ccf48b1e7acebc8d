"""`CompletionCheck` decides from snapshots: copying, caught up or stuck."""

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


def test_copy_has_caught_up_when_every_partition_has_reached_its_end_offset() -> None:
    check = CompletionCheck({"a-0": 5, "a-1": 0})
    assert check.evaluate(_snapshot(_view(4), _view(0)), 0) is CopyState.COPYING
    assert check.evaluate(_snapshot(_view(5), _view(-1)), 1) is CopyState.COPYING
    assert check.evaluate(_snapshot(_view(7), _view(0)), 2) is CopyState.CAUGHT_UP


def test_partition_that_no_snapshot_contains_has_not_caught_up() -> None:
    check = CompletionCheck({"a-0": 0})
    assert check.evaluate(CopySnapshot(), 0) is CopyState.COPYING
    assert check.evaluate(CopySnapshot(), 10_000) is CopyState.COPYING


def test_copy_without_end_offsets_never_catches_up() -> None:
    assert CompletionCheck(None).evaluate(_snapshot(_view(9)), 0) is CopyState.COPYING


def test_copy_is_stuck_at_once_when_only_halted_partitions_are_left() -> None:
    check = CompletionCheck({"a-0": 5, "a-1": 5})
    assert check.evaluate(_snapshot(_halted(0), _view(3)), 0) is CopyState.COPYING
    assert check.evaluate(_snapshot(_halted(0), _view(5)), 1) is CopyState.STUCK
    (block,) = blocked_partitions(_snapshot(_halted(0), _view(5)))
    assert (block.partition, block.reason, block.is_halted) == ("a-0", "gone", True)


def test_halted_partition_has_not_caught_up_at_any_position() -> None:
    check = CompletionCheck({"a-0": 5})
    assert check.evaluate(_snapshot(_halted(100)), 0) is CopyState.STUCK


def test_held_partition_is_stuck_when_it_makes_no_progress_until_the_timeout() -> None:
    check = CompletionCheck({"a-0": 5}, stuck_after_s=60)
    held = _view(0, "held", "no leader")
    assert check.evaluate(_snapshot(held), 0) is CopyState.COPYING
    assert check.evaluate(_snapshot(held), 59) is CopyState.COPYING
    assert check.evaluate(_snapshot(_view(1, "held", "no leader")), 59.5) is CopyState.COPYING
    assert check.evaluate(_snapshot(_view(1, "held", "no leader")), 119) is CopyState.COPYING
    assert check.evaluate(_snapshot(_view(1, "held", "no leader")), 120) is CopyState.STUCK


def test_progress_after_the_end_offset_does_not_restart_the_timeout() -> None:
    check = CompletionCheck({"a-0": 5, "a-1": 5}, stuck_after_s=60)
    held = _view(0, "held", "no leader")
    check.evaluate(_snapshot(held, _view(5)), 0)
    assert check.evaluate(_snapshot(held, _view(500)), 61) is CopyState.STUCK


def test_partition_that_waits_for_a_broker_counts_as_held() -> None:
    check = CompletionCheck({"a-0": 5}, stuck_after_s=60)
    waiting = _view(0, "leased", "source: connection refused")
    check.evaluate(_snapshot(waiting), 0)
    assert check.evaluate(_snapshot(waiting), 61) is CopyState.STUCK


def test_slow_partition_is_not_stuck() -> None:
    check = CompletionCheck({"a-0": 5}, stuck_after_s=60)
    for state in ("leased", "waiting", "doubtful"):
        check.evaluate(_snapshot(_view(0, state)), 0)
        assert check.evaluate(_snapshot(_view(0, state)), 10_000) is CopyState.COPYING


def test_copy_without_end_offsets_is_stuck_only_when_halted() -> None:
    check = CompletionCheck(None, stuck_after_s=60)
    held = _view(0, "held", "no leader")
    check.evaluate(_snapshot(held), 0)
    assert check.evaluate(_snapshot(held), 10_000) is CopyState.COPYING
    assert check.evaluate(_snapshot(_halted(0)), 10_001) is CopyState.STUCK
    (block,) = blocked_partitions(_snapshot(held))
    assert not block.is_halted
