"""The lines of the table: what is shown, and which ratio is demanded. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.contestants import Who
from bench.measures import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What our figure divided by another's must be."""

    limit: float
    at_least: bool
    against: Who = Who.MM2_TUNED

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is good enough."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def words(self) -> str:
        """As people write it."""
        sign = "≥" if self.at_least else "≤"
        if not self.at_least and self.limit < 1 / 5:
            return f"{sign} 1/{1 / self.limit:.0f}"
        return f"{sign} {self.limit:g}x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: a figure of every contestant, and what is demanded of ours."""

    title: str
    figure: Figure
    unit: str
    demand: Demand
    scale: float = 1.0
    """What a value is divided by to be counted in the unit."""


def _throughput(title: str, workload: str, limit: float) -> Line:
    return Line(
        title=f"catching up: {title}",
        figure=Figure("throughput", workload, "records_per_s"),
        unit="k rec/s",
        scale=1000,
        demand=Demand(limit=limit, at_least=True),
    )


def _cpu(title: str, workload: str, limit: float) -> Line:
    return Line(
        title=f"processor per record: {title}",
        figure=Figure("throughput", workload, "cpu_us_per_record"),
        unit="µs",
        demand=Demand(limit=1 / limit, at_least=False),
    )


def _latency(title: str, name: str, limit: float) -> Line:
    return Line(
        title=f"latency at 1,000 rec/s: {title}",
        figure=Figure("latency", "1000-per-s", name),
        unit="ms",
        demand=Demand(limit=limit, at_least=False, against=Who.MM2_DEFAULT),
    )


def _wan(limit: float, against: Who) -> Line:
    return Line(
        title="one partition, 100 ms away",
        figure=Figure("wan", "100-ms", "records_per_s"),
        unit="k rec/s",
        scale=1000,
        demand=Demand(limit=limit, at_least=True, against=against),
    )


LINES = (
    _throughput("1 KB, batches of 128 KB", "1k-128k", 4),
    _throughput("100 B, batches of 128 KB", "100b-128k", 8),
    _throughput("1 KB, batches of 16 KB", "1k-16k", 2.5),
    _throughput("100 B, batches of 16 KB", "100b-16k", 6),
    _throughput("100 B, lz4", "100b-lz4", 7),
    _throughput("100 B, zstd", "100b-zstd", 7),
    _cpu("1 KB", "1k-128k", 7),
    _cpu("100 B", "100b-128k", 20),
    _cpu("100 B, lz4", "100b-lz4", 30),
    _latency("p50", "p50_ms", 0.4),
    _latency("p99", "p99_ms", 1),
    _latency("p99.9", "p999_ms", 2),
    Line(
        title="start to first record",
        figure=Figure("throughput", "1k-128k", "start_s"),
        unit="s",
        demand=Demand(limit=1.5, at_least=False),
    ),
    Line(
        title="peak memory",
        figure=Figure("memory", "1k-128k", "peak_bytes"),
        unit="MB",
        scale=1e6,
        demand=Demand(limit=0.7, at_least=False),
    ),
    Line(
        title="processor, 1,000 quiet partitions",
        figure=Figure("idle", "quiet", "cpu_share"),
        unit="% of a core",
        scale=0.01,
        demand=Demand(limit=1, at_least=False),
    ),
    _wan(30, Who.MM2_DEFAULT),
    _wan(1.2, Who.MM2_TUNED),
)
