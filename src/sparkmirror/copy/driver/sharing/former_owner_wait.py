"""Hand-overs between workers: how long a conductor waits for the former owner of a partition.

A worker gives a partition back before its group assigns the partition to another worker. Then the
ledger entry is closed, and the new owner continues without a fence. If the entry is still open, the
former owner is dead, or slow. The new owner waits a moment for a slow one:

    the entry is closed                                   continue, no fence
    neither the entry nor the target log has changed
    for `QUIET_S`                                         fence
    it is still open after `LIMIT_S`                      fence
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.model import TopicPartition

QUIET_S = 1.0
LIMIT_S = 3.0
POLL_INTERVAL_S = 0.25
WAITS_FOR_FORMER_OWNER = "its former owner, on another worker, has not given it back yet"


@dataclass(frozen=True, slots=True)
class _Wait:
    began_at: float
    changed_at: float
    seen: tuple[LedgerEntry, int]


class FormerOwnerWait:
    """The partitions that former owners have not given back."""

    def __init__(self) -> None:
        self._waits: dict[TopicPartition, _Wait] = {}

    def is_waiting(
        self, partition: TopicPartition, entry: LedgerEntry, target_end: int, now: float
    ) -> bool:
        """Whether to wait longer for the owner of an open entry."""
        seen = (entry, target_end)
        wait = self._waits.get(partition)
        if wait is None:
            wait = _Wait(now, now, seen)
        elif wait.seen != seen:
            wait = _Wait(wait.began_at, now, seen)
        if now - wait.began_at >= LIMIT_S or now - wait.changed_at >= QUIET_S:
            self._waits.pop(partition, None)
            return False
        self._waits[partition] = wait
        return True

    def forget(self, partition: TopicPartition) -> None:
        """End the wait for a partition: its entry is closed."""
        self._waits.pop(partition, None)
