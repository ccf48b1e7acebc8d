"""Lines with their values, as words: the same for the terminal and for the document. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from bench.bench_run import BenchRun
from bench.metrics import METRICS, Metric, Requirement
from bench.run_statistics import Spread, ratio_of, spread_of
from bench.systems import System

SYSTEM_TITLES = {
    System.MM2_DEFAULT: "MM2 default",
    System.MM2_TUNED: "MM2 tuned",
    System.PLAIN_LOOP: "plain loop",
    System.SPARKMIRROR: "sparkmirror",
}


class Verdict(enum.StrEnum):
    """How a line stands."""

    MET = "✓"
    MISSED = "✗"
    UNKNOWN = "–"


class Row(NamedTuple):
    """One line of the table."""

    title: str
    values: dict[System, str]
    ratio: str
    requirement: str
    verdict: Verdict
    versus_plain_loop: Verdict


def build_rows(runs: Sequence[BenchRun]) -> list[Row]:
    """Every line of which something was measured."""
    return [
        _row(runs, line)
        for line in METRICS
        if any(spread_of(runs, line.key, who) for who in System)
    ]


def format_number(number: float) -> str:
    """Three digits that count, and no more."""
    if number >= 99.5:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def format_spread(spread: Spread | None, scale: float = 1.0) -> str:
    """A median with its extremes, if there are any."""
    if spread is None:
        return "–"
    median, lowest, highest = (format_number(value / scale) for value in spread)
    return median if lowest == highest else f"{median} ({lowest}..{highest})"


def _row(runs: Sequence[BenchRun], line: Metric) -> Row:
    demand = line.requirement
    ratio = ratio_of(runs, line.key, System.SPARKMIRROR, demand.baseline)
    plain = ratio_of(runs, line.key, System.SPARKMIRROR, System.PLAIN_LOOP)
    ahead = Requirement(limit=1.0, at_least=demand.at_least)
    return Row(
        title=f"{line.title} [{line.unit}]",
        values={who: format_spread(spread_of(runs, line.key, who), line.scale) for who in System},
        ratio=format_spread(ratio) + ("x" if ratio else ""),
        requirement=f"{demand.text()} {SYSTEM_TITLES[demand.baseline].removeprefix('MM2 ')}",
        verdict=_verdict(ratio, demand),
        versus_plain_loop=_verdict(plain, ahead),
    )


def _verdict(ratio: Spread | None, demand: Requirement) -> Verdict:
    if ratio is None:
        return Verdict.UNKNOWN
    return Verdict.MET if demand.is_met(ratio.median) else Verdict.MISSED
