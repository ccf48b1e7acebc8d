"""How often and how long this worker joins its group. The member's thread writes, any reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.metrics.sampled_stat import DEFAULT_CONFIG, MetricConfig, SampledStat


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceSummary:
    """The rebalances of one worker so far."""

    completed: int
    is_rebalancing: bool
    max_ms: float
    """The longest one in the window; NaN if there was none."""
    average_ms: float
    since_last_ms: float | None
    """None before the first one."""


class RebalanceTimes:
    """The rebalances of one worker."""

    def __init__(
        self, config: MetricConfig = DEFAULT_CONFIG, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._durations = SampledStat(config)
        self._completed = 0
        self._began_ms: float | None = None
        self._ended_ms: float | None = None

    def on_began(self) -> None:
        """The worker joins, or joins again."""
        with self._lock:
            self._began_ms = self._now_ms()

    def on_completed(self) -> None:
        """The worker has its share."""
        with self._lock:
            now_ms = self._now_ms()
            if self._began_ms is not None:
                self._durations.record(now_ms - self._began_ms, now_ms)
            self._completed += 1
            self._began_ms, self._ended_ms = None, now_ms

    def on_abandoned(self) -> None:
        """The worker has not joined: it tries again later, or it may not."""
        with self._lock:
            self._began_ms = None

    def summary(self) -> RebalanceSummary:
        """Return the figures at this moment."""
        with self._lock:
            now_ms, ended_ms = self._now_ms(), self._ended_ms
            return RebalanceSummary(
                completed=self._completed,
                is_rebalancing=self._began_ms is not None,
                max_ms=self._durations.maximum(now_ms),
                average_ms=self._durations.average(now_ms),
                since_last_ms=None if ended_ms is None else now_ms - ended_ms,
            )

    def _now_ms(self) -> float:
        return self._clock() * 1000
