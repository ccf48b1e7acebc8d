"""How many times better we are than Java, line by line: one picture can hold them all. Pure.

More than 1 is always better: rates are divided by theirs, costs are what theirs is divided by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.contestants import Who
from bench.lines import LINES, Line
from bench.measures import Spread, ratio_of
from bench.rows import HEADS
from bench.run import Run


class Advantage(NamedTuple):
    """One line of the picture."""

    title: str
    against: str
    ours: Spread
    wanted: float
    plain: float | None
    """The loop by hand against the same opponent, if it ran."""

    @property
    def holds(self) -> bool:
        """Whether it is as much as was wanted."""
        return self.ours.median >= self.wanted


def advantages(runs: Sequence[Run]) -> list[Advantage]:
    """Every line of which both sides were measured."""
    return [found for line in LINES if (found := _advantage(runs, line))]


def _advantage(runs: Sequence[Run], line: Line) -> Advantage | None:
    ours = _times_better(runs, line, Who.OURS)
    if ours is None:
        return None
    plain = _times_better(runs, line, Who.PLAIN)
    demand = line.demand
    return Advantage(
        title=line.title,
        against=HEADS[demand.against],
        ours=ours,
        wanted=demand.limit if demand.at_least else 1 / demand.limit,
        plain=plain.median if plain else None,
    )


def _times_better(runs: Sequence[Run], line: Line, who: Who) -> Spread | None:
    ratio = ratio_of(runs, line.figure, who, line.demand.against)
    if ratio is None or line.demand.at_least:
        return ratio
    return Spread(1 / ratio.median, 1 / ratio.highest, 1 / ratio.lowest)
