"""The figures of consumer groups."""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.mirror.offsets.checkpoints import CheckpointOutcome
from sparkmirror.mirror.offsets.offset_translation import TranslationOutcome
from sparkmirror.model import TopicPartition
from sparkmirror.worker.connector_progress import WorkerMonitor
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
