"""The class archive: brokers with a fast start and tools use it."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.lab.class_archive_builder import ensure_archive
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.kafka.class_archive import archive_options
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from tests.support.kafka.clusters import StartCluster


def test_a_broker_maps_the_archive_into_its_memory(start_cluster: StartCluster) -> None:
    archive = ensure_archive()
    assert ensure_archive() == archive
    broker = start_cluster(ClusterSpec(name="archived", fast_start=True)).broker(1)
    mapped = Path(f"/proc/{broker.pid}/maps").read_text("utf-8")
    assert archive is None or str(archive) in mapped, "None: this Java writes no archives"


def test_a_tool_uses_the_archive_and_prints_only_its_answer() -> None:
    archive = ensure_archive()
    tools = KafkaToolRunner()
    assert archive is None or set(archive_options(archive)) <= {*tools.command("kafka-topics", ())}
    assert tools.run("kafka-topics", ["--version"]).startswith(tools.version)
