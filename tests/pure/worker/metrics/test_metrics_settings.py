"""The settings of metrics in a worker's file."""

from __future__ import annotations

import pytest

from sparkmirror.config.tables.additions import PROCESS_ADDITIONS
from sparkmirror.errors import ConfigError
from sparkmirror.metrics.definition import RuleSet
from sparkmirror.metrics.sampled_stat import MetricConfig
from sparkmirror.worker.metrics.metrics_settings import (
    ExposureSettings,
    MetricsDetail,
    MetricsSettings,
)


def test_defaults_are_those_of_kafka_and_figures_of_topics() -> None:
    assert MetricsSettings.from_properties({}) == MetricsSettings(
        detail=MetricsDetail.TOPIC, window=MetricConfig(samples=2, window_ms=30_000)
    )


def test_the_detail_and_the_window_are_read() -> None:
    given = {
        "sparkmirror.metrics.detail": " partition ",
        "metrics.num.samples": "3",
        "metrics.sample.window.ms": "1000",
    }
    assert MetricsSettings.from_properties(given) == MetricsSettings(
        detail=MetricsDetail.PARTITION, window=MetricConfig(samples=3, window_ms=1000)
    )


def test_a_flow_has_the_window_of_its_worker_and_the_detail_of_the_file() -> None:
    own = {"sparkmirror.metrics.detail": "partition", "metrics.num.samples": "9"}
    assert MetricsSettings.of_flow(own, {"metrics.num.samples": "3"}) == MetricsSettings(
        detail=MetricsDetail.PARTITION, window=MetricConfig(samples=3)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [("sparkmirror.metrics.detail", "all"), ("metrics.num.samples", "0")],
)
def test_a_wrong_value_names_its_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        MetricsSettings.from_properties({key: value})


def test_names_are_those_of_strimzi_unless_the_file_says_otherwise() -> None:
    assert ExposureSettings.from_properties({}) == ExposureSettings(
        rule_sets=(RuleSet.STRIMZI,), max_series=10_000
    )
    given = {"sparkmirror.metrics.names": "jmx, strimzi", "sparkmirror.metrics.max.series": "7"}
    assert ExposureSettings.from_properties(given) == ExposureSettings(
        rule_sets=(RuleSet.JMX, RuleSet.STRIMZI), max_series=7
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sparkmirror.metrics.names", "strimzi,ibm"),
        ("sparkmirror.metrics.names", ""),
        ("sparkmirror.metrics.max.series", "0"),
    ],
)
def test_wrong_names_name_their_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        ExposureSettings.from_properties({key: value})


@pytest.mark.parametrize(
    "value", ["9404", "ftp://h:1", "http://h", "http://h:70000", "http://a:1,x"]
)
def test_a_wrong_listener_is_a_fault_of_the_file(value: str) -> None:
    [fault] = PROCESS_ADDITIONS.faults({"sparkmirror.metrics.listener": value})
    assert fault.key == "sparkmirror.metrics.listener"


@pytest.mark.parametrize("value", ["", "http://0.0.0.0:9404", "http://:9404, https://[::1]:9405"])
def test_a_right_listener_is_none(value: str) -> None:
    assert PROCESS_ADDITIONS.faults({"sparkmirror.metrics.listener": value}) == []
