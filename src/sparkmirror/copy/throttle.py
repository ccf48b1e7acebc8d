"""A limit on bytes a second: a bucket that fills with time and may be overdrawn once.

What was fetched was fetched; a large answer is paid for by waiting longer before the next one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Throttle:
    """Says whether more may be fetched now. A rate of 0 never says no."""

    bytes_per_s: int = 0
    _saved: float = 0.0
    _seen: float = 0.0

    def allows(self, now: float) -> bool:
        """Whether the bucket holds anything."""
        self._fill(now)
        return self.bytes_per_s == 0 or self._saved > 0

    @property
    def most(self) -> int | None:
        """How much to fetch at once at the most, so that a low rate flows instead of gushing."""
        return max(self.bytes_per_s // 4, 1) if self.bytes_per_s else None

    def spend(self, size: int, now: float) -> None:
        """Take what was fetched out of the bucket."""
        self._fill(now)
        self._saved -= size

    def wait_s(self, now: float) -> float:
        """How long until the bucket holds something again."""
        self._fill(now)
        if self.bytes_per_s == 0 or self._saved > 0:
            return 0.0
        return -self._saved / self.bytes_per_s + 0.001

    def _fill(self, now: float) -> None:
        if self.bytes_per_s:
            earned = (now - self._seen) * self.bytes_per_s
            self._saved = min(self._saved + earned, float(self.bytes_per_s))
        else:
            self._saved = 0.0
        self._seen = now


def share(bytes_per_s: int, tasks: int) -> int:
    """Each task's part of a limit: each keeps to its own, so together they keep to the whole."""
    return max(bytes_per_s // max(tasks, 1), 1) if bytes_per_s else 0
