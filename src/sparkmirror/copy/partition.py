"""One partition on its way: what was fetched, what is in flight, what is on the target.

    source log   | on the target | in flight | ready to send |  not fetched yet
                 .. position ....  flying ...    ready ....... fetched
    target log   .. expected ...  + their counts            = next_expected

Invariants, asserted:
    A  position <= first source offset of flying + ready <= fetched, in source order
    B  expected + records in flying + records in ready == next_expected
    C  a parcel is acknowledged only from the head, and only at the offset it was sealed for
    D  a parcel that was sent is sent again only unchanged, and only when no request holds it
    E  until the broker has taken a batch of this lease, only one is in flight: a broker that knows
       nothing of a producer takes any sequence as its first, so a second batch could overtake a
       first one that is refused

In exactly-once mode a parcel is sealed when it is sent, by the task's transaction, and lands
wherever the target puts it; `lease` then says where the partition stands for good, and moves with
every commit.

Knows no socket: the loop asks what may be sent and tells what became of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.transaction import Transaction
from sparkmirror.mirror.runs import Run
from sparkmirror.wire.forward import Producer

DEDUPLICATED = 5
"""How many batches per producer and partition a broker recognises when they come again."""


@dataclass(slots=True)
class Partition:
    """The state of copying one leased partition."""

    lease: Lease
    transaction: Transaction | None = None
    position: int = field(init=False)
    expected: int = field(init=False)
    fetched: int = field(init=False)
    next_expected: int = field(init=False)
    records: int = field(init=False)
    """Copied so far, by whoever had the partition before too."""
    ready: deque[Parcel] = field(init=False, default_factory=deque)
    flying: deque[Parcel] = field(init=False, default_factory=deque)
    queued_bytes: int = field(init=False, default=0)
    """Bytes fetched and not acknowledged."""
    requests: int = field(init=False, default=0)
    """How many unanswered requests hold a batch of this partition."""
    resending: bool = field(init=False, default=False)
    is_known: bool = field(init=False, default=False)
    """Whether the broker has taken a batch since the lease, or the last trouble, began."""
    _producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        self.position = self.fetched = self.lease.position
        self.expected = self.next_expected = self.lease.expected
        self.records = self.lease.records
        identity = self.lease.identity
        self._producer = Producer(producer_id=identity.producer_id, epoch=identity.producer_epoch)
        assert self.lease.is_transactional == (self.transaction is not None)
        self.is_known = self.transaction is not None and self.transaction.is_strict

    @property
    def is_idle(self) -> bool:
        """Whether everything fetched is on the target."""
        return not (self.ready or self.flying or self.requests)

    def arrived(self, parcel: Parcel) -> None:
        """Seal the next parcel of the source for the place where it must land, and queue it."""
        assert parcel.spans[0][0] >= self.fetched
        assert parcel.source_next > parcel.spans[-1][0]
        if self.transaction is None:
            sequence = self.lease.identity.sequence(self.next_expected)
            parcel.seal(self._producer, sequence, self.next_expected)
        self.ready.append(parcel)
        self.queued_bytes += parcel.size
        self.next_expected += parcel.count
        self.fetched = parcel.source_next

    def passed(self, source_next: int) -> None:
        """Advance over offsets that hold nothing to copy: markers, aborted or emptied batches."""
        assert source_next >= self.fetched
        self.fetched = source_next
        if not self.flying and not self.ready:
            self.position = source_next

    def next_to_send(self) -> Parcel | None:
        """Hand out the next parcel, if one may go now."""
        at_once = DEDUPLICATED if self.is_known else 1
        if self.resending or not self.ready or len(self.flying) >= at_once:
            return None
        if self.transaction and not self.transaction.seal(self.ready[0], self.lease.target):
            return None
        parcel = self.ready.popleft()
        parcel.doubts += 1
        self.flying.append(parcel)
        self.requests += 1
        return parcel

    def lands_at(self, parcel: Parcel, base_offset: int) -> bool:
        """Whether the oldest parcel may lie where the target says it does.

        In a transaction anything may lie before it: markers, aborted batches, other writers.
        """
        if self.transaction is None:
            return base_offset == parcel.expected
        if base_offset < self.expected:
            return False
        self.next_expected += base_offset - self.expected
        self.expected = parcel.expected = base_offset
        return True

    def acknowledged(self, parcel: Parcel) -> list[Run]:
        """Settle the oldest parcel in flight: it is on the target where it was meant to be."""
        assert self.flying[0] is parcel, "acknowledgements come in order"
        assert parcel.expected == self.expected
        self.flying.popleft()
        self.is_known = True
        self.expected += parcel.count
        self.records += parcel.count
        self.position = parcel.source_next
        if not self.flying and not self.ready:
            self.position = self.fetched
        self.queued_bytes -= parcel.size
        parcel.release()
        return parcel.runs()

    def settle(self, end: int, acknowledged: Callable[[Parcel, list[Run]], None]) -> int:
        """Acknowledge everything below a target offset that is known to be on the target."""
        settled = 0
        while self.flying and self.flying[0].expected + self.flying[0].count <= end:
            parcel = self.flying[0]
            acknowledged(parcel, self.acknowledged(parcel))
            settled += 1
        return settled

    def refused(self, parcel: Parcel) -> None:
        """Note that one request did not append a parcel, for certain."""
        assert parcel.doubts > 0
        parcel.doubts -= 1

    @property
    def is_certain(self) -> bool:
        """Whether nothing that is not acknowledged may be on the target."""
        return not any(parcel.is_doubtful for parcel in self.queue())

    def is_oldest(self, parcel: Parcel) -> bool:
        """Whether this parcel is the oldest one not acknowledged."""
        return bool(self.flying) and self.flying[0] is parcel

    def answered(self) -> None:
        """Count down: one request that held a batch of this partition is done, well or badly."""
        assert self.requests > 0
        self.requests -= 1
        if self.resending and self.requests == 0:
            self._line_up_again()

    def send_again(self) -> None:
        """Send everything in flight once more, in order, when no request holds any of it."""
        self.resending, self.is_known = True, False
        if self.requests == 0:
            self._line_up_again()

    def _line_up_again(self) -> None:
        self.ready.extendleft(reversed(self.flying))
        self.flying.clear()
        self.resending = False
        self.check()

    def drop_unsent(self) -> None:
        """Let go of what is certainly not on the target; the next owner will fetch it again."""
        while self.ready and not self.ready[-1].is_doubtful:
            parcel = self.ready.pop()
            if self.transaction and parcel.is_sealed:
                self.transaction.take_back(self.lease.target, parcel.count)
            self.queued_bytes -= parcel.size
            self.next_expected -= parcel.count
            parcel.release()
        newest = self.queue()
        self.fetched = newest[-1].source_next if newest else self.position
        self.check()

    # -- in transactions -------------------------------------------------------------------------

    @property
    def further(self) -> Lease:
        """The lease as far as acknowledgements say."""
        return self.lease.moved(self.position, self.expected, self.records)

    @property
    def standing(self) -> Lease:
        """The lease as far as copying stands for good."""
        return self.lease if self.transaction else self.further

    @property
    def has_sealed(self) -> bool:
        """Whether anything that was sent, or is about to be, is not acknowledged."""
        return bool(self.flying) or (bool(self.ready) and self.ready[0].is_sealed)

    @property
    def is_committed(self) -> bool:
        """Whether there is nothing for a transaction to commit."""
        at_rest = not self.requests and not self.has_sealed
        return self.transaction is None or (at_rest and self.position == self.lease.position)

    def committed(self, lease: Lease) -> None:
        """Everything up to here counts."""
        self.lease = lease

    def unseal(self) -> None:
        """Leave what was sealed and is certainly not on the target for the next transaction."""
        assert self.transaction
        assert not self.requests
        self._line_up_again()
        sealed = [parcel for parcel in self.ready if parcel.is_sealed]
        self.transaction.take_back(self.lease.target, sum(parcel.count for parcel in sealed))
        for parcel in sealed:
            parcel.unseal()

    def abandon(self) -> Lease:
        """Let go of everything that is not on the target; what remains is where copying stands."""
        for parcel in self.queue():
            parcel.release()
        self.flying.clear()
        self.ready.clear()
        self.queued_bytes = 0
        self.fetched, self.next_expected = self.position, self.expected
        return self.standing

    def queue(self) -> tuple[Parcel, ...]:
        """Everything that is not on the target yet, in order."""
        return (*self.flying, *self.ready)

    def check(self) -> None:
        """Assert invariants A and B."""
        queue = self.queue()
        assert self.expected + sum(parcel.count for parcel in queue) == self.next_expected
        at = self.position
        for parcel in queue:
            assert at <= parcel.spans[0][0]
            at = parcel.source_next
        assert at <= self.fetched
