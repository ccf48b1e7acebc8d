"""The end of an epoch divides the receipts of a task, which then wait for the driver's answer."""

from __future__ import annotations

from sparkmirror.copy.control.messages import ControlMessage, EpochEnded, ProgressReport
from sparkmirror.copy.task.leased_partition import REACHABLE
from sparkmirror.copy.task.receipts.epoch_receipts import EpochReceipts
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.copy.task.reports import TaskReporter


def test_receipts_are_divided_behind_a_report_and_returned_after_the_answer() -> None:
    sent: list[ControlMessage] = []
    ended: list[tuple[int, ReceiptCollector]] = []
    reporter = TaskReporter(1.0, sent.append, lambda _: REACHABLE)
    receipts = EpochReceipts(reporter, (), lambda *end: ended.append(end))
    collectors = []
    for epoch in (4, 5):
        collectors.append(reporter.receipts)
        receipts.end_epoch(epoch)
    assert [type(message) for message in sent] == [ProgressReport, EpochEnded] * 2
    assert [message for message in sent if isinstance(message, EpochEnded)] == [
        EpochEnded(epoch=4),
        EpochEnded(epoch=5),
    ]
    assert ended == [], "the driver may not have it"
    receipts.on_ack(3)
    assert ended == [], "the task ended that epoch before its welcome"
    receipts.on_ack(4)
    assert ended == [(4, collectors[0])]
    receipts.on_ack(5)
    assert [epoch for epoch, _ in ended] == [4, 5]
    assert all(one is not reporter.receipts for one in collectors)
    receipts.on_ack(6)
    assert len(ended) == 2, "an answer without a question changes nothing"
