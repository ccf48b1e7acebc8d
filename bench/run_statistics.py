"""Medians, spreads and ratios. Pure.

A ratio is taken within a round, where both sides had the same computer and the same minutes; the
median of the rounds' ratios is what is compared with the demand.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.systems import System


class MetricKey(NamedTuple):
    """Which figure of which runs."""

    bench: str
    workload: str
    name: str


class Spread(NamedTuple):
    """Several values of the same thing."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None if there are no values."""
        if not values:
            return None
        return cls(statistics.median(values), min(values), max(values))


def values_by_round(runs: Iterable[BenchRun], figure: MetricKey, who: System) -> dict[int, float]:
    """A contestant's values of a figure."""
    return {
        run.round: run.figures[figure.name]
        for run in runs
        if (run.bench, run.workload, run.who) == (figure.bench, figure.workload, who)
        and figure.name in run.figures
    }


def spread_of(runs: Iterable[BenchRun], figure: MetricKey, who: System) -> Spread | None:
    """A contestant's median and extremes."""
    return Spread.of(list(values_by_round(runs, figure, who).values()))


def ratio_of(
    runs: Sequence[BenchRun], figure: MetricKey, who: System, against: System
) -> Spread | None:
    """How many times another's value a contestant's is, round by round."""
    mine, theirs = values_by_round(runs, figure, who), values_by_round(runs, figure, against)
    return Spread.of([mine[n] / theirs[n] for n in mine if theirs.get(n)])


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value below which so many of some ordered values lie."""
    assert ordered
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
