"""How many times better we are than Java, line by line: one picture can hold them all. Pure.

More than 1 is always better: rates are divided by theirs, costs are what theirs is divided by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.metrics import METRICS, Metric
from bench.report_rows import SYSTEM_TITLES
from bench.run_statistics import Spread, ratio_of
from bench.systems import System


class Speedup(NamedTuple):
    """One line of the picture."""

    title: str
    baseline: str
    ours: Spread
    required: float
    plain_loop: float | None
    """The loop by hand against the same opponent, if it ran."""

    @property
    def is_met(self) -> bool:
        """Whether it is as much as was wanted."""
        return self.ours.median >= self.required


def compute_speedups(runs: Sequence[BenchRun]) -> list[Speedup]:
    """Every line of which both sides were measured."""
    return [found for line in METRICS if (found := _speedup(runs, line))]


def _speedup(runs: Sequence[BenchRun], line: Metric) -> Speedup | None:
    ours = _times_better(runs, line, System.SPARKMIRROR)
    if ours is None:
        return None
    plain = _times_better(runs, line, System.PLAIN_LOOP)
    demand = line.requirement
    return Speedup(
        title=line.title,
        baseline=SYSTEM_TITLES[demand.baseline],
        ours=ours,
        required=demand.limit if demand.at_least else 1 / demand.limit,
        plain_loop=plain.median if plain else None,
    )


def _times_better(runs: Sequence[BenchRun], line: Metric, who: System) -> Spread | None:
    ratio = ratio_of(runs, line.key, who, line.requirement.baseline)
    if ratio is None or line.requirement.at_least:
        return ratio
    return Spread(1 / ratio.median, 1 / ratio.highest, 1 / ratio.lowest)
