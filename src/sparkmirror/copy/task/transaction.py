"""The transactions of a task, one after the other: who seals batches, and when.

    open ──due──▶ closing ──all that was sent is settled──▶ committing ──▶ open (the next one)
      └────────────────┴──────────── any failure ──────────────┴──────▶ failed, for good

Open, batches are sealed with the next sequence of their partition as they are sent. Closing, only
what was sealed before is still sent. The identity is the coordinator's word: it may change with
every end. Pure: knows no socket and no clock.

Invariants:
    A  a batch is sealed once in a transaction; sent again it is the same bytes
    B  sequences of a partition have no gap: what was sealed and certainly not appended is taken
       back before the transaction ends
    C  after a failure nothing is sealed any more: what is on the target of this transaction will
       be aborted, and whoever goes on begins at what was committed
"""

from __future__ import annotations

import enum

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.transactional_producer import TransactionalProducer
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.forward import BatchProducer
from sparkmirror.wire.batch.sequence import next_sequence
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.transactions import EPOCH_BUMPING_VERSION


class TransactionPhase(enum.Enum):
    """What may be done now."""

    OPEN = "open"
    CLOSING = "closing"
    COMMITTING = "committing"
    FAILED = "failed"


class Transaction:
    """Seals the batches of all partitions of a task."""

    def __init__(self, term: TransactionalProducer) -> None:
        self.transactional_producer = term
        self.phase = TransactionPhase.OPEN
        self.failure: tuple[LeaseEndReason, str] | None = None
        self.has_begun = False
        """Whether anything was sealed since the last end."""
        self.partitions_to_add: set[TopicPartition] = set()
        """Partitions that must be added before anything of theirs can be sent."""
        self._added: set[TopicPartition] = set()
        self._sequences: dict[TopicPartition, int] = {}
        self._set_identity(term.identity)

    @property
    def is_transaction_v2(self) -> bool:
        """Whether the first batch of a partition must be numbered 0, and joins by itself."""
        return self.transactional_producer.transaction_version >= EPOCH_BUMPING_VERSION

    def assign_sequence(self, parcel: PendingBatch, target: TopicPartition) -> bool:
        """Get a parcel ready to be sent; false if it must wait for the next transaction."""
        if self.phase is TransactionPhase.FAILED:
            return False
        if parcel.has_sequence:
            return True
        if self.phase is not TransactionPhase.OPEN or not self._is_added(target):
            return False
        sequence = self._sequences.get(target, 0)
        parcel.set_producer_state(self._producer, sequence, parcel.expected)
        self._sequences[target] = next_sequence(sequence, parcel.record_count)
        self.has_begun = True
        return True

    def rewind_sequence(self, target: TopicPartition, records: int) -> None:
        """The last records sealed for a partition are not on the target, and their seal is void."""
        self._sequences[target] = next_sequence(self._sequences[target], -records)

    def on_partitions_added(self, partitions: set[TopicPartition]) -> None:
        """Partitions were added."""
        self._added |= partitions
        self.partitions_to_add -= partitions

    def on_ended(self, identity: ProducerIdAndEpoch) -> None:
        """The transaction has ended well; the next one goes on under this identity."""
        assert self.phase is TransactionPhase.COMMITTING
        self._set_identity(identity)
        self._added.clear()
        if self.is_transaction_v2:
            self._sequences.clear()
        self.phase, self.has_begun = TransactionPhase.OPEN, False

    def fail(self, how: LeaseEndReason, why: str) -> None:
        """Nothing more can be committed under this term. The first reason stands."""
        if self.failure is None:
            self.phase, self.failure = TransactionPhase.FAILED, (how, why)

    def _set_identity(self, identity: ProducerIdAndEpoch) -> None:
        self._producer = BatchProducer(
            producer_id=identity.producer_id, epoch=identity.epoch, transactional=True
        )

    def _is_added(self, target: TopicPartition) -> bool:
        if self.is_transaction_v2 or target in self._added:
            return True
        self.partitions_to_add.add(target)
        return False
