"""What drivers have copied, added up across drivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparkmirror.copy.offset_commits import OffsetCommits
from sparkmirror.copy.record_ages import AgeSummary, RecordAges
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.model import TopicPartition
from sparkmirror.worker.metrics.copied_counts import ConnectorCounts, CopiedCounts
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail, MetricsSettings
from sparkmirror.worker.metrics.topic_labels import WHOLE_TOPIC

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = TopicPartition("t", WHOLE_TOPIC)


def view(position: int, *, copied: int = 0, size: int = 0, end: int = 1000) -> PartitionView:
    return PartitionView(
        remote="A.t",
        task=0,
        state="leased",
        position=position,
        end=end,
        records=position + 7,
        bytes=size,
        copied=copied,
    )


def counts_after(
    *snapshots: Mapping[TopicPartition, PartitionView],
    detail: MetricsDetail = MetricsDetail.TOPIC,
) -> Mapping[TopicPartition, CopiedCounts]:
    counts = ConnectorCounts(MetricsSettings(detail=detail))
    counts.on_plan({T0: 0, T1: 0})
    for second, views in enumerate(snapshots):
        partitions = {str(partition): one for partition, one in views.items()}
        counts.on_snapshot(CopySnapshot(partitions=partitions), second * 1000.0, 100.0 + second)
    return counts.counts()


def test_planned_partitions_begin_with_zero() -> None:
    found = counts_after()
    assert (found[TOPIC].records, found[TOPIC].bytes) == (0, 0)
    assert found[TOPIC].last_progress_s is None


def test_records_and_bytes_are_those_that_the_drivers_of_this_worker_copied() -> None:
    found = counts_after(
        {T0: view(-1), T1: view(-1)},
        {T0: view(500, copied=5, size=7), T1: view(-1)},
        {T0: view(510, copied=13, size=9), T1: view(40)},
        {T0: view(510, copied=13, size=9), T1: view(41, copied=1, size=1)},
    )[TOPIC]
    assert (found.records, found.bytes) == (14, 10)
    assert found.record_rate.sum(3000.0) == 14
    assert found.byte_rate.sum(3000.0) == 10
    assert found.position_rate.sum(3000.0) == 5 + 10 + 1
    assert found.last_progress_s == 103.0


def test_a_resumed_partition_has_made_no_progress_yet() -> None:
    found = counts_after({T0: view(-1)}, {T0: view(500)}, {T0: view(500)})[TOPIC]
    assert (found.records, found.last_progress_s) == (0, None)
    assert found.position_rate.sum(2000.0) == 0


def test_a_partition_whose_records_are_all_dropped_makes_progress() -> None:
    dropped = replace(view(509), filtered=9)
    found = counts_after({T0: view(500)}, {T0: dropped}, {T0: replace(dropped, position=600)})[
        TOPIC
    ]
    assert (found.records, found.last_progress_s) == (0, 101.0)
    assert found.position_rate.sum(2000.0) == 9


def test_another_driver_begins_with_its_own_counts() -> None:
    found = counts_after(
        {T0: view(10, copied=10, size=100)},
        {T0: view(20, copied=20, size=200)},
        {T0: view(-1)},
        {T0: view(25, copied=5, size=30)},
    )[TOPIC]
    assert (found.records, found.bytes) == (25, 230)


def test_growth_of_the_source_is_counted_while_both_ends_are_known() -> None:
    found = counts_after(
        {T0: view(0, end=-1)}, {T0: view(0, end=50)}, {T0: view(0, end=70)}, {T0: view(0, end=60)}
    )[TOPIC]
    assert found.end_rate.sum(3000.0) == 20


def test_each_partition_has_its_own_counts_on_request() -> None:
    found = counts_after(
        {T0: view(0), T1: view(0)},
        {T0: view(1, copied=1), T1: view(2, copied=2)},
        detail=MetricsDetail.PARTITION,
    )
    assert {key: one.records for key, one in found.items()} == {T0: 1, T1: 2}


def test_a_partition_that_leaves_and_comes_back_begins_again() -> None:
    counts = ConnectorCounts(MetricsSettings())
    counts.on_plan({T0: 0})
    counts.on_snapshot(CopySnapshot(partitions={"t-0": view(4, copied=4)}), 0.0, 0.0)
    counts.on_plan({T1: 0})
    counts.on_snapshot(CopySnapshot(partitions={"t-0": view(4, copied=4)}), 0.0, 0.0)
    assert counts.counts()[TOPIC].records == 4
    counts.on_plan({T0: 0, T1: 0})
    counts.on_snapshot(CopySnapshot(partitions={"t-0": view(900, copied=1)}), 1.0, 1.0)
    assert counts.counts()[TOPIC].records == 5
    assert counts.counts()[TOPIC].position_rate.sum(1.0) == 5


def test_a_status_of_a_partition_that_is_not_planned_counts_nothing() -> None:
    found = counts_after({TopicPartition("other", 0): view(5, size=5)})
    assert found.keys() == {TOPIC}


def test_lanes_are_added_up_across_drivers() -> None:
    counts = ConnectorCounts(MetricsSettings())
    for lanes in ({"plain": 5}, {"plain": 8, "merged": 2}, {}, {"plain": 1}):
        counts.on_snapshot(CopySnapshot(lanes={"t": lanes} if lanes else {}), 0.0, 0.0)
    assert counts.lane_batches == {("t", "plain"): 9, ("t", "merged"): 2}


def test_each_task_has_its_fetched_copied_and_active_records() -> None:
    def of_task(task: int, active: int, copied: int, fetched: int) -> PartitionView:
        ages = RecordAges(fetched=AgeSummary(records=fetched))
        return replace(
            view(10, copied=copied, size=copied * 10), task=task, active=active, ages=ages
        )

    counts = ConnectorCounts(MetricsSettings())
    counts.on_plan({T0: 0, T1: 1})
    for second, views in enumerate(
        (
            {T0: of_task(0, 4, 1, 5), T1: of_task(1, 2, 3, 5)},
            {T0: of_task(0, 0, 5, 5), T1: of_task(1, 6, 3, 9)},
        )
    ):
        partitions = {str(partition): one for partition, one in views.items()}
        counts.on_snapshot(CopySnapshot(partitions=partitions), second * 1000.0, 100.0)
    first, second_task = counts.tasks[0], counts.tasks[1]
    assert (first.fetched, first.records, first.bytes) == (5, 5, 50)
    assert (second_task.fetched, second_task.records) == (9, 3)
    assert first.active.values(1000.0).highest == 4
    assert first.active.values(1000.0).average == 2
    assert second_task.active.values(1000.0).highest == 6


def test_failed_writes_of_offsets_count_beside_those_that_succeeded() -> None:
    counts = ConnectorCounts(MetricsSettings())
    for commits in (OffsetCommits(3, 1, 30, 20), OffsetCommits(3, 1, 30, 20), OffsetCommits(1, 0)):
        counts.on_snapshot(CopySnapshot(commits=commits), 0.0, 0.0)
    found = counts.commit_outcomes.values(0.0)
    assert (found.count, found.total) == (5, 4)
