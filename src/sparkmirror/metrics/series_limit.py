"""A bound for the series of each metric: Prometheus keeps every topic and group in memory. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.sparkmirror_metrics import LEFT_OUT_SERIES


def limit_series(figures: Iterable[Figure], max_series: int) -> list[Figure]:
    """Return the first figures of each metric, and one that says how many are left out.

    A series that two connectors share counts twice.
    """
    counts: Counter[str] = Counter()
    kept: list[Figure] = []
    for figure in figures:
        counts[figure.definition.name] += 1
        if counts[figure.definition.name] <= max_series:
            kept.append(figure)
    left_out = sum(max(count - max_series, 0) for count in counts.values())
    return [*kept, Figure(definition=LEFT_OUT_SERIES, value=left_out)]
