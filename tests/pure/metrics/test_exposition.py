"""The text of figures in both formats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_text

from sparkmirror.metrics.connect_metrics import COMPLETED_REBALANCES, TOTAL_TASK_COUNT
from sparkmirror.metrics.definition import Figure, MetricDefinition, MetricType
from sparkmirror.metrics.exposition import render
from sparkmirror.metrics.mirror_metrics import RECORD_COUNT

parse_openmetrics: Callable[[str], Any] = openmetrics_parser.text_string_to_metric_families
QUOTED = '"A->B.MirrorSourceConnector"'
FIGURES = (
    Figure(definition=TOTAL_TASK_COUNT, value=2, labels={"connector": QUOTED}),
    Figure(definition=COMPLETED_REBALANCES, value=6),
    Figure(
        definition=RECORD_COUNT,
        value=math.nan,
        labels={"source": "A", "target": "B", "topic": "A.t", "partition": "0"},
    ),
)
SCRAPE = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def test_prometheus_text_is_the_default() -> None:
    exposition = render(FIGURES)
    assert exposition.media_type == "text/plain; version=0.0.4; charset=utf-8"
    lines = exposition.content.decode().splitlines()
    assert [line for line in lines if not line.startswith("# HELP")] == [
        "# TYPE kafka_connect_mirror_mirrorsourceconnector_record_count gauge",
        RECORD_COUNT.name + '{partition="0",source="A",target="B",topic="A.t"} NaN',
        "# TYPE kafka_connect_worker_connector_total_task_count gauge",
        TOTAL_TASK_COUNT.name + '{connector="\\"A->B.MirrorSourceConnector\\""} 2.0',
        "# TYPE kafka_connect_worker_rebalance_completed_rebalances_total counter",
        "kafka_connect_worker_rebalance_completed_rebalances_total 6.0",
    ]


def test_a_scrape_gets_openmetrics() -> None:
    exposition = render(FIGURES, SCRAPE)
    assert exposition.media_type.startswith("application/openmetrics-text; version=1.0.0")
    text = exposition.content.decode()
    assert text.endswith("# EOF\n")
    samples = {s.name: s for family in parse_openmetrics(text) for s in family.samples}
    assert samples.keys() == {figure.definition.name for figure in FIGURES}
    assert samples[TOTAL_TASK_COUNT.name].labels == {"connector": QUOTED}


def test_both_formats_have_the_same_samples() -> None:
    found = [
        {
            (sample.name, tuple(sorted(sample.labels.items())), str(sample.value))
            for family in parse(render(FIGURES, accept).content.decode())
            for sample in family.samples
        }
        for parse, accept in ((parse_text, ""), (parse_openmetrics, SCRAPE))
    ]
    assert found[0] == found[1]
    assert len(found[0]) == len(FIGURES)


def test_a_figure_has_the_labels_of_its_metric() -> None:
    with pytest.raises(AssertionError):
        Figure(definition=TOTAL_TASK_COUNT, value=1)
    with pytest.raises(AssertionError):
        Figure(definition=TOTAL_TASK_COUNT, value=1, labels={"connector": "c", "partition": "0"})


def test_only_counters_end_in_total() -> None:
    with pytest.raises(AssertionError):
        MetricDefinition(name="x_total", doc="")
    with pytest.raises(AssertionError):
        MetricDefinition(name="x", doc="", type=MetricType.COUNTER)
