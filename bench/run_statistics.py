"""Medians, spreads and ratios. Pure.

A ratio compares two systems within one round, because the rounds may differ in the load of the
computer. The median of the ratios of all rounds is compared with the requirement.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.systems import System


class MetricKey(NamedTuple):
    """The key of one figure: bench, workload and name."""

    bench: str
    workload: str
    name: str


class Spread(NamedTuple):
    """The median, lowest and highest of several values."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Return the spread of values; None if there are none."""
        if not values:
            return None
        return cls(statistics.median(values), min(values), max(values))

    def divided_by(self, divisor: float) -> Spread:
        """Return the spread in another unit."""
        return Spread(self.median / divisor, self.lowest / divisor, self.highest / divisor)


def values_by_round(
    runs: Iterable[BenchRun], figure: MetricKey, system: System
) -> dict[int, float]:
    """Return a system's values of a figure, by round."""
    return {
        run.round: run.figures[figure.name]
        for run in runs
        if (run.bench, run.workload, run.who) == (figure.bench, figure.workload, system)
        and figure.name in run.figures
    }


def spread_of(runs: Iterable[BenchRun], figure: MetricKey, system: System) -> Spread | None:
    """Return the spread of a system's values; None if there are none."""
    return Spread.of(list(values_by_round(runs, figure, system).values()))


def ratio_of(
    runs: Sequence[BenchRun], figure: MetricKey, system: System, baseline: System
) -> Spread | None:
    """Return the spread of the ratios of a system's values to the baseline's, by round."""
    values = values_by_round(runs, figure, system)
    baselines = values_by_round(runs, figure, baseline)
    return Spread.of([values[n] / baselines[n] for n in values if baselines.get(n)])


def ratio_of_figures(
    runs: Sequence[BenchRun], figure: MetricKey, baseline: MetricKey, system: System
) -> Spread | None:
    """Return the spread of the ratios of two figures of a system, by round."""
    values, baselines = (values_by_round(runs, key, system) for key in (figure, baseline))
    return Spread.of([values[n] / baselines[n] for n in values if baselines.get(n)])


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the given percentile of values in ascending order."""
    assert ordered
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
