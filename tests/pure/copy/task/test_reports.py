"""When a task reports."""

from __future__ import annotations

import random

import pytest

from sparkmirror.copy.control.messages import ControlMessage, ProgressReport
from sparkmirror.copy.task.leased_partition import REACHABLE
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.reports import (
    MAX_RUNS_PER_PARTITION,
    MAX_RUNS_PER_REPORT,
    ReportCounts,
    TaskReporter,
    largest_share,
)
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.mirror.offsets.run_map_segments import SegmentedRunMap
from tests.support.copy.pending_batches import make_lease, make_partition


def test_a_report_without_news_is_sent_only_to_renew_the_lease() -> None:
    sent: list[ControlMessage] = []
    reporter = TaskReporter(1.0, sent.append, lambda _: REACHABLE)
    partition = make_partition(PartitionQueue(make_lease(position=0)))

    def reports_at(*moments: float) -> list[bool]:
        """Report at these moments; return for each report that was sent whether it is empty."""
        sent.clear()
        for moment in moments:
            reporter.send_report_if_due([partition], moment)
        return [report.is_empty for report in sent if isinstance(report, ProgressReport)]

    assert reports_at(10.0) == [False], "the driver does not know the partition yet"
    assert reports_at(10.5, 11.0) == []
    assert reports_at(12.0) == [True], "it renews the lease"
    partition.end_offset = 7
    reporter.changed.add(partition)
    assert reports_at(13.0) == [False], "news is not delayed"
    assert reports_at(14.0) == []
    assert reports_at(15.0) == [True]


def test_a_task_without_news_wakes_only_for_the_renewal_or_renews_when_it_is_awake() -> None:
    sent: list[ControlMessage] = []
    reporter = TaskReporter(1.0, sent.append, lambda _: REACHABLE)
    partition = make_partition(PartitionQueue(make_lease(position=0)))

    def next_turn_after(moment: float) -> float:
        reporter.send_report_if_due([partition], moment)
        return reporter.next_turn_at

    assert next_turn_after(10.0) == 12.0
    assert next_turn_after(10.3) == 12.0, "nothing has changed"
    reporter.changed.add(partition)
    assert next_turn_after(10.4) == 11.0, "an event may have brought news"
    assert next_turn_after(11.0) == 12.0
    assert len(sent) == 1
    assert next_turn_after(11.74) == 12.0, "it is too early to renew the lease"
    assert next_turn_after(12.0) == 14.0
    assert len(sent) == 2
    assert next_turn_after(13.8) == 15.8, "an answer has woken the task: it renews the lease"
    assert len(sent) == 3
    assert next_turn_after(15.0) == 15.8
    assert next_turn_after(15.6) == 17.6, "a report was considered, and the lease is still due"
    assert len(sent) == 4


def test_ages_and_suppressed_records_are_reported_once() -> None:
    sent: list[ControlMessage] = []
    reporter = TaskReporter(1.0, sent.append, lambda _: REACHABLE)
    partition = make_partition(PartitionQueue(make_lease(position=0)))
    partition.converter.ages.add(1, 1, 3, now_ms=11)
    partition.latencies.add(1, 1, 2, now_ms=21)
    partition.suppressed = 4
    reporter.send_report([partition])
    reporter.send_report([partition])
    first, second = (one for one in sent if isinstance(one, ProgressReport))
    assert first.ages[partition.key].fetched.total_ms == 3 * 10
    assert first.ages[partition.key].acknowledged.total_ms == 2 * 20
    assert first.suppressed == {partition.key: 4}
    assert second.is_empty and not second.ages


@pytest.mark.parametrize("partitions", [1, 20])
@pytest.mark.parametrize("share", [None, 0.5, 0.9], ids=["alternating", "half", "most"])
def test_a_report_has_a_bounded_number_of_runs_however_many_records_a_filter_drops(
    partitions: int, share: float | None
) -> None:
    counts, chosen = ReportCounts(), random.Random(7)
    ends: dict[str, tuple[int, int]] = {}
    for number in range(partitions):
        kept = [n for n in range(6_000) if n % 2 if share is None or chosen.random() < share]
        runs = [OffsetRun(offset, target, 1) for target, offset in enumerate(kept)]
        for first in range(0, len(runs), 500):
            counts.add(f"t-{number}", runs[first : first + 500], 1)
        ends[f"t-{number}"] = (kept[-1] + 1, len(kept))
    bounded = counts.bounded_runs()
    assert len(bounded) <= MAX_RUNS_PER_REPORT
    for key, end in ends.items():
        of_partition = [run for one, *run in bounded if one == key]
        assert 0 < len(of_partition) <= MAX_RUNS_PER_PARTITION
        run_map = SegmentedRunMap()
        for source_first, target_first, length in of_partition:
            run_map.append(source_first, target_first, length)
        assert (run_map.source_end, run_map.target_end) == end


def test_a_partition_with_few_runs_keeps_them_beside_others_with_many() -> None:
    counts = ReportCounts()
    for number in range(2 * MAX_RUNS_PER_PARTITION):
        counts.add(f"small-{number}", [OffsetRun(0, 0, 1)], 1)
    few = [OffsetRun(2 * n, n, 1) for n in range(30)]
    counts.add("few-0", few, 1)
    assert len(counts.bounded_runs()) == len(counts.runs), "there is room for all of them"
    for number in range(10):
        many = [OffsetRun(2 * n, n, 1) for n in range(MAX_RUNS_PER_PARTITION)]
        counts.add(f"many-{number}", many, 1)
    bounded = counts.bounded_runs()
    assert len(bounded) <= MAX_RUNS_PER_REPORT
    assert [run for key, *run in bounded if key == "few-0"] == [list(run) for run in few]


@pytest.mark.parametrize(
    ("counts", "share"), [([1], 1), ([10], 7), ([1, 1, 10], 5), ([4, 4], 3), ([1] * 9, 1)]
)
def test_the_share_of_partitions_with_many_runs(counts: list[int], share: int) -> None:
    assert largest_share(counts, 7) == share


def test_a_report_with_few_runs_has_them_as_they_are() -> None:
    counts = ReportCounts()
    for key in ("t-0", "t-1"):
        counts.add(key, [OffsetRun(2 * n, n, 1) for n in range(MAX_RUNS_PER_PARTITION)], 1)
    assert sorted(counts.bounded_runs()) == sorted(counts.runs)
