"""A limit on bytes per second: a token bucket that may be overdrawn once.

A large fetch response takes more tokens than there are. The next fetch then waits longer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Throttle:
    """Decides whether the task may fetch now. A rate of 0 means no limit."""

    bytes_per_s: int = 0
    _tokens: float = 0.0
    _filled_at: float = 0.0

    def allows(self, now: float) -> bool:
        """Whether there are tokens."""
        self._refill(now)
        return self.bytes_per_s == 0 or self._tokens > 0

    @property
    def max_fetch_bytes(self) -> int | None:
        """The maximum size of one fetch; None without a limit. Keeps a low rate even."""
        return max(self.bytes_per_s // 4, 1) if self.bytes_per_s else None

    def consume(self, size: int, now: float) -> None:
        """Remove tokens for fetched bytes."""
        self._refill(now)
        self._tokens -= size

    def wait_s(self, now: float) -> float:
        """Return how long until there are tokens again."""
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
