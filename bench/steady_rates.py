"""The steady rates of the benchmark. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyRate:
    """A rate of records over some topics."""

    name: str
    per_second: int
    topics: int
    partitions: int
    """Of each topic."""
    linger_ms: int

    @property
    def title(self) -> str:
        """What the report calls it."""
        total = self.topics * self.partitions
        batches = f"linger {self.linger_ms} ms" if self.linger_ms else "single records"
        return f"{self.per_second:,} rec/s, {total:,} partitions, {batches}"


RATES = (
    SteadyRate(name="100-single", per_second=100, topics=1, partitions=4, linger_ms=0),
    SteadyRate(name="1000-single", per_second=1_000, topics=1, partitions=4, linger_ms=0),
    SteadyRate(name="10000-single", per_second=10_000, topics=1, partitions=4, linger_ms=0),
    SteadyRate(name="2000-linger", per_second=2_000, topics=20, partitions=4, linger_ms=20),
    SteadyRate(name="10000-linger", per_second=10_000, topics=20, partitions=4, linger_ms=20),
    SteadyRate(name="1000-wide", per_second=1_000, topics=10, partitions=100, linger_ms=20),
)
