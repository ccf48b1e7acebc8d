"""Sums, rates, averages and maxima over a window, as Kafka's metrics compute them.

A window has a few samples (`metrics.num.samples`) of some seconds each
(`metrics.sample.window.ms`). A sample counts until its last event is older than the whole window.
No threads, no clock: the caller says what time it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricConfig:
    """How many samples a window has, and how long one lasts."""

    samples: int = 2
    window_ms: int = 30_000

    @property
    def expire_ms(self) -> int:
        """After which time without an event a sample no longer counts."""
        return self.samples * self.window_ms


DEFAULT_CONFIG = MetricConfig()


@dataclass(frozen=True, slots=True)
class Values:
    """What is known of some values: their number, their sum, the lowest and the highest one."""

    count: int = 0
    total: float = 0.0
    lowest: float = math.nan
    highest: float = math.nan

    @property
    def average(self) -> float:
        """The average; NaN if there is no value."""
        return self.total / self.count if self.count else math.nan


def merge_values(parts: Iterable[Values]) -> Values:
    """Return what is known of the values of all parts together."""
    known = [part for part in parts if part.count]
    if not known:
        return Values()
    return Values(
        count=sum(part.count for part in known),
        total=math.fsum(part.total for part in known),
        lowest=min(part.lowest for part in known),
        highest=max(part.highest for part in known),
    )


@dataclass(slots=True)
class _Sample:
    start_ms: float
    last_event_ms: float
    count: int = 0
    total: float = 0.0
    highest: float = -math.inf
    lowest: float = math.inf


class SampledStat:
    """The samples of one figure."""

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        self._config = config
        self._samples: list[_Sample] = []

    def record(self, value: float, now_ms: float) -> None:
        """Add a value to the sample of this time."""
        self.record_many(Values(1, value, value, value), now_ms)

    def record_many(self, values: Values, now_ms: float) -> None:
        """Add several values, of which the number, the sum and the bounds are known."""
        sample = self._samples[-1] if self._samples else self._new_sample(now_ms)
        if now_ms - sample.start_ms >= self._config.window_ms:
            sample = self._new_sample(now_ms)
        sample.last_event_ms = now_ms
        sample.count += values.count
        sample.total += values.total
        sample.highest = max(sample.highest, values.highest)
        sample.lowest = min(sample.lowest, values.lowest)

    def sum(self, now_ms: float) -> float:
        """Return the sum of the values in the window."""
        return math.fsum(sample.total for sample in self._live(now_ms))

    def rate(self, now_ms: float) -> float:
        """Return the sum for each second of the window.

        The window begins with its oldest sample, and has all samples but one at least: the first
        values after a pause give no peak.
        """
        return self._per_second(self.sum(now_ms), now_ms)

    def count_rate(self, now_ms: float) -> float:
        """Return the number of values for each second of the window."""
        return self._per_second(self.values(now_ms).count, now_ms)

    def _per_second(self, total: float, now_ms: float) -> float:
        samples = self._live(now_ms)
        oldest_ms = min((sample.start_ms for sample in samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._config.samples - 1 - int(elapsed_ms // self._config.window_ms)
        elapsed_ms += max(missing, 0) * self._config.window_ms
        return total / max(elapsed_ms, 1.0) * 1000

    def average(self, now_ms: float) -> float:
        """Return the average of the values in the window; NaN if there is none."""
        return self.values(now_ms).average

    def maximum(self, now_ms: float) -> float:
        """Return the highest value in the window; NaN if there is none."""
        return max((sample.highest for sample in self._live(now_ms)), default=math.nan)

    def values(self, now_ms: float) -> Values:
        """Return what is known of the values in the window."""
        return merge_values(
            Values(one.count, one.total, one.lowest, one.highest) for one in self._live(now_ms)
        )

    def _new_sample(self, now_ms: float) -> _Sample:
        # One more than the window has: the oldest one may still overlap it.
        self._samples = self._samples[-self._config.samples :]
        self._samples.append(_Sample(now_ms, now_ms))
        return self._samples[-1]

    def _live(self, now_ms: float) -> list[_Sample]:
        expire_ms = self._config.expire_ms
        self._samples = [one for one in self._samples if now_ms - one.last_event_ms < expire_ms]
        return self._samples
