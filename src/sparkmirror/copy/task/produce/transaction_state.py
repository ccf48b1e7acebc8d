"""The transactions of a task, one after the other, and the sequences of their batches.

    open ──due──▶ closing ──outcome of all sent batches known──▶ committing ──▶ open (the next one)
      └────────────────┴──────────────── any failure ────────────────┴──────▶ failed, for good

In an open transaction a batch gets the next sequence of its partition when it is sent. In a closing
one, only batches that already have a sequence are sent, and the rest of a group that is begun
(`routing_queue`). The coordinator names the producer id and
epoch, and may change them at every end. Pure: no I/O, no clock.

Invariants:
    A  a batch gets one sequence in a transaction; a resend has the same bytes
    B  sequences of a partition have no gap: the sequence of a batch that was certainly not
       appended is taken back before the transaction ends
    C  one queue at a time has batches with a sequence and without an acknowledgement in a remote
       partition; several have records for it if transformations send records to other topics
    D  after a failure no batch gets a sequence: the target will abort what it has of this
       transaction, and the next owner starts at the committed offsets
"""

from __future__ import annotations

import enum
from typing import Protocol

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.lanes.forward import BatchProducer
from sparkmirror.wire.batch.sequence import next_sequence
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.transactions import EPOCH_BUMPING_VERSION


class TransactionPhase(enum.Enum):
    """The phase of the current transaction."""

    OPEN = "open"
    CLOSING = "closing"
    COMMITTING = "committing"
    FAILED = "failed"


class SequencedQueue(Protocol):
    """A queue of batches for a remote partition (`partition_queue`)."""

    @property
    def target(self) -> TopicPartition:
        """The remote partition."""
        ...

    @property
    def has_own_sequenced_batches(self) -> bool:
        """Whether a batch that has a sequence is not acknowledged."""
        ...

    @property
    def is_group_begun(self) -> bool:
        """Whether what is ready must be sent in this transaction."""
        ...


class Transaction:
    """Assigns sequences to the batches of all partitions of a task."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self.transactional_producer = producer
        self.phase = TransactionPhase.OPEN
        self.failure: tuple[LeaseEndReason, str] | None = None
        self.partitions_to_add: set[TopicPartition] = set()
        """Partitions that must be added before the task can send their batches."""
        self._added: set[TopicPartition] = set()
        self._sequences: dict[TopicPartition, int] = {}
        self._last_queues: dict[TopicPartition, SequencedQueue] = {}
        """The queue that used each remote partition last."""
        self._set_identity(producer.identity)

    @property
    def is_transaction_v2(self) -> bool:
        """Whether sequences begin at 0 in every transaction, and batches add their partition."""
        return self.transactional_producer.transaction_version >= EPOCH_BUMPING_VERSION

    def assign_sequence(self, batch: PendingBatch, queue: SequencedQueue) -> bool:
        """Assign a sequence if the batch has none; return whether the batch may be sent now."""
        if self.phase is TransactionPhase.FAILED:
            return False
        if batch.has_sequence:
            return True
        target = queue.target
        if not (self._takes_batches_of(queue) and self._is_added(target)):
            return False
        last = self._last_queues.get(target)
        if last is not None and last is not queue and last.has_own_sequenced_batches:
            return False
        self._last_queues[target] = queue
        sequence = self._sequences.get(target, 0)
        batch.set_producer_state(self._producer, sequence, batch.expected)
        self._sequences[target] = next_sequence(sequence, batch.record_count)
        return True

    def _takes_batches_of(self, queue: SequencedQueue) -> bool:
        if self.phase is TransactionPhase.OPEN:
            return True
        return self.phase is TransactionPhase.CLOSING and queue.is_group_begun

    def rewind_sequence(self, target: TopicPartition, records: int) -> None:
        """Take back the sequences of the last records, which the target does not have."""
        self._sequences[target] = next_sequence(self._sequences[target], -records)

    def on_partitions_added(self, partitions: set[TopicPartition]) -> None:
        """Record that the coordinator added partitions."""
        self._added |= partitions
        self.partitions_to_add -= partitions

    def on_ended(self, identity: ProducerIdAndEpoch) -> None:
        """Open the next transaction, under this producer id and epoch."""
        assert self.phase is TransactionPhase.COMMITTING
        self._set_identity(identity)
        self._added.clear()
        if self.is_transaction_v2:
            self._sequences.clear()
        self.phase = TransactionPhase.OPEN

    def fail(self, reason: LeaseEndReason, message: str) -> None:
        """Commit nothing more under this producer. The first reason stays."""
        if self.failure is None:
            self.phase, self.failure = TransactionPhase.FAILED, (reason, message)

    def _set_identity(self, identity: ProducerIdAndEpoch) -> None:
        self._producer = BatchProducer(
            producer_id=identity.producer_id, epoch=identity.epoch, transactional=True
        )

    def _is_added(self, target: TopicPartition) -> bool:
        if self.is_transaction_v2 or target in self._added:
            return True
        self.partitions_to_add.add(target)
        return False
