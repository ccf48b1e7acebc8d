"""The speedup of sparkmirror over Java MirrorMaker 2 for each metric. Pure.

More than 1 is always better. For a rate it is sparkmirror's value divided by Java's, for a cost
Java's value divided by sparkmirror's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.metrics import METRICS, Metric, Requirement
from bench.report_rows import SYSTEM_TITLES
from bench.run_statistics import Spread, ratio_of
from bench.systems import System


class Speedup(NamedTuple):
    """The speedup of one metric: one row of the chart."""

    title: str
    baseline: str
    ours: Spread
    required: float
    plain_loop: float | None
    """The speedup of the plain loop over the same baseline, if it ran."""

    @property
    def is_met(self) -> bool:
        """Whether the median meets the requirement."""
        return self.ours.median >= self.required


def compute_speedups(runs: Sequence[BenchRun]) -> list[Speedup]:
    """Return the speedup for each metric with a ratio that sparkmirror and the baseline have."""
    return [
        found
        for metric in METRICS
        if isinstance(metric.requirement, Requirement)
        and (found := _speedup(runs, metric, metric.requirement))
    ]


def _speedup(runs: Sequence[BenchRun], metric: Metric, requirement: Requirement) -> Speedup | None:
    ours = _times_better(runs, metric, requirement, System.SPARKMIRROR)
    if ours is None:
        return None
    plain = _times_better(runs, metric, requirement, System.PLAIN_LOOP)
    return Speedup(
        title=metric.title,
        baseline=SYSTEM_TITLES[requirement.baseline],
        ours=ours,
        required=requirement.limit if requirement.at_least else 1 / requirement.limit,
        plain_loop=plain.median if plain else None,
    )


def _times_better(
    runs: Sequence[BenchRun], metric: Metric, requirement: Requirement, system: System
) -> Spread | None:
    ratio = ratio_of(runs, metric.key, system, requirement.baseline)
    if ratio is None or requirement.at_least:
        return ratio
    return Spread(1 / ratio.median, 1 / ratio.highest, 1 / ratio.lowest)
