"""The sentence for a file that names reporters of metrics."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.worker.metrics.metric_reporters_notice import reporters_notice
from sparkmirror.worker.mirror_maker import MirrorMaker

JMX = "org.apache.kafka.common.metrics.JmxReporter"
STRIMZI = "io.strimzi.kafka.metrics.prometheus.KafkaPrometheusMetricsReporter"


def test_a_reporter_is_named_once_with_where_the_metrics_are() -> None:
    given = {"metric.reporters": JMX, "A->B.metric.reporters": f"{JMX},{STRIMZI}"}
    notice = reporters_notice(given)
    assert notice.startswith("metric.reporters names JmxReporter, KafkaPrometheusMetricsReporter: ")
    assert "GET /metrics" in notice and "sparkmirror.metrics.listener" in notice


@pytest.mark.parametrize("given", [{}, {"metric.reporters": ""}, {"metrics.num.samples": "2"}])
def test_no_reporter_no_sentence(given: dict[str, str]) -> None:
    assert reporters_notice(given) == ""


def test_a_node_logs_the_sentence_once_and_accepts_the_keys_of_metrics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "listeners=http://127.0.0.1:0\nclusters=A,B\nA.bootstrap.servers=127.0.0.1:9\n"
        "B.bootstrap.servers=127.0.0.1:9\nA->B.enabled=true\n"
        f"metric.reporters={JMX}\nA.metric.reporters={JMX}\nB.metrics.num.samples=3\n"
        "B.metrics.sample.window.ms=1000\nB.metrics.recording.level=DEBUG\n"
    )
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    caplog.set_level(logging.INFO)
    node = MirrorMaker(MirrorMakerConfig.open(load_properties(file), variables), (), variables)
    node.rest.start()
    node.rest.stop(1.0)
    assert caplog.text.count("metric.reporters names JmxReporter") == 1
