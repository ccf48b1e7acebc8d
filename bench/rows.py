"""Lines with their values, as words: the same for the terminal and for the document. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from bench.contestants import Who
from bench.lines import LINES, Demand, Line
from bench.measures import Spread, ratio_of, spread_of
from bench.run import Run

HEADS = {
    Who.MM2_DEFAULT: "MM2 default",
    Who.MM2_TUNED: "MM2 tuned",
    Who.PLAIN: "plain loop",
    Who.OURS: "sparkmirror",
}


class Mark(enum.StrEnum):
    """How a line stands."""

    HOLDS = "✓"
    MISSED = "✗"
    UNKNOWN = "–"


class Row(NamedTuple):
    """One line of the table."""

    title: str
    values: dict[Who, str]
    ratio: str
    demand: str
    mark: Mark
    ahead_of_plain: Mark


def rows(runs: Sequence[Run]) -> list[Row]:
    """Every line of which something was measured."""
    return [
        _row(runs, line) for line in LINES if any(spread_of(runs, line.figure, who) for who in Who)
    ]


def in_full(number: float) -> str:
    """Three digits that count, and no more."""
    if number >= 99.5:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def in_words(spread: Spread | None, scale: float = 1.0) -> str:
    """A median with its extremes, if there are any."""
    if spread is None:
        return "–"
    median, lowest, highest = (in_full(value / scale) for value in spread)
    return median if lowest == highest else f"{median} ({lowest}..{highest})"


def _row(runs: Sequence[Run], line: Line) -> Row:
    demand = line.demand
    ratio = ratio_of(runs, line.figure, Who.OURS, demand.against)
    plain = ratio_of(runs, line.figure, Who.OURS, Who.PLAIN)
    ahead = Demand(limit=1.0, at_least=demand.at_least)
    return Row(
        title=f"{line.title} [{line.unit}]",
        values={who: in_words(spread_of(runs, line.figure, who), line.scale) for who in Who},
        ratio=in_words(ratio) + ("x" if ratio else ""),
        demand=f"{demand.words()} {HEADS[demand.against].removeprefix('MM2 ')}",
        mark=_mark(ratio, demand),
        ahead_of_plain=_mark(plain, ahead),
    )


def _mark(ratio: Spread | None, demand: Demand) -> Mark:
    if ratio is None:
        return Mark.UNKNOWN
    return Mark.HOLDS if demand.holds(ratio.median) else Mark.MISSED
