"""The figures of consumer groups."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import CheckpointKey
from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.mirror.offsets.checkpoints import CheckpointOutcome
from sparkmirror.mirror.offsets.offset_translation import TranslationOutcome
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail, MetricsSettings
from tests.support.exposed_series import series, series_of

NAME = "MirrorCheckpointConnector"


def report(
    group: str, partition: int, translated: str, upstream: int | None = 5
) -> GroupPartitionReport:
    return GroupPartitionReport(
        group=group,
        partition=TopicPartition("t", partition),
        remote=TopicPartition("A.t", partition),
        upstream=upstream,
        downstream=None,
        checkpoint=CheckpointOutcome.EMITTED.value,
        translated=translated,
    )


def test_partitions_of_a_group_are_counted_by_translation() -> None:
    monitor = WorkerMonitor()
    reports = monitor.for_flow("A->B.").group_reports
    exact, nearest = TranslationOutcome.RUN_MAP.value, TranslationOutcome.OFFSET_SYNC.value
    reports.update(
        NAME,
        "billing",
        [
            report("billing", 0, exact),
            report("billing", 1, exact),
            report("billing", 2, nearest),
            report("billing", 3, TranslationOutcome.NO_SYNC.value),
            report("billing", 4, "", upstream=None),
            replace(report("billing", 5, ""), remote=None),
        ],
    )
    reports.update(NAME, "a:b", [report("a:b", 0, TranslationOutcome.TOO_OLD.value)])
    connector = f'"A->B.{NAME}"'
    assert series_of(monitor.figures()) == {
        series(
            "sparkmirror_group_partitions",
            connector=connector,
            group=group,
            translation=translation,
        ): count
        for group, translation, count in (
            ("billing", "exact", 2),
            ("billing", "offset-sync", 1),
            ("billing", "none", 1),
            ('"a:b"', "none", 1),
        )
    }


def test_a_group_that_is_no_longer_followed_has_no_figures() -> None:
    monitor = WorkerMonitor()
    reports = monitor.for_flow().group_reports
    reports.update(NAME, "billing", [report("billing", 0, TranslationOutcome.RUN_MAP.value)])
    reports.remove(NAME, ["billing"])
    assert monitor.figures() == []


def test_checkpoint_latency_is_of_a_topic_or_of_each_partition_on_request() -> None:
    for detail, labels in (
        (MetricsDetail.TOPIC, ({},)),
        (MetricsDetail.PARTITION, ({"partition": "0"}, {"partition": "1"})),
    ):
        monitor = WorkerMonitor()
        flow = monitor.for_flow(metrics=MetricsSettings(detail=detail))
        for number, latency_ms in ((0, 10.0), (1, 30.0)):
            partition = TopicPartition("A.t", number)
            key = CheckpointKey(NAME, SourceAndTarget("A", "B"), "billing", partition)
            flow.group_reports.latencies.record([key], latency_ms)
        found = series_of(monitor.figures())
        prefix = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
        base = {"source": "A", "target": "B", "group": "billing", "topic": "A.t"}
        assert found.keys() == {
            series(prefix + suffix, **base, **each)
            for each in labels
            for suffix in ("", "_avg", "_min", "_max")
        }
        if detail is MetricsDetail.TOPIC:
            values = [found[series(prefix + end, **base)] for end in ("", "_avg", "_min", "_max")]
            assert values == [30, 20, 10, 30]
