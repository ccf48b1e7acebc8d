"""The table and the chart of some runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.bench_run import BenchRun
from bench.document import with_table
from bench.metrics import METRICS, Requirement, Table
from bench.report_rows import Verdict, build_rows, format_number
from bench.report_tables import behind, markdown_tables
from bench.speedups import compute_speedups
from bench.svg_chart import MAX_RATIO, MIN_RATIO, render_svg, x_position
from bench.systems import System

RATES = {
    System.MM2_DEFAULT: 10e3,
    System.MM2_TUNED: 50e3,
    System.PLAIN_LOOP: 120e3,
    System.SPARKMIRROR: 250e3,
}
COSTS = {
    System.MM2_DEFAULT: 40.0,
    System.MM2_TUNED: 20.0,
    System.PLAIN_LOOP: 4.0,
    System.SPARKMIRROR: 5.0,
}


def runs() -> list[BenchRun]:
    return [
        BenchRun(
            bench="throughput",
            workload="1k-128k",
            who=who,
            round=1,
            figures={"records_per_s": RATES[who], "cpu_us_per_record": COSTS[who]},
        )
        for who in System
    ]


def test_a_row_is_met_if_its_ratio_meets_the_requirement() -> None:
    rate, cost = build_rows(runs())
    assert (rate.ratio, rate.requirement, rate.verdict) == ("5x", "≥ 4x tuned", Verdict.MET)
    assert (cost.ratio, cost.requirement, cost.verdict) == ("0.25x", "≤ 1/7 tuned", Verdict.MISSED)


def test_a_higher_rate_and_a_lower_cost_beat_the_plain_loop() -> None:
    rate, cost = build_rows(runs())
    assert (rate.versus_plain_loop, cost.versus_plain_loop) == (Verdict.MET, Verdict.MISSED)


def test_values_are_shown_in_their_unit() -> None:
    rate, _ = build_rows(runs())
    assert rate.title == "catching up: 1 KB, batches of 128 KB [k rec/s]"
    assert rate.values[System.SPARKMIRROR] == "250"


def test_lowest_and_highest_values_are_shown_if_they_differ() -> None:
    more = [
        BenchRun(bench=r.bench, workload=r.workload, who=r.who, round=2, figures=r.figures)
        for r in runs()
    ]
    faster = BenchRun(
        bench="throughput",
        workload="1k-128k",
        who=System.SPARKMIRROR,
        round=3,
        figures={"records_per_s": 300e3},
    )
    assert build_rows([*runs(), *more, faster])[0].values[System.SPARKMIRROR] == "250 (250..300)"


@pytest.mark.parametrize(("bytes_per_connector", "verdict"), [(15e6, "✓"), (15.1e6, "✗")])
def test_a_limit_is_compared_with_sparkmirror_alone(
    bytes_per_connector: float, verdict: str
) -> None:
    measured = [
        BenchRun(
            bench="connectors",
            workload="idle",
            who=who,
            round=1,
            figures={"bytes_per_connector": value},
        )
        for who, value in (
            (System.MM2_DEFAULT, 1e6),
            (System.SPARKMIRROR, bytes_per_connector),
        )
    ]
    [row] = build_rows(measured)
    assert (row.ratio, row.requirement, row.verdict) == ("–", "≤ 15 MB", verdict)
    assert row.values[System.MM2_DEFAULT] == "1"
    assert compute_speedups(measured) == []


def test_a_row_of_sparkmirror_alone_names_its_own_baseline() -> None:
    measured = [
        BenchRun(
            bench="transforms",
            workload=workload,
            who=System.SPARKMIRROR,
            round=1,
            figures={"records_per_s": value},
        )
        for workload, value in (("json-masked", 50e3), ("json-plain", 200e3))
    ]
    [row] = build_rows(measured)
    assert (row.values[System.SPARKMIRROR], row.ratio, row.requirement, row.verdict) == (
        *("50", "0.25x", "without: 200"),
        Verdict.UNKNOWN,
    )
    [row] = build_rows(measured[:1])
    assert (row.ratio, row.requirement) == ("–", "without: –")
    assert compute_speedups(measured) == []


def test_a_row_without_a_second_system_has_no_verdict() -> None:
    alone = [run for run in runs() if run.who is System.SPARKMIRROR]
    assert {row.verdict for row in build_rows(alone)} == {Verdict.UNKNOWN}
    assert compute_speedups(alone) == []
    others = [run for run in runs() if run.who is not System.SPARKMIRROR]
    assert [row.values[System.SPARKMIRROR] for row in build_rows(others)] == ["–", "–"]


def steady_run(who: System, cpu_share: float) -> BenchRun:
    return BenchRun(
        bench="steady", workload="100-4-single", who=who, round=1, figures={"cpu_share": cpu_share}
    )


def test_markdown_has_a_table_for_each_kind_and_a_line_for_each_row() -> None:
    steady = [steady_run(System.MM2_DEFAULT, 0.4), steady_run(System.SPARKMIRROR, 0.2)]
    lines = markdown_tables(build_rows([*runs(), *steady])).splitlines()
    titles = [line.removeprefix("### ") for line in lines if line.startswith("#")]
    assert titles == [Table.DEDICATED, Table.COPY]
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) == (2 + 1) + (2 + 2)
    assert len({line.count("|") for line in tables}) == 1


def test_lines_that_miss_what_is_wanted_are_named_first() -> None:
    text = markdown_tables(build_rows(runs())).splitlines()[0]
    assert text == (
        "Behind what is wanted, 1 of 2 lines: processor per record: 1 KB [µs] "
        "(0.25x, wanted ≤ 1/7 tuned)."
    )
    assert behind(build_rows(runs())[:1]) == "Behind what is wanted: none of 1 lines."


def test_every_part_of_the_benchmark_has_a_table() -> None:
    assert {metric.table for metric in METRICS} == set(Table)


def test_a_speedup_is_more_than_one_for_rates_and_costs() -> None:
    rate, cost = compute_speedups(runs())
    assert (rate.ours.median, rate.required, rate.is_met) == (5, 4, True)
    assert (cost.ours.median, round(cost.required), cost.is_met) == (4, 7, False)
    assert (rate.plain_loop, cost.plain_loop) == (2.4, 5)


def test_the_chart_is_valid_xml_and_names_every_metric() -> None:
    chart = render_svg(compute_speedups(runs()), "a < b")
    text = "".join(ElementTree.fromstring(chart).itertext())  # noqa: S314 - our own
    assert "a < b" in text
    for line in compute_speedups(runs()):
        assert line.title in text


def test_the_axis_is_logarithmic_and_limited() -> None:
    assert x_position(4) - x_position(1) == pytest.approx(x_position(16) - x_position(4))
    assert x_position(MIN_RATIO / 2) == x_position(MIN_RATIO)
    assert x_position(MAX_RATIO * 2) == x_position(MAX_RATIO)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0123456, "0.0123"), (7, "7"), (12.34, "12.3"), (99.7, "100"), (1234567, "1,234,567")],
)
def test_numbers_have_three_digits(number: float, text: str) -> None:
    assert format_number(number) == text


def test_a_requirement_is_written_as_a_factor_or_a_fraction() -> None:
    assert Requirement(limit=1 / 20, at_least=False).text() == "≤ 1/20"
    assert Requirement(limit=0.7, at_least=False).text() == "≤ 0.7x"
    assert Requirement(limit=2.5, at_least=True).text() == "≥ 2.5x"


def test_no_metric_is_listed_twice() -> None:
    assert len({(line.key, line.requirement) for line in METRICS}) == len(METRICS)


def test_the_table_replaces_the_text_between_the_marks() -> None:
    page = "a\n<!-- table -->\nold\n<!-- end of table -->\nb\n"
    new = with_table(page, "| \\1 |")
    assert new == "a\n<!-- table -->\n\n| \\1 |\n<!-- end of table -->\nb\n"
    assert with_table(new, "| \\1 |") == new
