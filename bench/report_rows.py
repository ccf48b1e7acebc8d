"""The rows of the report as text, for the terminal and for the document. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.metrics import METRICS, Limit, Metric, Requirement
from bench.run_statistics import Spread, ratio_of, spread_of
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

    title: str
    values: dict[System, str]
    ratio: str
    requirement: str
    verdict: Verdict
    versus_plain_loop: Verdict


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
    row = _row_of_limit if isinstance(metric.requirement, Limit) else _row_of_ratio
    return row(runs, metric)


def _row_of_ratio(runs: Sequence[BenchRun], metric: Metric) -> Row:
    requirement = metric.requirement
    assert isinstance(requirement, Requirement)
    baseline = SYSTEM_TITLES[requirement.baseline]
    ratio = ratio_of(runs, metric.key, System.SPARKMIRROR, requirement.baseline)
    plain = ratio_of(runs, metric.key, System.SPARKMIRROR, System.PLAIN_LOOP)
    ahead = Requirement(limit=1.0, at_least=requirement.at_least)
    return Row(
        title=f"{metric.title} [{metric.unit}]",
        values=_values(runs, metric),
        ratio=format_spread(ratio) + ("x" if ratio else ""),
        requirement=f"{requirement.text()} {baseline.removeprefix('MM2 ')}",
        verdict=_verdict(ratio, requirement),
        versus_plain_loop=_verdict(plain, ahead),
    )


def _row_of_limit(runs: Sequence[BenchRun], metric: Metric) -> Row:
    limit = metric.requirement
    assert isinstance(limit, Limit)
    ours = spread_of(runs, metric.key, System.SPARKMIRROR)
    return Row(
        title=f"{metric.title} [{metric.unit}]",
        values=_values(runs, metric),
        ratio="–",
        requirement=f"{limit.text()} {metric.unit}",
        verdict=_verdict(ours and ours.divided_by(metric.scale), limit),
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
