"""Pending receipts: the driver's own record of receipts that task attempts have yet to write.

An attempt returns its receipts when it ends well, as rows of its epoch. An attempt that dies
returns none, and a failed epoch drops the rows of all its attempts; but the records they appended
are copied. So the driver keeps a receipt of every lease, from reports and, after an unclean end,
from the takeover:

    started ──▶ open ──Done──▶ returned ──epoch committed──▶ dropped
                  └──lost, or the epoch was not committed──▶ missing: the driver writes it

The driver's receipt has fewer details than the task's: no timestamps, no lanes, and no bytes for
records that were appended without a report. When the driver dies, its receipts are lost.

Pure, except for the clock that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.receipt import Receipt
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingReceipt:
    """A receipt that no attempt has written."""

    hello: Hello
    started_ms: int
    ended_ms: int
    receipt: Receipt


@dataclass(slots=True)
class _AttemptReceipts:
    """The receipts of one attempt."""

    started_ms: int
    ended_ms: int = -1
    is_lost: bool = False
    is_committed: bool | None = None
    """Whether its epoch was committed; None while the epoch runs."""
    receipts: dict[TopicPartition, Receipt] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.ended_ms < 0


class LostAttemptReceipts:
    """The receipts of all attempts whose epoch is not committed yet."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_attempt: dict[Hello, _AttemptReceipts] = {}

    def on_attempt_started(self, hello: Hello) -> None:
        """Open the receipts of an attempt."""
        self._by_attempt[hello] = _AttemptReceipts(self._now_ms())

    def add(self, hello: Hello, tracked: TrackedPartition) -> None:
        """Add what an attempt copied of a partition since the last call.

        A takeover may find records of a lost attempt after its epoch is closed.
        """
        more = tracked.pop_receipt()
        if more is None:
            return
        if hello not in self._by_attempt:
            now_ms = self._now_ms()
            self._by_attempt[hello] = _AttemptReceipts(now_ms, ended_ms=now_ms, is_lost=True)
        receipts = self._by_attempt[hello].receipts
        before = receipts.get(tracked.source)
        receipts[tracked.source] = before.merged(more) if before else more

    def on_attempt_done(self, hello: Hello) -> None:
        """Close the receipts of an attempt that ended well and returns its own."""
        if attempt := self._by_attempt.get(hello):
            attempt.ended_ms = self._now_ms()

    def on_attempt_lost(self, hello: Hello) -> None:
        """Close the receipts of an attempt that disappeared and returns none."""
        if attempt := self._by_attempt.get(hello):
            attempt.ended_ms, attempt.is_lost = self._now_ms(), True

    def close_epoch(self, epoch: int, *, succeeded: bool) -> list[MissingReceipt]:
        """End an epoch; returns the receipts that the driver must write.

        `succeeded`: whether the rows of the epoch were written.
        """
        missing: list[MissingReceipt] = []
        for hello, attempt in list(self._by_attempt.items()):
            if hello.epoch > epoch:
                continue
            if attempt.is_committed is None:
                attempt.is_committed = succeeded
            if attempt.is_open:
                continue  # its TaskDone is still in the conductor's inbox
            del self._by_attempt[hello]
            if attempt.is_lost or not attempt.is_committed:
                missing += _missing_receipts(hello, attempt)
        return missing


def _missing_receipts(hello: Hello, attempt: _AttemptReceipts) -> list[MissingReceipt]:
    return [
        MissingReceipt(
            hello=hello, started_ms=attempt.started_ms, ended_ms=attempt.ended_ms, receipt=receipt
        )
        for _, receipt in sorted(attempt.receipts.items())
    ]
