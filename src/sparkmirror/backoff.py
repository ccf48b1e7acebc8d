"""Pauses between retries, exponential and with jitter; and the time that is left for them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Final

JITTER: Final = SystemRandom()
"""Spreads load. It has no state, so processes forked from one parent do not pause in step."""


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Doubles the pause from `initial_s` up to `max_s`; call `reset` after a success."""

    initial_s: float = 0.05
    max_s: float = 1.0
    jitter: float = 0.2
    _next_s: float = field(init=False, default=0.0)

    def next_delay_s(self) -> float:
        """How long to wait before the next try."""
        pause = self._next_s or self.initial_s
        self._next_s = min(pause * 2, self.max_s)
        return pause * JITTER.uniform(1 - self.jitter, 1 + self.jitter)

    def reset(self) -> None:
        """Start with `initial_s` again."""
        self._next_s = 0.0


def seconds_left(deadline: float, minimum_s: float = 0.0) -> float:
    """Return the seconds from now to a deadline of the monotonic clock, at least `minimum_s`."""
    return max(deadline - time.monotonic(), minimum_s)
