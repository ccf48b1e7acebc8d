"""Counterfoils: what the driver keeps of the receipts that task attempts are to hand in.

An attempt hands in its receipts when it ends well, as rows of its epoch. One that dies hands in
nothing, and an epoch that fails takes the receipts of all its attempts with it; but what they had
appended is copied. So the driver keeps a counterfoil of every lease, from reports and, after an
unclean end, from what the takeover found:

    began ──▶ open ──Done──▶ handed in ──epoch landed──▶ forgotten
                └─────lost, or the epoch did not land──▶ unclaimed: the driver writes it itself

A counterfoil has fewer details than the receipt: no times of records, no lanes, and of what was
appended without a report no bytes. The driver's own death takes its counterfoils along.

Pure, but for the clock it is given.
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
    """A receipt that no attempt has handed in."""

    hello: Hello
    started_ms: int
    ended_ms: int
    receipt: Receipt


@dataclass(slots=True)
class _AttemptReceipts:
    """The counterfoils of one attempt."""

    started_ms: int
    ended_ms: int = -1
    is_lost: bool = False
    is_committed: bool | None = None
    """Whether its epoch has; None until that is over."""
    receipts: dict[TopicPartition, Receipt] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.ended_ms < 0


class PendingReceipts:
    """The counterfoils of all attempts whose receipts have not landed yet."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_attempt: dict[Hello, _AttemptReceipts] = {}

    def on_attempt_started(self, hello: Hello) -> None:
        """An attempt has come."""
        self._by_attempt[hello] = _AttemptReceipts(self._now_ms())

    def add(self, hello: Hello, place: TrackedPartition) -> None:
        """Account for what was copied of a place since that was done last.

        It may turn out later than everything else that a lost attempt had copied still more.
        """
        more = place.pop_receipt()
        if more is None:
            return
        if hello not in self._by_attempt:
            now_ms = self._now_ms()
            self._by_attempt[hello] = _AttemptReceipts(now_ms, ended_ms=now_ms, is_lost=True)
        receipts = self._by_attempt[hello].receipts
        before = receipts.get(place.source)
        receipts[place.source] = before.merged(more) if before else more

    def on_attempt_done(self, hello: Hello) -> None:
        """An attempt has ended well: its own receipts are on their way."""
        if stub := self._by_attempt.get(hello):
            stub.ended_ms = self._now_ms()

    def on_attempt_lost(self, hello: Hello) -> None:
        """An attempt went without a word; it hands in nothing."""
        if stub := self._by_attempt.get(hello):
            stub.ended_ms, stub.is_lost = self._now_ms(), True

    def close_epoch(self, epoch: int, *, landed: bool) -> list[MissingReceipt]:
        """An epoch is over, and its rows have landed or not; returns what nobody has claimed."""
        unclaimed: list[MissingReceipt] = []
        for hello, stub in list(self._by_attempt.items()):
            if hello.epoch > epoch:
                continue
            if stub.is_committed is None:
                stub.is_committed = landed
            if stub.is_open:
                continue  # its end is still in the inbox
            del self._by_attempt[hello]
            if stub.is_lost or not stub.is_committed:
                unclaimed += _missing_receipts(hello, stub)
        return unclaimed


def _missing_receipts(hello: Hello, stub: _AttemptReceipts) -> list[MissingReceipt]:
    return [
        MissingReceipt(
            hello=hello, started_ms=stub.started_ms, ended_ms=stub.ended_ms, receipt=receipt
        )
        for _, receipt in sorted(stub.receipts.items())
    ]
