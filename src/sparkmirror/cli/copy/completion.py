"""Whether a copy goes on, has caught up, or is stuck. Pure; the time comes in with each question.

caught up   every partition has passed the goal that was taken at the start, and none is halted: a
            source that was recreated may well end before the position
stuck       all that is not there yet is halted for somebody to decide, or is held and has not
            moved for a while: waiting longer changes nothing by itself
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.copy.snapshot import CopySnapshot, PartitionView

STUCK_AFTER_S = 60.0
"""How long a held partition may take to come right: brokers that restart do so within this."""

_HELD = "held"


class CopyState(enum.Enum):
    """What became of it so far."""

    COPYING = "copying"
    CAUGHT_UP = "caught up"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedPartition:
    """A partition that does not move."""

    partition: str
    reason: str
    is_halted: bool
    """Whether it waits for somebody to decide."""


class CompletionCheck:
    """Judges snapshots, in the order in which they come."""

    def __init__(self, goals: Mapping[str, int] | None, patience_s: float = STUCK_AFTER_S) -> None:
        """Take the goal of each partition; None if copying has no end."""
        self._end_offsets = goals
        self._stuck_after_s = patience_s
        self._last_progress_at = float("-inf")
        self._positions: dict[str, int] = {}

    def evaluate(self, snapshot: CopySnapshot, now: float) -> CopyState:
        """Say how it stands."""
        unfinished = self._unfinished(snapshot)
        self._track_positions(unfinished, now)
        if self._end_offsets is not None and not unfinished:
            return CopyState.CAUGHT_UP
        blocks = [_blocked_partition(partition, view) for partition, view in unfinished.items()]
        if not blocks or None in blocks:
            return CopyState.COPYING
        if all(block.is_halted for block in blocks if block):
            return CopyState.STUCK
        is_patient = self._end_offsets is None or now - self._last_progress_at < self._stuck_after_s
        return CopyState.COPYING if is_patient else CopyState.STUCK

    def _track_positions(self, unfinished: Mapping[str, PartitionView], now: float) -> None:
        """Those that are there already may go on with what is new: that helps nobody else."""
        positions = {key: view.position for key, view in unfinished.items()}
        if positions != self._positions:
            self._positions, self._last_progress_at = positions, now

    def _unfinished(self, snapshot: CopySnapshot) -> dict[str, PartitionView]:
        if self._end_offsets is None:
            return dict(snapshot.partitions)
        nothing = PartitionView(remote="", task=-1, state="waiting")
        views = {key: snapshot.partitions.get(key, nothing) for key in self._end_offsets}
        return {
            key: view
            for key, view in views.items()
            if view.halted or view.position < self._end_offsets[key]
        }


def blocked_partitions(snapshot: CopySnapshot) -> list[BlockedPartition]:
    """The partitions that do not move, and why."""
    blocks = [_blocked_partition(key, view) for key, view in snapshot.partitions.items()]
    return [block for block in blocks if block is not None]


def _blocked_partition(partition: str, view: PartitionView) -> BlockedPartition | None:
    if view.state != _HELD and not view.reason:
        return None
    return BlockedPartition(partition=partition, reason=view.reason, is_halted=view.halted)
