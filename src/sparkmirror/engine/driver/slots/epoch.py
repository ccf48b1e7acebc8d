"""The running epoch of Spark's streaming query: when it began, when it ends. No clock.

begin ─ slots connect ─ epoch_s after the first one ──▶ end ──▶ begin
"""

from __future__ import annotations

FIRST_EPOCH_S = 15.0
"""Spark is slow whenever it does something for the first time. A short first epoch makes the first
change of epochs happen soon after the start, not in the middle of the day."""
MAX_PARTITIONS_OF_SHORT_EPOCH = 1_000
"""Where slots are not kept, a change of epochs grants all leases again. With more partitions the
first epoch is a long one: a change in the middle of the first grants would delay them more than a
later change costs."""
SLOT_TIMEOUT_S = 20.0
"""If no slot is connected for so long, Spark has no free core for one."""
_NEVER = float("inf")


class Epoch:
    """One epoch after the other. The control server's event loop changes it."""

    def __init__(self, epoch_s: float, first_epoch_s: float = FIRST_EPOCH_S) -> None:
        self._epoch_s = epoch_s
        self._first_epoch_s = first_epoch_s
        self.number = 0
        """The epoch that began last; 0 before the first."""
        self.has_ended = True
        self._began_at = self._connected_at = self._without_slots_since = 0.0
        self._ends_at = _NEVER

    def begin(self, number: int, now: float) -> None:
        """Begin the epoch that the planner has requested."""
        self.number = number
        self.has_ended = False
        self._began_at = self._without_slots_since = now
        self._ends_at = _NEVER

    def end(self) -> bool:
        """End the epoch. Returns False if it had ended before."""
        was_running = not self.has_ended
        self.has_ended, self._ends_at = True, _NEVER
        return was_running

    def on_slot_connected(
        self, now: float, *, is_last: bool, is_idle: bool = False
    ) -> float | None:
        """Note a slot; the first one decides when the epoch ends. `is_last`: none is missing.

        The first epoch ends at once if the driver has no job yet (`is_idle`): nothing is paused.

        Returns how long the first slot took, and None for all others.
        """
        is_first = self._ends_at == _NEVER
        if is_first:
            self._connected_at, self._ends_at = now, now + self._epoch_s
        if self.number == 1 and is_last:
            first_epoch_s = 0.0 if is_idle else self._first_epoch_s
            self._ends_at = min(self._ends_at, now + first_epoch_s)
        return now - self._began_at if is_first else None

    def on_slot_lost(self, now: float) -> None:
        """Note that a slot has gone."""
        self._without_slots_since = now

    def is_over(self, now: float, partitions: int = 0) -> bool:
        """Whether the time of the epoch is over. With many partitions the first one is long."""
        if self.number == 1 and partitions > MAX_PARTITIONS_OF_SHORT_EPOCH:
            return self._ends_at != _NEVER and now >= self._connected_at + self._epoch_s
        return now >= self._ends_at

    def lacks_slots(self, now: float, *, connected: int) -> bool:
        """Whether no slot has been connected for long: Spark has no free core for one."""
        if self.has_ended or connected:
            return False
        return now - self._without_slots_since > SLOT_TIMEOUT_S
