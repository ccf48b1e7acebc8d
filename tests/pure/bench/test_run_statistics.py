"""A ratio is computed for each round; the result is their median."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bench_run import BenchRun
from bench.run_statistics import MetricKey, Spread, percentile, ratio_of, spread_of
from bench.systems import System
from bench.throughput import second_half_rate

RATE = MetricKey("throughput", "1k", "rate")


def run(who: System, number: int, rate: float) -> BenchRun:
    return BenchRun(
        bench="throughput", workload="1k", who=who, round=number, figures={"rate": rate}
    )


def test_a_ratio_compares_runs_of_the_same_round() -> None:
    runs = [run(System.SPARKMIRROR, n, ours) for n, ours in ((1, 40), (2, 100), (3, 90))]
    runs += [run(System.MM2_TUNED, n, theirs) for n, theirs in ((1, 10), (2, 50), (3, 30))]
    assert ratio_of(runs, RATE, System.SPARKMIRROR, System.MM2_TUNED) == Spread(3, 2, 4)


def test_a_round_without_both_results_is_ignored() -> None:
    failed = BenchRun(
        bench="throughput", workload="1k", who=System.MM2_TUNED, round=2, failure="died"
    )
    runs = [
        run(System.SPARKMIRROR, 1, 8),
        run(System.SPARKMIRROR, 2, 99),
        run(System.MM2_TUNED, 1, 2),
        failed,
    ]
    assert ratio_of(runs, RATE, System.SPARKMIRROR, System.MM2_TUNED) == Spread(4, 4, 4)
    assert ratio_of(runs, RATE, System.SPARKMIRROR, System.PLAIN_LOOP) is None


def test_other_workloads_and_figures_are_ignored() -> None:
    runs = [run(System.SPARKMIRROR, 1, 8)]
    assert spread_of(runs, RATE._replace(workload="2k"), System.SPARKMIRROR) is None
    assert spread_of(runs, RATE._replace(name="cost"), System.SPARKMIRROR) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=1))
def test_a_median_lies_between_the_extremes(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread
    assert spread.lowest <= spread.median <= spread.highest


@pytest.mark.parametrize(("percent", "value"), [(0, 0), (50, 500), (99.9, 999), (100, 999)])
def test_a_percentile_is_the_value_with_that_share_below(percent: float, value: float) -> None:
    assert percentile(range(1000), percent) == value


def test_the_second_half_is_the_second_half_of_the_time() -> None:
    assert second_half_rate([(0, 5), (1, 10), (2, 20), (3, 60), (4, 120)]) == 50
    assert second_half_rate([(0, 7)]) == 0
