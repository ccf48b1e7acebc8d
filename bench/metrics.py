"""The metrics of the report, each with its required ratio. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from bench.run_statistics import MetricKey
from bench.steady_rates import HOUR_RATE, RATE_GROUPS, SteadyRate
from bench.systems import System


class Table(enum.StrEnum):
    """The tables of the report, in their order."""

    DEDICATED = "Dedicated mode: `sparkmirror run` beside `connect-mirror-maker`"
    COPY = "`sparkmirror copy`"
    CONNECT = "Connect workers"


_TABLES = {
    Table.DEDICATED: ("steady", "dedicated", "restart", "epochs", "hour", "transforms"),
    Table.COPY: ("throughput", "memory", "latency", "idle", "tls", "wan"),
    Table.CONNECT: ("connectors", "group", "partitions"),
}
"""The parts of the benchmark that each table shows."""


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
class Limit:
    """The highest value that sparkmirror may have, whatever other systems have."""

    value: float
    """In the unit of the metric."""

    def is_met(self, value: float) -> bool:
        """Return whether a value in the unit of the metric is within the limit."""
        return value <= self.value

    def text(self) -> str:
        """Return the limit as text, for example ≤ 15."""
        return f"≤ {self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBaseline:
    """Another figure of sparkmirror itself, where no other system has one. Nothing is required."""

    title: str
    workload: str
    """The workload that has the figure, in the same part of the benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One line of the report: a figure of every system, and the requirement for sparkmirror."""

    title: str
    key: MetricKey
    unit: str
    requirement: Requirement | Limit | OwnBaseline
    scale: float = 1.0
    """The divisor that converts a value to the unit."""

    @property
    def table(self) -> Table:
        """The table that shows the metric."""
        return next(table for table, parts in _TABLES.items() if self.key.bench in parts)


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


def _connectors(title: str, name: str, unit: str, scale: float) -> Metric:
    return Metric(
        title=title,
        key=MetricKey("connectors", "idle", name),
        unit=unit,
        scale=scale,
        requirement=Requirement(limit=1.5, at_least=False, baseline=System.MM2_DEFAULT),
    )


def _transforms(title: str, workload: str) -> tuple[Metric, Metric]:
    """Return the metrics of RegexRouter, DropHeaders and Filter for a workload."""
    return (
        Metric(
            title=f"transforms: {title}",
            key=MetricKey("transforms", workload, "records_per_s"),
            unit="k rec/s",
            scale=1000,
            requirement=Requirement(limit=2, at_least=True),
        ),
        Metric(
            title=f"processor, transforms: {title}",
            key=MetricKey("transforms", workload, "cpu_us_per_record"),
            unit="µs",
            requirement=Requirement(limit=1 / 2, at_least=False),
        ),
    )


def _masked(title: str, name: str, unit: str, scale: float) -> Metric:
    return Metric(
        title=title,
        key=MetricKey("transforms", "json-masked", name),
        unit=unit,
        scale=scale,
        requirement=OwnBaseline(title="without", workload="json-plain"),
    )


def _within(title: str, key: MetricKey, unit: str, limit: float, scale: float = 1.0) -> Metric:
    return Metric(title=title, key=key, unit=unit, scale=scale, requirement=Limit(value=limit))


def _group(title: str, name: str, unit: str, limit: float) -> Metric:
    return _within(
        f"3 workers, 200 connectors: {title}",
        MetricKey("group", "200-connectors", name),
        unit,
        limit,
    )


def _steady_group(rates: Sequence[SteadyRate]) -> tuple[Metric, ...]:
    """Return the start, memory and all rates of dedicated mode over the same partitions."""
    first = rates[0]
    return (
        _steady(
            first,
            f"{first.total_partitions:,} partitions: start to first record",
            "start_s",
            "s",
            1,
        ),
        _steady(first, f"{first.title}: memory", "memory_bytes", "MB", 1.2, 1e6),
        *(metric for rate in rates for metric in _steady_rate(rate)),
    )


def _steady_rate(rate: SteadyRate) -> tuple[Metric, ...]:
    """Return processor time and latency of dedicated mode at one rate.

    Producers that linger keep their records for longer than either system does. So the latency
    from the acknowledgement of the source on is a line of its own there.
    """
    lingers = rate.linger_ms > 0
    return (
        _steady(rate, f"{rate.title}: processor", "cpu_share", "% of a core", 0.8, 0.01),
        _steady(rate, f"{rate.title}: p50", "p50_ms", "ms", 0.6),
        *(
            [_steady(rate, f"{rate.title}: p50 without the producer", "mirror_p50_ms", "ms", 0.6)]
            if lingers
            else []
        ),
        _steady(rate, f"{rate.title}: p99", "p99_ms", "ms", 1),
    )


def _steady(
    rate: SteadyRate, title: str, name: str, unit: str, limit: float, scale: float = 1.0
) -> Metric:
    return Metric(
        title=f"steady, {title}",
        key=MetricKey("steady", rate.name, name),
        unit=unit,
        scale=scale,
        requirement=Requirement(limit=limit, at_least=False, baseline=System.MM2_DEFAULT),
    )


def _dedicated(title: str, workload: str, limit: float) -> Metric:
    return Metric(
        title=f"catching up, both warm: {title}",
        key=MetricKey("dedicated", workload, "records_per_s"),
        unit="k rec/s",
        scale=1000,
        requirement=Requirement(limit=limit, at_least=True),
    )


def _restart(title: str, name: str, limit: float) -> Metric:
    return Metric(
        title=title,
        key=MetricKey("restart", "1000-4-single", name),
        unit="s",
        requirement=Requirement(limit=limit, at_least=False, baseline=System.MM2_DEFAULT),
    )


def _epochs(title: str, name: str, limit: float) -> Metric:
    return Metric(
        title=f"1,000 rec/s over three changes of epochs: {title}",
        key=MetricKey("epochs", "three-changes", name),
        unit="ms",
        requirement=Requirement(limit=limit, at_least=False, baseline=System.MM2_DEFAULT),
    )


def _hour(title: str, name: str) -> Metric:
    return _within(
        f"an hour of 2,000 rec/s, last ten minutes by the first: {title}",
        MetricKey("hour", HOUR_RATE.name, name),
        "times",
        1.1,
    )


METRICS = (
    *(metric for group in RATE_GROUPS for metric in _steady_group(group)),
    _dedicated("1 KB, batches of 128 KB", "1k-128k", 4),
    _dedicated("100 B, batches of 128 KB", "100b-128k", 8),
    _dedicated("1 KB, batches of 16 KB", "1k-16k", 2.5),
    _dedicated("100 B, batches of 16 KB", "100b-16k", 6),
    _restart("start to first record, new topics", "start_s", 1),
    _restart("start after kill -9 to a record more", "restart_s", 1.2),
    _epochs("p50", "p50_ms", 0.6),
    _epochs("p99", "p99_ms", 1),
    _epochs("p99.9", "p999_ms", 1),
    _epochs("maximum", "max_ms", 2),
    _hour("memory", "memory_growth"),
    _hour("processor", "cpu_growth"),
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
    *_transforms("1 KB, 128 KB, 10 % of headers", "headers-10-128k"),
    *_transforms("1 KB, 128 KB, all headers", "headers-100-128k"),
    *_transforms("1 KB, 16 KB, 10 % of headers", "headers-10-16k"),
    Metric(
        title="latency at 1,000 rec/s, transforms: p50",
        key=MetricKey("transforms", "latency", "p50_ms"),
        unit="ms",
        requirement=Requirement(limit=1.5, at_least=False, baseline=System.MM2_DEFAULT),
    ),
    _masked("MaskField, JSON of 1 KB", "records_per_s", "k rec/s", 1000),
    _masked("processor, MaskField, JSON of 1 KB", "cpu_us_per_record", "µs", 1.0),
    _wan(30, System.MM2_DEFAULT),
    _wan(1.2, System.MM2_TUNED),
    _connectors("Connect worker, 1 idle connector: memory", "memory_bytes_1", "MB", 1e6),
    _connectors("Connect worker, 20 idle connectors: memory", "memory_bytes_20", "MB", 1e6),
    _connectors(
        "Connect worker, 50 idle connectors: processor", "cpu_share_50", "% of a core", 0.01
    ),
    _within(
        "Connect worker: memory of a further connector",
        MetricKey("connectors", "idle", "bytes_per_connector"),
        *("MB", 15.0, 1e6),
    ),
    _within(
        "Connect worker: further processes, 50 instead of 5 connectors",
        MetricKey("connectors", "idle", "further_processes"),
        *("processes", 0.0),
    ),
    _within(
        "Connect worker: PUT of the 20th connector to its first record",
        MetricKey("connectors", "idle", "first_record_s_20"),
        *("s", 3.0),
    ),
    _group("REST at 99 % while a worker dies", "rest_p99_ms", "ms", 100.0),
    _group("end of the rebalance after a worker died", "rebalance_s", "s", 30.0),
    _group("config topic read at the start of a worker", "configs_read_s", "s", 5.0),
    _within(
        "10,000 partitions in one connector: start to all leased",
        MetricKey("partitions", "10000-partitions", "leased_again_s"),
        *("s", 30.0),
    ),
)
