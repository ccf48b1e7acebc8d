"""The rows of the report as text, for the terminal and for the document. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.metrics import METRICS, Limit, Metric, OwnBaseline, Requirement, Table
from bench.run_statistics import Spread, ratio_of, ratio_of_figures, spread_of
from bench.systems import System

SYSTEM_TITLES = {
    System.MM2_DEFAULT: "MM2 default",
    System.MM2_TUNED: "MM2 tuned",
    System.PLAIN_LOOP: "plain loop",
    System.SPARKMIRROR: "sparkmirror",
}


class Verdict(enum.StrEnum):
    """Whether a metric meets its requirement."""

    MET = "✓"
    MISSED = "✗"
    UNKNOWN = "–"


class Row(NamedTuple):
    """One row of the table."""

    table: Table
    title: str
    values: dict[System, str]
    ratio: str
    requirement: str
    verdict: Verdict
    versus_plain_loop: Verdict

    @property
    def value_text(self) -> str:
        """The ratio, or sparkmirror's value where there is no ratio."""
        return self.values[System.SPARKMIRROR] if self.ratio == "–" else self.ratio


def build_rows(runs: Sequence[BenchRun]) -> list[Row]:
    """Return a row for each metric of which at least one system has a value."""
    return [
        _row(runs, metric)
        for metric in METRICS
        if any(spread_of(runs, metric.key, system) for system in System)
    ]


def format_number(number: float) -> str:
    """Format a number with three significant digits."""
    if number >= 99.5:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def format_spread(spread: Spread | None, scale: float = 1.0) -> str:
    """Format a median, with the lowest and highest value if they differ."""
    if spread is None:
        return "–"
    median, lowest, highest = (format_number(value / scale) for value in spread)
    return median if lowest == highest else f"{median} ({lowest}..{highest})"


def _row(runs: Sequence[BenchRun], metric: Metric) -> Row:
    match metric.requirement:
        case Requirement() as requirement:
            return _row_of_ratio(runs, metric, requirement)
        case Limit() as limit:
            return _row_of_limit(runs, metric, limit)
        case OwnBaseline() as baseline:
            return _row_of_own_baseline(runs, metric, baseline)


def _row_of_ratio(runs: Sequence[BenchRun], metric: Metric, requirement: Requirement) -> Row:
    baseline = SYSTEM_TITLES[requirement.baseline]
    ratio = ratio_of(runs, metric.key, System.SPARKMIRROR, requirement.baseline)
    plain = ratio_of(runs, metric.key, System.SPARKMIRROR, System.PLAIN_LOOP)
    ahead = Requirement(limit=1.0, at_least=requirement.at_least)
    return Row(
        table=metric.table,
        title=f"{metric.title} [{metric.unit}]",
        values=_values(runs, metric),
        ratio=format_spread(ratio) + ("x" if ratio else ""),
        requirement=f"{requirement.text()} {baseline.removeprefix('MM2 ')}",
        verdict=_verdict(ratio, requirement),
        versus_plain_loop=_verdict(plain, ahead),
    )


def _row_of_limit(runs: Sequence[BenchRun], metric: Metric, limit: Limit) -> Row:
    ours = spread_of(runs, metric.key, System.SPARKMIRROR)
    return Row(
        table=metric.table,
        title=f"{metric.title} [{metric.unit}]",
        values=_values(runs, metric),
        ratio="–",
        requirement=f"{limit.text()} {metric.unit}",
        verdict=_verdict(ours and ours.divided_by(metric.scale), limit),
        versus_plain_loop=Verdict.UNKNOWN,
    )


def _row_of_own_baseline(runs: Sequence[BenchRun], metric: Metric, baseline: OwnBaseline) -> Row:
    """Return a row whose ratio compares two figures of sparkmirror."""
    other = metric.key._replace(workload=baseline.workload)
    ratio = ratio_of_figures(runs, metric.key, other, System.SPARKMIRROR)
    beside = format_spread(spread_of(runs, other, System.SPARKMIRROR), metric.scale)
    return Row(
        table=metric.table,
        title=f"{metric.title} [{metric.unit}]",
        values=_values(runs, metric),
        ratio=format_spread(ratio) + ("x" if ratio else ""),
        requirement=f"{baseline.title}: {beside}",
        verdict=Verdict.UNKNOWN,
        versus_plain_loop=Verdict.UNKNOWN,
    )


def _values(runs: Sequence[BenchRun], metric: Metric) -> dict[System, str]:
    return {
        system: format_spread(spread_of(runs, metric.key, system), metric.scale)
        for system in System
    }


def _verdict(value: Spread | None, requirement: Requirement | Limit) -> Verdict:
    if value is None:
        return Verdict.UNKNOWN
    return Verdict.MET if requirement.is_met(value.median) else Verdict.MISSED
