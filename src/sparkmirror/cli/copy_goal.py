"""Whether a copy goes on, has caught up, or is stuck. Pure; the time comes in with each question.

caught up   every partition has passed the goal that was taken at the start
stuck       all that is not there yet is halted for somebody to decide, or is held and has not
            moved for a while: waiting longer changes nothing by itself
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.copy.job import OnLoss
from sparkmirror.copy.losses import Kind
from sparkmirror.copy.snapshot import PartitionView, Snapshot

PATIENCE_S = 60.0
"""How long a held partition may take to come right: brokers that restart do so within this."""

_HELD = "held"
_LOSSES = frozenset(kind.value for kind in Kind)


class Verdict(enum.Enum):
    """What became of it so far."""

    COPYING = "copying"
    CAUGHT_UP = "caught up"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A partition that does not move."""

    partition: str
    reason: str
    is_halted: bool
    """Whether it waits for somebody to decide about a loss."""


class Goal:
    """Judges snapshots, in the order in which they come."""

    def __init__(
        self,
        goals: Mapping[str, int] | None,
        on_loss: OnLoss = OnLoss.HALT,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Take the goal of each partition; None if copying has no end."""
        self._goals = goals
        self._on_loss = on_loss
        self._patience_s = patience_s
        self._lost: set[str] = set()
        self._moved_at = float("-inf")
        self._positions: dict[str, int] = {}

    def judge(self, snapshot: Snapshot, now: float) -> Verdict:
        """Say how it stands."""
        self._remember_losses(snapshot)
        unfinished = self._unfinished(snapshot)
        self._watch(unfinished, now)
        if self._goals is not None and not unfinished:
            return Verdict.CAUGHT_UP
        blocked = [self._block(partition, view) for partition, view in unfinished.items()]
        if not blocked or None in blocked:
            return Verdict.COPYING
        if all(block.is_halted for block in blocked if block):
            return Verdict.STUCK
        is_patient = self._goals is None or now - self._moved_at < self._patience_s
        return Verdict.COPYING if is_patient else Verdict.STUCK

    def blocked(self, snapshot: Snapshot) -> list[Blocked]:
        """The partitions that do not move, and why."""
        blocks = [self._block(key, view) for key, view in snapshot.partitions.items()]
        return [block for block in blocks if block is not None]

    def _remember_losses(self, snapshot: Snapshot) -> None:
        """Only the latest events are told each time, and a halted partition stays halted."""
        self._lost |= {event.partition for event in snapshot.events if event.kind in _LOSSES}

    def _watch(self, unfinished: Mapping[str, PartitionView], now: float) -> None:
        """Those that are there already may go on with what is new: that helps nobody else."""
        positions = {key: view.position for key, view in unfinished.items()}
        if positions != self._positions:
            self._positions, self._moved_at = positions, now

    def _unfinished(self, snapshot: Snapshot) -> dict[str, PartitionView]:
        if self._goals is None:
            return dict(snapshot.partitions)
        nothing = PartitionView(remote="", task=-1, state="waiting")
        views = {key: snapshot.partitions.get(key, nothing) for key in self._goals}
        return {key: view for key, view in views.items() if view.position < self._goals[key]}

    def _block(self, partition: str, view: PartitionView) -> Blocked | None:
        if view.state != _HELD and not view.reason:
            return None
        is_halted = self._on_loss is OnLoss.HALT and view.state == _HELD and partition in self._lost
        return Blocked(partition=partition, reason=view.reason, is_halted=is_halted)
