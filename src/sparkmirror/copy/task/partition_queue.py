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
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.task.transaction import Transaction
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.batch.forward import BatchProducer

MAX_IN_FLIGHT_BATCHES = 5
"""How many batches per producer and partition a broker recognises when they come again."""


@dataclass(slots=True)
class PartitionQueue:
    """The state of copying one leased partition."""

    lease: Lease
    transaction: Transaction | None = None
    position: int = field(init=False)
    expected: int = field(init=False)
    next_fetch_offset: int = field(init=False)
    next_expected: int = field(init=False)
    records: int = field(init=False)
    """Copied so far, by whoever had the partition before too."""
    ready: deque[PendingBatch] = field(init=False, default_factory=deque)
    in_flight: deque[PendingBatch] = field(init=False, default_factory=deque)
    queued_bytes: int = field(init=False, default=0)
    """Bytes fetched and not acknowledged."""
    open_requests: int = field(init=False, default=0)
    """How many unanswered requests hold a batch of this partition."""
    is_resending: bool = field(init=False, default=False)
    is_producer_known: bool = field(init=False, default=False)
    """Whether the broker has taken a batch since the lease, or the last trouble, began."""
    _producer: BatchProducer = field(init=False)

    def __post_init__(self) -> None:
        self.position = self.next_fetch_offset = self.lease.position
        self.expected = self.next_expected = self.lease.expected
        self.records = self.lease.records
        identity = self.lease.identity
        self._producer = BatchProducer(
            producer_id=identity.producer_id, epoch=identity.producer_epoch
        )
        assert self.lease.is_transactional == (self.transaction is not None)
        self.is_producer_known = self.transaction is not None and self.transaction.is_transaction_v2

    @property
    def is_idle(self) -> bool:
        """Whether everything fetched is on the target."""
        return not (self.ready or self.in_flight or self.open_requests)

    def enqueue(self, parcel: PendingBatch) -> None:
        """Seal the next parcel of the source for the place where it must land, and queue it."""
        assert parcel.spans[0][0] >= self.next_fetch_offset
        assert parcel.next_source_offset > parcel.spans[-1][0]
        if self.transaction is None:
            sequence = self.lease.identity.sequence_for(self.next_expected)
            parcel.set_producer_state(self._producer, sequence, self.next_expected)
        self.ready.append(parcel)
        self.queued_bytes += parcel.size
        self.next_expected += parcel.record_count
        self.next_fetch_offset = parcel.next_source_offset

    def skip_to(self, source_next: int) -> None:
        """Advance over offsets that hold nothing to copy: markers, aborted or emptied batches."""
        assert source_next >= self.next_fetch_offset
        self.next_fetch_offset = source_next
        if not self.in_flight and not self.ready:
            self.position = source_next

    def next_to_send(self) -> PendingBatch | None:
        """Hand out the next parcel, if one may go now."""
        at_once = MAX_IN_FLIGHT_BATCHES if self.is_producer_known else 1
        if self.is_resending or not self.ready or len(self.in_flight) >= at_once:
            return None
        if self.transaction and not self.transaction.assign_sequence(
            self.ready[0], self.lease.target
        ):
            return None
        parcel = self.ready.popleft()
        parcel.ambiguous_sends += 1
        self.in_flight.append(parcel)
        self.open_requests += 1
        return parcel

    def accept_base_offset(self, parcel: PendingBatch, base_offset: int) -> bool:
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

    def acknowledge(self, parcel: PendingBatch) -> list[OffsetRun]:
        """Settle the oldest parcel in flight: it is on the target where it was meant to be."""
        assert self.in_flight[0] is parcel, "acknowledgements come in order"
        assert parcel.expected == self.expected
        self.in_flight.popleft()
        self.is_producer_known = True
        self.expected += parcel.record_count
        self.records += parcel.record_count
        self.position = parcel.next_source_offset
        if not self.in_flight and not self.ready:
            self.position = self.next_fetch_offset
        self.queued_bytes -= parcel.size
        parcel.release()
        return parcel.runs()

    def acknowledge_up_to(
        self, end: int, acknowledged: Callable[[PendingBatch, list[OffsetRun]], None]
    ) -> int:
        """Acknowledge everything below a target offset that is known to be on the target."""
        settled = 0
        while self.in_flight and self.in_flight[0].expected + self.in_flight[0].record_count <= end:
            parcel = self.in_flight[0]
            acknowledged(parcel, self.acknowledge(parcel))
            settled += 1
        return settled

    def mark_not_appended(self, parcel: PendingBatch) -> None:
        """Note that one request did not append a parcel, for certain."""
        assert parcel.ambiguous_sends > 0
        parcel.ambiguous_sends -= 1

    @property
    def is_unambiguous(self) -> bool:
        """Whether nothing that is not acknowledged may be on the target."""
        return not any(parcel.is_ambiguous for parcel in self.unacknowledged())

    def is_oldest_in_flight(self, parcel: PendingBatch) -> bool:
        """Whether this parcel is the oldest one not acknowledged."""
        return bool(self.in_flight) and self.in_flight[0] is parcel

    def on_request_done(self) -> None:
        """Count down: one request that held a batch of this partition is done, well or badly."""
        assert self.open_requests > 0
        self.open_requests -= 1
        if self.is_resending and self.open_requests == 0:
            self._requeue_in_flight()

    def resend_in_flight(self) -> None:
        """Send everything in flight once more, in order, when no request holds any of it."""
        self.is_resending, self.is_producer_known = True, False
        if self.open_requests == 0:
            self._requeue_in_flight()

    def _requeue_in_flight(self) -> None:
        self.ready.extendleft(reversed(self.in_flight))
        self.in_flight.clear()
        self.is_resending = False
        self.check_invariants()

    def drop_unsent(self) -> None:
        """Let go of what is certainly not on the target; the next owner will fetch it again."""
        while self.ready and not self.ready[-1].is_ambiguous:
            parcel = self.ready.pop()
            if self.transaction and parcel.has_sequence:
                self.transaction.rewind_sequence(self.lease.target, parcel.record_count)
            self.queued_bytes -= parcel.size
            self.next_expected -= parcel.record_count
            parcel.release()
        newest = self.unacknowledged()
        self.next_fetch_offset = newest[-1].next_source_offset if newest else self.position
        self.check_invariants()

    # -- in transactions -------------------------------------------------------------------------

    @property
    def acknowledged_lease(self) -> Lease:
        """The lease as far as acknowledgements say."""
        return self.lease.advanced_to(self.position, self.expected, self.records)

    @property
    def durable_lease(self) -> Lease:
        """The lease as far as copying stands for good."""
        return self.lease if self.transaction else self.acknowledged_lease

    @property
    def has_sequenced_batches(self) -> bool:
        """Whether anything that was sent, or is about to be, is not acknowledged."""
        return bool(self.in_flight) or (bool(self.ready) and self.ready[0].has_sequence)

    @property
    def is_committed(self) -> bool:
        """Whether there is nothing for a transaction to commit."""
        at_rest = not self.open_requests and not self.has_sequenced_batches
        return self.transaction is None or (at_rest and self.position == self.lease.position)

    def on_committed(self, lease: Lease) -> None:
        """Everything up to here counts."""
        self.lease = lease

    def reset_unappended(self) -> None:
        """Leave what was sealed and is certainly not on the target for the next transaction."""
        assert self.transaction
        assert not self.open_requests
        self._requeue_in_flight()
        sealed = [parcel for parcel in self.ready if parcel.has_sequence]
        self.transaction.rewind_sequence(
            self.lease.target, sum(parcel.record_count for parcel in sealed)
        )
        for parcel in sealed:
            parcel.reset_producer_state()

    def abandon(self) -> Lease:
        """Let go of everything that is not on the target; what remains is where copying stands."""
        for parcel in self.unacknowledged():
            parcel.release()
        self.in_flight.clear()
        self.ready.clear()
        self.queued_bytes = 0
        self.next_fetch_offset, self.next_expected = self.position, self.expected
        return self.durable_lease

    def unacknowledged(self) -> tuple[PendingBatch, ...]:
        """Everything that is not on the target yet, in order."""
        return (*self.in_flight, *self.ready)

    def check_invariants(self) -> None:
        """Assert invariants A and B."""
        queue = self.unacknowledged()
        assert self.expected + sum(parcel.record_count for parcel in queue) == self.next_expected
        at = self.position
        for parcel in queue:
            assert at <= parcel.spans[0][0]
            at = parcel.next_source_offset
        assert at <= self.next_fetch_offset
