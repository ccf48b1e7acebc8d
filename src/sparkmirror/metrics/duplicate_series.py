"""One figure for each series. Prometheus refuses a scrape that has a series twice. Pure.

Two connectors with the same clusters and topics have the same series of MirrorMaker 2, as in Java,
where these names have no label of the connector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sparkmirror.metrics.definition import Figure, Merge

_RULES: Final[dict[Merge, Callable[[Iterable[float]], float]]] = {
    Merge.SUM: math.fsum,
    Merge.LOWEST: min,
    Merge.HIGHEST: max,
}


def merge_figures(figures: Iterable[Figure]) -> list[Figure]:
    """Return the figures, each series once, in the order of their first appearance.

    A figure that is not a number counts only where there is no other.
    """
    by_series: dict[tuple[str, frozenset[tuple[str, str]]], list[Figure]] = {}
    for figure in figures:
        key = figure.definition.name, frozenset(figure.labels.items())
        by_series.setdefault(key, []).append(figure)
    return [_merged(same) if len(same) > 1 else same[0] for same in by_series.values()]


def _merged(same: list[Figure]) -> Figure:
    numbers = [figure.value for figure in same if not math.isnan(figure.value)]
    if not numbers:
        return same[0]
    return replace(same[0], value=_RULES[same[0].definition.merge](numbers))
