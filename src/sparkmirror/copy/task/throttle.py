"""A limit on bytes a second: a bucket that fills with time and may be overdrawn once.

What was fetched was fetched; a large answer is paid for by waiting longer before the next one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Throttle:
    """Says whether more may be fetched now. A rate of 0 never says no."""

    bytes_per_s: int = 0
    _tokens: float = 0.0
    _filled_at: float = 0.0

    def allows(self, now: float) -> bool:
        """Whether the bucket holds anything."""
        self._refill(now)
        return self.bytes_per_s == 0 or self._tokens > 0

    @property
    def max_fetch_bytes(self) -> int | None:
        """How much to fetch at once at the most, so that a low rate flows instead of gushing."""
        return max(self.bytes_per_s // 4, 1) if self.bytes_per_s else None

    def consume(self, size: int, now: float) -> None:
        """Take what was fetched out of the bucket."""
        self._refill(now)
        self._tokens -= size

    def wait_s(self, now: float) -> float:
        """How long until the bucket holds something again."""
        self._refill(now)
        if self.bytes_per_s == 0 or self._tokens > 0:
            return 0.0
        return -self._tokens / self.bytes_per_s + 0.001

    def _refill(self, now: float) -> None:
        if self.bytes_per_s:
            earned = (now - self._filled_at) * self.bytes_per_s
            self._tokens = min(self._tokens + earned, float(self.bytes_per_s))
        else:
            self._tokens = 0.0
        self._filled_at = now


def rate_per_task(bytes_per_s: int, tasks: int) -> int:
    """Each task's part of a limit: each keeps to its own, so together they keep to the whole."""
    return max(bytes_per_s // max(tasks, 1), 1) if bytes_per_s else 0
