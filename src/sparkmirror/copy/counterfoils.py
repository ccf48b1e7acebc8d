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

from sparkmirror.copy.messages import Hello
from sparkmirror.copy.place import Place
from sparkmirror.copy.receipt import Receipt
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclaimed:
    """A receipt that no attempt has handed in."""

    hello: Hello
    started_ms: int
    ended_ms: int
    receipt: Receipt


@dataclass(slots=True)
class _Stub:
    """The counterfoils of one attempt."""

    started_ms: int
    ended_ms: int = -1
    is_lost: bool = False
    has_landed: bool | None = None
    """Whether its epoch has; None until that is over."""
    receipts: dict[TopicPartition, Receipt] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.ended_ms < 0


class Counterfoils:
    """The counterfoils of all attempts whose receipts have not landed yet."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._stubs: dict[Hello, _Stub] = {}

    def began(self, hello: Hello) -> None:
        """An attempt has come."""
        self._stubs[hello] = _Stub(self._now_ms())

    def add(self, hello: Hello, place: Place) -> None:
        """Account for what was copied of a place since that was done last.

        It may turn out later than everything else that a lost attempt had copied still more.
        """
        more = place.take_receipt()
        if more is None:
            return
        if hello not in self._stubs:
            now_ms = self._now_ms()
            self._stubs[hello] = _Stub(now_ms, ended_ms=now_ms, is_lost=True)
        receipts = self._stubs[hello].receipts
        before = receipts.get(place.source)
        receipts[place.source] = before.extended(more) if before else more

    def handed_in(self, hello: Hello) -> None:
        """An attempt has ended well: its own receipts are on their way."""
        if stub := self._stubs.get(hello):
            stub.ended_ms = self._now_ms()

    def lost(self, hello: Hello) -> None:
        """An attempt went without a word; it hands in nothing."""
        if stub := self._stubs.get(hello):
            stub.ended_ms, stub.is_lost = self._now_ms(), True

    def close(self, epoch: int, *, landed: bool) -> list[Unclaimed]:
        """An epoch is over, and its rows have landed or not; returns what nobody has claimed."""
        unclaimed: list[Unclaimed] = []
        for hello, stub in list(self._stubs.items()):
            if hello.epoch > epoch:
                continue
            if stub.has_landed is None:
                stub.has_landed = landed
            if stub.is_open:
                continue  # its end is still in the inbox
            del self._stubs[hello]
            if stub.is_lost or not stub.has_landed:
                unclaimed += _of(hello, stub)
        return unclaimed


def _of(hello: Hello, stub: _Stub) -> list[Unclaimed]:
    return [
        Unclaimed(hello=hello, started_ms=stub.started_ms, ended_ms=stub.ended_ms, receipt=receipt)
        for _, receipt in sorted(stub.receipts.items())
    ]
