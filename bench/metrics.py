"""The metrics of the report, each with its required ratio. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bench.run_statistics import MetricKey
from bench.systems import System


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The required ratio of sparkmirror's value to the value of another system."""

    limit: float
    at_least: bool
    baseline: System = System.MM2_TUNED

    def is_met(self, ratio: float) -> bool:
        """Return whether a ratio meets the requirement."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def text(self) -> str:
        """Return the requirement as text, for example ≥ 4x."""
        sign = "≥" if self.at_least else "≤"
        if not self.at_least and self.limit < 1 / 5:
            return f"{sign} 1/{1 / self.limit:.0f}"
        return f"{sign} {self.limit:g}x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One line of the report: a figure of every system, and the requirement for sparkmirror."""

    title: str
    key: MetricKey
    unit: str
    requirement: Requirement
    scale: float = 1.0
    """The divisor that converts a value to the unit."""


def _throughput(title: str, workload: str, limit: float) -> Metric:
    return Metric(
        title=f"catching up: {title}",
        key=MetricKey("throughput", workload, "records_per_s"),
        unit="k rec/s",
        scale=1000,
        requirement=Requirement(limit=limit, at_least=True),
    )


def _cpu(title: str, workload: str, limit: float) -> Metric:
    return Metric(
        title=f"processor per record: {title}",
        key=MetricKey("throughput", workload, "cpu_us_per_record"),
        unit="µs",
        requirement=Requirement(limit=1 / limit, at_least=False),
    )


def _latency(title: str, name: str, limit: float) -> Metric:
    return Metric(
        title=f"latency at 1,000 rec/s: {title}",
        key=MetricKey("latency", "1000-per-s", name),
        unit="ms",
        requirement=Requirement(limit=limit, at_least=False, baseline=System.MM2_DEFAULT),
    )


def _tls(title: str, workload: str, limit: float) -> Metric:
    return Metric(
        title=f"catching up over SASL_SSL: {title}",
        key=MetricKey("tls", workload, "records_per_s"),
        unit="k rec/s",
        scale=1000,
        requirement=Requirement(limit=limit, at_least=True),
    )


def _tls_cpu(title: str, workload: str) -> Metric:
    return Metric(
        title=f"processor per record over SASL_SSL: {title}",
        key=MetricKey("tls", workload, "cpu_us_per_record"),
        unit="µs",
        requirement=Requirement(limit=1 / 4, at_least=False),
    )


def _wan(limit: float, baseline: System) -> Metric:
    return Metric(
        title="one partition, 100 ms away",
        key=MetricKey("wan", "100-ms", "records_per_s"),
        unit="k rec/s",
        scale=1000,
        requirement=Requirement(limit=limit, at_least=True, baseline=baseline),
    )


METRICS = (
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
    Metric(
        title="start to first record",
        key=MetricKey("throughput", "1k-128k", "start_s"),
        unit="s",
        requirement=Requirement(limit=1.5, at_least=False),
    ),
    Metric(
        title="peak memory",
        key=MetricKey("memory", "1k-128k", "peak_bytes"),
        unit="MB",
        scale=1e6,
        requirement=Requirement(limit=0.7, at_least=False),
    ),
    Metric(
        title="processor, 1,000 quiet partitions",
        key=MetricKey("idle", "quiet", "cpu_share"),
        unit="% of a core",
        scale=0.01,
        requirement=Requirement(limit=1, at_least=False),
    ),
    _tls("1 KB", "1k-128k", 2),
    _tls("100 B", "100b-128k", 5),
    _tls_cpu("1 KB", "1k-128k"),
    _tls_cpu("100 B", "100b-128k"),
    _wan(30, System.MM2_DEFAULT),
    _wan(1.2, System.MM2_TUNED),
)
