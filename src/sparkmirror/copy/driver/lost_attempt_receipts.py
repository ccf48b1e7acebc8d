"""Pending receipts: the driver's own record of receipts that task attempts have yet to return.

An attempt returns its receipts at the end of each epoch that it copies in, as rows of that epoch.
An attempt that dies returns none, a Spark task that fails returns none, and a failed epoch drops
the rows of all attempts; but the records they appended are copied. So the driver keeps a receipt of
every lease, from reports and, after an unclean end, from the takeover:

    started ──▶ open ──Done, lost, or the epoch ended──▶ ended ──its rows have come──▶ dropped
                                                           └──they have not──▶ missing: written

An attempt may outlive its epoch. Its message that the epoch has ended divides the receipts: what it
reported before belongs to that epoch, what it reports later to the next one.

The driver's receipt has fewer details than the task's: no timestamps, no lanes, and no bytes for
records that were appended without a report. When the driver dies, its receipts are lost.

Pure, except for the clock that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.receipt import AttemptEpoch, Receipt
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingReceipt:
    """A receipt that no attempt has returned."""

    hello: Hello
    """The hello of the attempt, with the epoch of the receipt."""
    started_ms: int
    ended_ms: int
    receipt: Receipt


@dataclass(slots=True)
class _EpochReceipts:
    """The receipts of one attempt in one epoch."""

    started_ms: int
    ended_ms: int = -1
    is_returned: bool = False
    """Whether the rows of the attempt have come with those of the epoch."""
    receipts: dict[TopicPartition, Receipt] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.ended_ms < 0


class LostAttemptReceipts:
    """The receipts of all attempts that are open, or whose epoch is not closed yet."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_attempt: dict[Hello, _EpochReceipts] = {}
        """By the hello of the attempt, with the epoch of the receipts."""
        self._current: dict[Hello, Hello] = {}
        """For attempts that have outlived an epoch: their key in the epoch that they copy in."""

    def on_attempt_started(self, hello: Hello) -> None:
        """Open the receipts of an attempt."""
        self._by_attempt[hello] = _EpochReceipts(self._now_ms())

    def add(self, hello: Hello, tracked: TrackedPartition) -> None:
        """Add what an attempt copied of a partition since the last call.

        A takeover may find records of a lost attempt after its epoch is closed.
        """
        more = tracked.pop_receipt()
        if more is None:
            return
        key = self._current.get(hello, hello)
        if key not in self._by_attempt:
            now_ms = self._now_ms()
            self._by_attempt[key] = _EpochReceipts(now_ms, ended_ms=now_ms)
        receipts = self._by_attempt[key].receipts
        before = receipts.get(tracked.source)
        receipts[tracked.source] = before.merged(more) if before else more

    def on_epoch_ended(self, hello: Hello) -> None:
        """Close the receipts of an attempt that goes on in the next epoch, and open the next."""
        key = self._current.get(hello, hello)
        if attempt := self._by_attempt.get(key):
            attempt.ended_ms = self._now_ms()
            later = self._current[hello] = replace(key, epoch=key.epoch + 1, retry=0)
            self._by_attempt[later] = _EpochReceipts(attempt.ended_ms)

    def on_attempt_ended(self, hello: Hello) -> None:
        """Close the receipts of an attempt that is done, or lost."""
        if attempt := self._by_attempt.get(self._current.get(hello, hello)):
            attempt.ended_ms = self._now_ms()

    def close_epoch(self, epoch: int, returned: Collection[AttemptEpoch]) -> list[MissingReceipt]:
        """End an epoch; returns the receipts that the driver must write.

        `returned` has the attempts whose rows have come with those of the epoch.
        """
        missing: list[MissingReceipt] = []
        for key, attempt in list(self._by_attempt.items()):
            if key.epoch > epoch:
                continue
            attempt.is_returned |= AttemptEpoch(key.epoch, key.attempt) in returned
            if attempt.is_open:
                continue  # the message that ends it is still in the conductor's inbox
            del self._by_attempt[key]
            if not attempt.is_returned:
                missing += _missing_receipts(key, attempt)
        self._current = {
            hello: key for hello, key in self._current.items() if key in self._by_attempt
        }
        return missing


def _missing_receipts(hello: Hello, attempt: _EpochReceipts) -> list[MissingReceipt]:
    return [
        MissingReceipt(
            hello=hello, started_ms=attempt.started_ms, ended_ms=attempt.ended_ms, receipt=receipt
        )
        for _, receipt in sorted(attempt.receipts.items())
    ]
