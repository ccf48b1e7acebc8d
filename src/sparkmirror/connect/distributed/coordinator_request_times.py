"""How many requests of one kind the coordinator answered, and how long that took.

No threads, no clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparkmirror.metrics.sampled_stat import DEFAULT_CONFIG, MetricConfig, SampledStat


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """The requests of one kind so far."""

    total: int = 0
    rate: float = 0.0
    average_ms: float = math.nan
    """In the window; NaN if there was none."""
    max_ms: float = math.nan
    since_last_ms: float | None = None
    """None before the first one."""


class CoordinatorRequestTimes:
    """Counts requests and keeps their times for the sample window. One thread at a time."""

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        self._times = SampledStat(config)
        self._total = 0
        self._last_ms: float | None = None

    def add(self, took_ms: float, now_ms: float) -> None:
        """Count a request that was answered now."""
        self._times.record(took_ms, now_ms)
        self._total += 1
        self._last_ms = now_ms

    def summary(self, now_ms: float) -> RequestSummary:
        """Return the figures at this moment."""
        values = self._times.values(now_ms)
        return RequestSummary(
            total=self._total,
            rate=self._times.count_rate(now_ms),
            average_ms=values.average,
            max_ms=values.highest,
            since_last_ms=None if self._last_ms is None else now_ms - self._last_ms,
        )
