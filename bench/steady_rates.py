"""The steady rates of the benchmark. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyRate:
    """A rate of records over some topics."""

    per_second: int
    topics: int
    partitions: int
    """Of each topic."""
    linger_ms: int = 0

    @property
    def total_partitions(self) -> int:
        """The partitions of all topics."""
        return self.topics * self.partitions

    @property
    def name(self) -> str:
        """The name by which the rate is selected, and which results have."""
        batches = "linger" if self.linger_ms else "single"
        return f"{self.per_second}-{self.total_partitions}-{batches}"

    @property
    def title(self) -> str:
        """What the report calls it."""
        batches = f"linger {self.linger_ms} ms" if self.linger_ms else "single records"
        return f"{self.per_second:,} rec/s, {self.total_partitions:,} partitions, {batches}"


LINGER_MS = 20


def _rates(topics: int, partitions: int) -> tuple[SteadyRate, ...]:
    """Return the rates over some partitions. The one that loads the computer most comes last."""
    return tuple(
        SteadyRate(per_second=per_second, topics=topics, partitions=partitions, linger_ms=linger_ms)
        for per_second in (1_000, 100, 10_000)
        for linger_ms in (LINGER_MS, 0)
    )


HOUR_RATE = SteadyRate(per_second=2_000, topics=20, partitions=4, linger_ms=LINGER_MS)
"""The rate of the hour of steady load."""
RATE_GROUPS = (_rates(1, 4), (HOUR_RATE, *_rates(20, 4)), _rates(10, 100))
"""A system starts once for all rates of a group: they have the same partitions."""
RATES = tuple(rate for group in RATE_GROUPS for rate in group)
