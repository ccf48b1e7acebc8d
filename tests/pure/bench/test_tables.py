"""What the table and the picture say of some runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.advantages import advantages
from bench.contestants import Who
from bench.document import with_table
from bench.lines import LINES, Demand
from bench.plot import LEAST, MOST, svg, x_of
from bench.rows import Mark, in_full, rows
from bench.run import Run
from bench.tables import markdown_table

RATES = {Who.MM2_DEFAULT: 10e3, Who.MM2_TUNED: 50e3, Who.PLAIN: 120e3, Who.OURS: 250e3}
COSTS = {Who.MM2_DEFAULT: 40.0, Who.MM2_TUNED: 20.0, Who.PLAIN: 4.0, Who.OURS: 5.0}


def runs() -> list[Run]:
    return [
        Run(
            bench="throughput",
            workload="1k-128k",
            who=who,
            round=1,
            figures={"records_per_s": RATES[who], "cpu_us_per_record": COSTS[who]},
        )
        for who in Who
    ]


def test_a_row_holds_if_the_ratio_does() -> None:
    rate, cost = rows(runs())
    assert (rate.ratio, rate.demand, rate.mark) == ("5x", "≥ 4x tuned", Mark.HOLDS)
    assert (cost.ratio, cost.demand, cost.mark) == ("0.25x", "≤ 1/7 tuned", Mark.MISSED)


def test_rates_and_costs_are_ahead_of_the_loop_in_their_own_way() -> None:
    rate, cost = rows(runs())
    assert (rate.ahead_of_plain, cost.ahead_of_plain) == (Mark.HOLDS, Mark.MISSED)


def test_values_are_shown_in_their_unit() -> None:
    rate, _ = rows(runs())
    assert rate.title == "catching up: 1 KB, batches of 128 KB [k rec/s]"
    assert rate.values[Who.OURS] == "250"


def test_extremes_are_shown_if_there_are_any() -> None:
    more = [
        Run(bench=r.bench, workload=r.workload, who=r.who, round=2, figures=r.figures)
        for r in runs()
    ]
    faster = Run(
        bench="throughput",
        workload="1k-128k",
        who=Who.OURS,
        round=3,
        figures={"records_per_s": 300e3},
    )
    assert rows([*runs(), *more, faster])[0].values[Who.OURS] == "250 (250..300)"


def test_without_the_opponent_nothing_is_claimed() -> None:
    alone = [run for run in runs() if run.who is Who.OURS]
    assert {row.mark for row in rows(alone)} == {Mark.UNKNOWN}
    assert advantages(alone) == []
    others = [run for run in runs() if run.who is not Who.OURS]
    assert [row.values[Who.OURS] for row in rows(others)] == ["–", "–"]


def test_markdown_has_a_line_for_each_row() -> None:
    lines = markdown_table(rows(runs())).splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1


def test_an_advantage_is_more_than_one_for_rates_and_costs() -> None:
    rate, cost = advantages(runs())
    assert (rate.ours.median, rate.wanted, rate.holds) == (5, 4, True)
    assert (cost.ours.median, round(cost.wanted), cost.holds) == (4, 7, False)
    assert (rate.plain, cost.plain) == (2.4, 5)


def test_the_picture_is_sound_and_names_every_line() -> None:
    picture = svg(advantages(runs()), "a < b")
    words = "".join(ElementTree.fromstring(picture).itertext())  # noqa: S314 - our own
    assert "a < b" in words
    for line in advantages(runs()):
        assert line.title in words


def test_the_axis_is_logarithmic_and_has_ends() -> None:
    assert x_of(4) - x_of(1) == pytest.approx(x_of(16) - x_of(4))
    assert x_of(LEAST / 2) == x_of(LEAST)
    assert x_of(MOST * 2) == x_of(MOST)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0123456, "0.0123"), (7, "7"), (12.34, "12.3"), (99.7, "100"), (1234567, "1,234,567")],
)
def test_three_digits_count(number: float, text: str) -> None:
    assert in_full(number) == text


def test_demands_are_written_as_people_do() -> None:
    assert Demand(limit=1 / 20, at_least=False).words() == "≤ 1/20"
    assert Demand(limit=0.7, at_least=False).words() == "≤ 0.7x"
    assert Demand(limit=2.5, at_least=True).words() == "≥ 2.5x"


def test_no_two_lines_are_the_same() -> None:
    assert len({(line.figure, line.demand) for line in LINES}) == len(LINES)


def test_the_document_gets_its_table_between_the_marks() -> None:
    page = "a\n<!-- table -->\nold\n<!-- end of table -->\nb\n"
    new = with_table(page, "| \\1 |")
    assert new == "a\n<!-- table -->\n\n| \\1 |\n<!-- end of table -->\nb\n"
    assert with_table(new, "| \\1 |") == new
