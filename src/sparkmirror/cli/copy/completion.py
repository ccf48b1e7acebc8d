"""Whether a copy continues, has caught up, or is stuck. Pure; the caller passes the time.

caught up   every partition has passed the end offset taken at the start, and none is halted (the
            log of a recreated source topic may end before the position)
stuck       every unfinished partition is halted until the operator decides, or is held and has not
            moved for a while; waiting longer changes nothing
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.copy.snapshot import CopySnapshot, PartitionView

STUCK_AFTER_S = 60.0
"""A held partition may take this long to continue. A broker restarts within this time."""

_HELD = "held"
_WAITING = "waiting"


class CopyState(enum.Enum):
    """The state of a copy."""

    COPYING = "copying"
    CAUGHT_UP = "caught up"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedPartition:
    """A partition that does not move."""

    partition: str
    reason: str
    is_halted: bool
    """Halted until the operator decides; otherwise it is tried again."""


class CompletionCheck:
    """Evaluates snapshots in their order."""

    def __init__(
        self, end_offsets: Mapping[str, int] | None, stuck_after_s: float = STUCK_AFTER_S
    ) -> None:
        """`end_offsets` holds the end offset of each partition; None if copying has no end."""
        self._end_offsets = end_offsets
        self._stuck_after_s = stuck_after_s
        self._last_progress_at = float("-inf")
        self._positions: dict[str, int] = {}

    def evaluate(self, snapshot: CopySnapshot, now: float) -> CopyState:
        """Return the state at the time `now`."""
        unfinished = self._unfinished(snapshot)
        self._track_positions(unfinished, now)
        if self._end_offsets is not None and not unfinished:
            return CopyState.CAUGHT_UP
        blocks = [blocked_partition(partition, view) for partition, view in unfinished.items()]
        if not blocks or None in blocks:
            return CopyState.COPYING
        if all(block.is_halted for block in blocks if block):
            return CopyState.STUCK
        may_continue = (
            self._end_offsets is None or now - self._last_progress_at < self._stuck_after_s
        )
        return CopyState.COPYING if may_continue else CopyState.STUCK

    def _track_positions(self, unfinished: Mapping[str, PartitionView], now: float) -> None:
        """Only unfinished partitions count: a finished one may still copy new records."""
        positions = {key: view.position for key, view in unfinished.items()}
        if positions != self._positions:
            self._positions, self._last_progress_at = positions, now

    def _unfinished(self, snapshot: CopySnapshot) -> dict[str, PartitionView]:
        if self._end_offsets is None:
            return dict(snapshot.partitions)
        unknown = PartitionView(remote="", task=-1, state="waiting")
        views = {key: snapshot.partitions.get(key, unknown) for key in self._end_offsets}
        return {
            key: view
            for key, view in views.items()
            if view.halted or view.position < self._end_offsets[key]
        }


def blocked_partitions(snapshot: CopySnapshot) -> list[BlockedPartition]:
    """Return the partitions that do not move, with reasons."""
    blocks = [blocked_partition(key, view) for key, view in snapshot.partitions.items()]
    return [block for block in blocks if block is not None]


def blocked_partition(partition: str, view: PartitionView) -> BlockedPartition | None:
    """Return why a partition does not move; None if it moves, or if Spark only starts its task."""
    if view.state != _HELD and not view.reason:
        return None
    if view.state == _WAITING and view.position < 0:
        return None
    return BlockedPartition(partition=partition, reason=view.reason, is_halted=view.halted)
