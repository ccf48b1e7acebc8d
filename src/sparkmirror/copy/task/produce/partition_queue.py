"""The queue of one leased partition: batches that are fetched, in flight and acknowledged.

    source log   | acknowledged  | in flight    | ready to send | not fetched yet
                 .. position .... in_flight .... ready ......... next_fetch_offset
    target log   .. expected ...  + their counts               = next_expected

Invariants, asserted:
    A  position <= first source offset of in_flight + ready <= next_fetch_offset, in source order
    B  expected + records in in_flight + records in ready == next_expected
    C  only the oldest batch in flight is acknowledged, and only at its expected target offset
    D  a batch that was sent is sent again unchanged, and only when no open request contains it
    E  until the broker has accepted a batch of this lease, only one batch is in flight. A broker
       that does not know a producer accepts any sequence as its first. A second batch could
       overtake a first one that the broker refuses.

A record that failed in a transformation may have a dead letter. Until the target has the letter,
nothing behind that record is sent, and the position does not pass it. So whatever the target's log
shows after an unclean end, no letter is missing before it.

In exactly-once mode the task's transaction assigns the sequence when the batch is sent, and the
target chooses the offset. `lease` then has the committed state and moves with every commit.

Without a producer id only one batch is in flight, always: the target recognises no batch that it
has, and appends what arrives. It chooses the offset, as in a transaction.

No I/O: the sender asks what to send and reports the result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.task.produce.dead_letter import DeadLetter
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_SEQUENCE
from sparkmirror.wire.batch.lanes.forward import BatchProducer

MAX_IN_FLIGHT_BATCHES: Final = 5
"""How many batches per producer and partition a broker keeps to recognise duplicates."""


@dataclass(slots=True)
class PartitionQueue:
    """The copy state of one leased partition."""

    lease: Lease
    transaction: Transaction | None = None
    position: int = field(init=False)
    expected: int = field(init=False)
    next_fetch_offset: int = field(init=False)
    next_expected: int = field(init=False)
    records: int = field(init=False)
    """Records copied so far, by earlier owners of the partition too."""
    ready: deque[PendingBatch] = field(init=False, default_factory=deque)
    in_flight: deque[PendingBatch] = field(init=False, default_factory=deque)
    dead_letters: deque[DeadLetter] = field(init=False, default_factory=deque)
    """Those that the target does not have yet, in source order."""
    queued_bytes: int = field(init=False, default=0)
    """Bytes fetched and not acknowledged."""
    open_requests: int = field(init=False, default=0)
    """The number of unanswered requests that contain a batch of this partition."""
    is_resending: bool = field(init=False, default=False)
    is_producer_known: bool = field(init=False, default=False)
    """Whether the broker accepted a batch since the lease or the last resend began."""
    _producer: BatchProducer = field(init=False)

    def __post_init__(self) -> None:
        self.position = self.next_fetch_offset = self.lease.position
        self.expected = self.next_expected = self.lease.expected
        self.records = self.lease.records
        self._producer = _batch_producer(self.lease)
        assert self.lease.is_transactional == (self.transaction is not None)
        self.is_producer_known = self.transaction is not None and self.transaction.is_transaction_v2

    # -- fetching --------------------------------------------------------------------------------

    def enqueue(self, batch: PendingBatch) -> None:
        """Queue the next batch of the source. Outside transactions it gets its sequence here."""
        assert batch.spans[0][0] >= self.next_fetch_offset
        assert batch.next_source_offset > batch.spans[-1][0]
        if self.transaction is None:
            sequence = NO_SEQUENCE
            if self.lease.is_idempotent:
                sequence = self.lease.identity.sequence_for(self.next_expected)
            batch.set_producer_state(self._producer, sequence, self.next_expected)
        self.ready.append(batch)
        self.queued_bytes += batch.size
        self.next_expected += batch.record_count
        self.next_fetch_offset = batch.next_source_offset

    def skip_to(self, next_source_offset: int) -> None:
        """Advance over offsets without records to copy: markers, aborted or emptied batches."""
        assert next_source_offset >= self.next_fetch_offset
        self.next_fetch_offset = next_source_offset
        if not self.in_flight and not self.ready:
            self.position = self._before_dead_letters(next_source_offset)

    # -- dead letters ----------------------------------------------------------------------------

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """Hold back what follows a record until its letter is acknowledged.

        Call it before the queue advances over the record.
        """
        assert letter.source_offset >= self.next_fetch_offset
        self.dead_letters.append(letter)
        self.queued_bytes += letter.size

    def acknowledge_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Remove letters that the target has. Those that were dropped meanwhile are ignored."""
        for letter in letters:
            if self.dead_letters and self.dead_letters[0] is letter:
                self.queued_bytes -= self.dead_letters.popleft().size
        if not self.in_flight and not self.ready:
            self.position = self._before_dead_letters(self.next_fetch_offset)

    def drop_dead_letters_from(self, source_offset: int) -> None:
        """Drop the letters of records that are read again, from this one on."""
        while self.dead_letters and self.dead_letters[-1].source_offset >= source_offset:
            self.queued_bytes -= self.dead_letters.pop().size

    def drop_held(self) -> None:
        """Drop all letters and the batches that wait for them. They are read again."""
        self._drop_last_while(self._is_held)

    @property
    def is_held(self) -> bool:
        """Whether the next batch waits for a dead letter."""
        return bool(self.ready) and self._is_held(self.ready[0])

    def _is_held(self, batch: PendingBatch) -> bool:
        letters = self.dead_letters
        return bool(letters) and batch.next_source_offset > letters[0].source_offset

    def _before_dead_letters(self, source_offset: int) -> int:
        letters = self.dead_letters
        return min(source_offset, letters[0].source_offset) if letters else source_offset

    @property
    def may_fetch_more(self) -> bool:
        """Whether more may be queued, as far as the order of batches is concerned."""
        return True

    @property
    def active_records(self) -> int:
        """Records that are fetched and not acknowledged."""
        return self.next_expected - self.expected

    # -- sending ---------------------------------------------------------------------------------

    def next_to_send(self) -> PendingBatch | None:
        """Move the next batch to in_flight and return it; None if no batch may be sent now."""
        may_pipeline = self.is_producer_known and self.lease.is_idempotent
        limit = MAX_IN_FLIGHT_BATCHES if may_pipeline else 1
        if self.is_resending or not self.ready or len(self.in_flight) >= limit:
            return None
        if self._is_held(self.ready[0]):
            return None
        if self.transaction and not self.transaction.assign_sequence(self.ready[0], self):
            return None
        batch = self.ready.popleft()
        batch.ambiguous_sends += 1
        self.in_flight.append(batch)
        self.open_requests += 1
        return batch

    def accept_base_offset(self, batch: PendingBatch, base_offset: int) -> bool:
        """Return whether the target may have appended the oldest batch at this offset.

        In a transaction other records may precede it: markers, aborted batches, other writers.
        Without a producer id, too: a batch of an earlier owner that arrived late.
        """
        if self.transaction is None and self.lease.is_idempotent:
            return base_offset == batch.expected
        if base_offset < self.expected:
            return False
        self.next_expected += base_offset - self.expected
        self.expected = batch.expected = base_offset
        return True

    def acknowledge(self, batch: PendingBatch) -> list[OffsetRun]:
        """Remove the oldest batch in flight, which the target has; return its offsets."""
        assert self.in_flight[0] is batch, "acknowledgements come in order"
        assert batch.expected == self.expected
        self.in_flight.popleft()
        self.is_producer_known = True
        self.expected += batch.record_count
        self.records += batch.record_count
        self.position = batch.next_source_offset
        if not self.in_flight and not self.ready:
            self.position = self._before_dead_letters(self.next_fetch_offset)
        self.queued_bytes -= batch.size
        batch.release()
        return batch.runs()

    def acknowledge_up_to(
        self, end: int, on_acknowledged: Callable[[PendingBatch, list[OffsetRun]], None]
    ) -> int:
        """Acknowledge every batch in flight below a target offset; return how many there were."""
        count = 0
        while self.in_flight and self.in_flight[0].expected + self.in_flight[0].record_count <= end:
            batch = self.in_flight[0]
            on_acknowledged(batch, self.acknowledge(batch))
            count += 1
        return count

    def mark_not_appended(self, batch: PendingBatch) -> None:
        """Record that one request certainly did not append the batch."""
        assert batch.ambiguous_sends > 0
        batch.ambiguous_sends -= 1

    @property
    def is_unambiguous(self) -> bool:
        """Whether the target certainly has no batch that is not acknowledged."""
        return not any(batch.is_ambiguous for batch in self.unacknowledged())

    def is_oldest_in_flight(self, batch: PendingBatch) -> bool:
        """Whether this batch is the oldest one that is not acknowledged."""
        return bool(self.in_flight) and self.in_flight[0] is batch

    @property
    def oldest_timestamp_ms(self) -> int | None:
        """The smallest of the largest timestamps of the batches in flight; None without any."""
        return min((batch.max_timestamp_ms for batch in self.in_flight), default=None)

    def on_request_done(self) -> None:
        """Count down: a request with a batch of this partition was answered or lost."""
        assert self.open_requests > 0
        self.open_requests -= 1
        if self.is_resending and self.open_requests == 0:
            self._requeue_in_flight()

    def resend_in_flight(self) -> None:
        """Send all batches in flight again, in order, when no open request contains one."""
        self.is_resending, self.is_producer_known = True, False
        if self.open_requests == 0:
            self._requeue_in_flight()

    def _requeue_in_flight(self) -> None:
        self.ready.extendleft(reversed(self.in_flight))
        self.in_flight.clear()
        self.is_resending = False
        self.check_invariants()

    def drop_unsent(self) -> None:
        """Drop the batches that the target certainly lacks, and all dead letters.

        The next owner fetches them again.
        """
        self._drop_last_while(lambda batch: not batch.is_ambiguous)

    def _drop_last_while(self, is_dropped: Callable[[PendingBatch], bool]) -> None:
        while self.ready and is_dropped(self.ready[-1]):
            batch = self.ready.pop()
            if self.transaction and batch.has_sequence:
                self.transaction.rewind_sequence(self.lease.target, batch.record_count)
            self.queued_bytes -= batch.size
            self.next_expected -= batch.record_count
            batch.release()
        remaining = self.unacknowledged()
        self.next_fetch_offset = remaining[-1].next_source_offset if remaining else self.position
        self.drop_dead_letters_from(self.next_fetch_offset)
        self.check_invariants()

    # -- in transactions -------------------------------------------------------------------------

    @property
    def target(self) -> TopicPartition:
        """The remote partition."""
        return self.lease.target

    @property
    def is_group_begun(self) -> bool:
        """Whether what is ready must be sent in this transaction (`routing_queue`)."""
        return False

    @property
    def acknowledged_lease(self) -> Lease:
        """The lease advanced to the last acknowledgement."""
        return self.lease.advanced_to(self.position, self.expected, self.records)

    @property
    def durable_lease(self) -> Lease:
        """The lease advanced to the last commit, or to the last acknowledgement without commits."""
        return self.lease if self.transaction else self.acknowledged_lease

    @property
    def has_own_sequenced_batches(self) -> bool:
        """Whether a batch that has a sequence is not acknowledged."""
        return bool(self.in_flight) or (bool(self.ready) and self.ready[0].has_sequence)

    @property
    def has_sequenced_batches(self) -> bool:
        """Whether the outcome of a batch counts for the transaction and is not known."""
        return self.has_own_sequenced_batches

    @property
    def has_open_requests(self) -> bool:
        """Whether a request with a batch of the source partition is unanswered."""
        return self.open_requests > 0

    @property
    def is_committed(self) -> bool:
        """Whether the transaction has nothing of this partition to commit."""
        is_quiet = not self.has_open_requests and not self.has_sequenced_batches
        return self.transaction is None or (is_quiet and self.position == self.lease.position)

    def on_committed(self, lease: Lease) -> None:
        """Record the committed state."""
        self.lease = lease

    def reset_unappended(self) -> None:
        """Leave batches with a sequence, which the target lacks, to the next transaction."""
        self.reset_own_unappended()

    def reset_own_unappended(self) -> None:
        """Take the sequences back from batches that the target lacks."""
        assert self.transaction
        assert not self.open_requests
        self._requeue_in_flight()
        sequenced = [batch for batch in self.ready if batch.has_sequence]
        self.transaction.rewind_sequence(
            self.lease.target, sum(batch.record_count for batch in sequenced)
        )
        for batch in sequenced:
            batch.reset_producer_state()

    # -- the end of the lease --------------------------------------------------------------------

    def abandon(self) -> Lease:
        """Drop everything that is not acknowledged; return the durable lease."""
        for batch in self.unacknowledged():
            batch.release()
        self.in_flight.clear()
        self.ready.clear()
        self.dead_letters.clear()
        self.queued_bytes = 0
        self.next_fetch_offset, self.next_expected = self.position, self.expected
        return self.durable_lease

    def unacknowledged(self) -> tuple[PendingBatch, ...]:
        """Every batch that is not acknowledged, in order."""
        return (*self.in_flight, *self.ready)

    def check_invariants(self) -> None:
        """Assert invariants A and B."""
        batches = self.unacknowledged()
        assert self.expected + sum(batch.record_count for batch in batches) == self.next_expected
        at = self.position
        for batch in batches:
            assert at <= batch.spans[0][0]
            at = batch.next_source_offset
        assert at <= self.next_fetch_offset


def _batch_producer(lease: Lease) -> BatchProducer:
    if not lease.is_idempotent:
        return BatchProducer()
    identity = lease.identity
    return BatchProducer(producer_id=identity.producer_id, epoch=identity.producer_epoch)
