"""Divides the receipts of a task attempt at the end of each epoch, while it copies on.

    driver ── EndEpoch ──▶ report, EpochEnded ──▶ driver ── EpochEndedAck ──▶ receipts of the epoch

The report before `EpochEnded` has everything that the receipts have, so the driver divides its own
record at the same batch. The receipts are returned only after the driver's answer: otherwise an
attempt that dies in between would leave receipts that the driver writes too. A task that is drained
ends after the answer: what it copied later belongs to the next epoch. A task that is not welcomed
yet has no receipts: it returns none at once (`driver_messages`), and the answer comes here, too.

Belongs to the task's thread. Knows no Spark and no rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import EpochEnded
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.copy.task.reports import TaskReporter

OnEpochEnded = Callable[[int, ReceiptCollector], None]
"""Gets an epoch that has ended, and the receipts of the attempt in it."""


def ignore_end(_epoch: int, _receipts: ReceiptCollector) -> None:
    """Keep no receipts."""


@dataclass(slots=True)
class EpochReceipts:
    """Ends epochs in the receipts of one attempt."""

    reporter: TaskReporter
    partitions: Collection[LeasedPartition]
    on_epoch_ended: OnEpochEnded = ignore_end
    _unacknowledged: deque[tuple[int, ReceiptCollector]] = field(default_factory=deque)

    @property
    def is_waiting(self) -> bool:
        """Whether an answer of the driver is missing, and so receipts are not returned yet."""
        return bool(self._unacknowledged)

    def end_epoch(self, epoch: int) -> None:
        """Report everything, and collect the receipts of the next epoch from now on."""
        self.reporter.send_report(self.partitions)
        self._unacknowledged.append((epoch, self.reporter.receipts))
        self.reporter.receipts = ReceiptCollector()
        self.reporter.send(EpochEnded(epoch=epoch))

    def on_ack(self, epoch: int) -> None:
        """Return the receipts of the epoch whose end the driver has acknowledged."""
        if self._unacknowledged and self._unacknowledged[0][0] == epoch:
            self.on_epoch_ended(*self._unacknowledged.popleft())
