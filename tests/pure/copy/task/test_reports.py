"""When a task reports."""

from __future__ import annotations

from sparkmirror.copy.control.messages import ControlMessage, ProgressReport
from sparkmirror.copy.task.leased_partition import REACHABLE
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.reports import TaskReporter
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
    assert reports_at(13.0) == [False], "news is not delayed"
    assert reports_at(14.0) == []
    assert reports_at(15.0) == [True]
