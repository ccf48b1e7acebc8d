"""No series is there twice."""

from __future__ import annotations

import math

import pytest

from sparkmirror.metrics.definition import Figure, Merge, MetricDefinition
from sparkmirror.metrics.duplicate_series import merge_figures
from sparkmirror.metrics.exposition import render


def figure(value: float, merge: Merge = Merge.SUM, topic: str = "t") -> Figure:
    definition = MetricDefinition(name="m", doc="", labels=("topic",), merge=merge)
    return Figure(definition=definition, value=value, labels={"topic": topic})


@pytest.mark.parametrize(
    ("merge", "expected"), [(Merge.SUM, 5.0), (Merge.LOWEST, 2.0), (Merge.HIGHEST, 3.0)]
)
def test_figures_with_the_same_labels_become_one(merge: Merge, expected: float) -> None:
    found = merge_figures([figure(2, merge), figure(7, merge, "u"), figure(3, merge)])
    assert [(one.labels["topic"], one.value) for one in found] == [("t", expected), ("u", 7)]


def test_what_is_not_a_number_counts_only_where_there_is_no_number() -> None:
    [found] = merge_figures([figure(math.nan), figure(4), figure(math.nan)])
    assert found.value == 4
    [found] = merge_figures([figure(math.nan), figure(math.nan)])
    assert math.isnan(found.value)


def test_a_scrape_has_each_series_once() -> None:
    lines = render([figure(1), figure(2)]).content.decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ['m{topic="t"} 3.0']
