"""The ages of records of one topic or partition, in a window. No threads, no clock."""

from __future__ import annotations

from sparkmirror.copy.record_ages import AgeSummary
from sparkmirror.metrics.sampled_stat import MetricConfig, SampledStat, Values


class AgeStats:
    """MirrorMaker 2's record age, or its replication latency."""

    def __init__(self, config: MetricConfig) -> None:
        self.last_ms = 0.0
        self.window = SampledStat(config)

    def add(self, before: AgeSummary, now: AgeSummary, now_ms: float) -> None:
        """Add what the summary of a driver has more than its summary before.

        Fewer records than before are those of another driver.
        """
        if now.records < before.records:
            before = AgeSummary()
        records = now.records - before.records
        if records <= 0:
            return
        values = Values(records, now.total_ms - before.total_ms, now.min_ms, now.max_ms)
        self.window.record_many(values, now_ms)
        self.last_ms = now.last_ms

    def by_suffix(self, now_ms: float) -> dict[str, float]:
        """Return the values by the end of the metric's name."""
        values = self.window.values(now_ms)
        return {
            "": self.last_ms,
            "_avg": values.average,
            "_min": values.lowest,
            "_max": values.highest,
        }
