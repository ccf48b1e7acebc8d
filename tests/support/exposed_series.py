"""Series of an exposition as sets, so that tests compare names and labels."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.metrics.definition import Figure

Series = tuple[str, frozenset[tuple[str, str]]]


def series_of(figures: Iterable[Figure]) -> dict[Series, float]:
    """The value of each series. Fails if a series is there twice."""
    found: dict[Series, float] = {}
    for figure in figures:
        key = series(figure.definition.name, **figure.labels)
        assert key not in found, f"{key} is there twice"
        found[key] = figure.value
    return found


def series(name: str, **labels: str) -> Series:
    """One series."""
    return name, frozenset(labels.items())
