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

from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.term import Term
from sparkmirror.model import TopicPartition
from sparkmirror.wire.forward import Producer
from sparkmirror.wire.producers import ProducerIdentity
from sparkmirror.wire.sequence import next_sequence
from sparkmirror.wire.transactions import EPOCH_RAISING


class Phase(enum.Enum):
    """What may be done now."""

    OPEN = "open"
    CLOSING = "closing"
    COMMITTING = "committing"
    FAILED = "failed"


class Transaction:
    """Seals the batches of all partitions of a task."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self.phase = Phase.OPEN
        self.failure: tuple[How, str] | None = None
        self.has_begun = False
        """Whether anything was sealed since the last end."""
        self.wanted: set[TopicPartition] = set()
        """Partitions that must be added before anything of theirs can be sent."""
        self._joined: set[TopicPartition] = set()
        self._sequences: dict[TopicPartition, int] = {}
        self._identify(term.identity)

    @property
    def is_strict(self) -> bool:
        """Whether the first batch of a partition must be numbered 0, and joins by itself."""
        return self.term.version >= EPOCH_RAISING

    def seal(self, parcel: Parcel, target: TopicPartition) -> bool:
        """Get a parcel ready to be sent; false if it must wait for the next transaction."""
        if self.phase is Phase.FAILED:
            return False
        if parcel.is_sealed:
            return True
        if self.phase is not Phase.OPEN or not self._has_joined(target):
            return False
        sequence = self._sequences.get(target, 0)
        parcel.seal(self._producer, sequence, parcel.expected)
        self._sequences[target] = next_sequence(sequence, parcel.count)
        self.has_begun = True
        return True

    def take_back(self, target: TopicPartition, records: int) -> None:
        """The last records sealed for a partition are not on the target, and their seal is void."""
        self._sequences[target] = next_sequence(self._sequences[target], -records)

    def joined(self, partitions: set[TopicPartition]) -> None:
        """Partitions were added."""
        self._joined |= partitions
        self.wanted -= partitions

    def ended(self, identity: ProducerIdentity) -> None:
        """The transaction has ended well; the next one goes on under this identity."""
        assert self.phase is Phase.COMMITTING
        self._identify(identity)
        self._joined.clear()
        if self.is_strict:
            self._sequences.clear()
        self.phase, self.has_begun = Phase.OPEN, False

    def fail(self, how: How, why: str) -> None:
        """Nothing more can be committed under this term. The first reason stands."""
        if self.failure is None:
            self.phase, self.failure = Phase.FAILED, (how, why)

    def _identify(self, identity: ProducerIdentity) -> None:
        self._producer = Producer(
            producer_id=identity.producer_id, epoch=identity.epoch, transactional=True
        )

    def _has_joined(self, target: TopicPartition) -> bool:
        if self.is_strict or target in self._joined:
            return True
        self.wanted.add(target)
        return False
