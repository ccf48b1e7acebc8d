"""A lease: the right to copy one partition, and everything needed to use it.

The driver grants leases; a task uses them. A lease has the next offset on both clusters and the
producer id and epoch for the next batch. The sequence number of a batch follows from its target
offset alone, so the target broker does compare-and-append:

    target log     ... | anchor ........ expected | (next batch goes here)
    sequence             0  1  2  ...     n       n = (expected - anchor) mod 2**31

The broker recognises or refuses a batch that it already has by its sequence. It never appends it
twice. A lease travels as JSON over the control connection.

A target without producer ids gets batches without a sequence (`is_idempotent` is false). It appends
whatever it receives, so the task sends nothing again whose outcome is unknown: it ends the lease,
and the driver compares both logs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH, NO_PRODUCER_ID
from sparkmirror.wire.batch.sequence import sequence_at

NOT_IDEMPOTENT = -2
"""The producer id of a lease whose batches have no producer id; the ledger stores it, too."""
NO_TASK = -1
"""Stands for no task: the job no longer contains the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseIdentity:
    """The producer of a lease, and the target offset of its sequence 0.

    `TRANSACTIONAL_IDENTITY` stands for none. In transactions the task has one producer for all
    partitions, its epoch may change with every transaction, and the target chooses the offsets.
    """

    producer_id: int
    producer_epoch: int
    anchor: int

    def sequence_for(self, target_offset: int) -> int:
        """Return the sequence number of the record with this target offset."""
        return sequence_at(target_offset, self.anchor)


TRANSACTIONAL_IDENTITY = LeaseIdentity(
    producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH, anchor=0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to copy one partition: fetch from `position` on, append at `expected`."""

    source: TopicPartition
    target: TopicPartition
    position: int
    expected: int
    identity: LeaseIdentity
    records: int = 0
    """Records copied so far by this mirror. Offsets have gaps and markers, so they do not tell."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    last_epoch: tuple[int, int] = (NO_EPOCH, -1)
    """Leader epoch of the last copied source record, and the position after that record."""
    conductor: str = ""
    """The conductor that granted it, if several share the connector; see `copy.ledger`."""
    task: int = NO_TASK
    """The task that it was granted to, if several conductors share the connector."""
    chain: str = ""
    """The fingerprint of the transformations of the owner (`CopyJob.chain_of`)."""
    stored_remote: str = ""
    """The name of the remote topic if the ledger must store it; see `copy.ledger`."""

    def __post_init__(self) -> None:
        assert self.position >= 0
        assert self.expected >= self.identity.anchor
        assert self.source.partition == self.target.partition, "partitions keep their number"

    def advanced_to(self, position: int, expected: int, records: int) -> Self:
        """Return the lease at later offsets, for the next owner."""
        assert position >= self.position
        assert expected >= self.expected
        assert records >= self.records
        return replace(self, position=position, expected=expected, records=records)

    @property
    def source_epoch(self) -> int:
        """Leader epoch of the record before the position; -1 if it is unknown."""
        epoch, position = self.last_epoch
        return epoch if position == self.position else NO_EPOCH

    def with_source_epoch(self, epoch: int) -> Self:
        """Return the lease with the leader epoch of the last copied record."""
        return replace(self, last_epoch=(epoch, self.position))

    @property
    def is_idempotent(self) -> bool:
        """Whether the target recognises batches that it already has."""
        return self.identity.producer_id != NOT_IDEMPOTENT

    @property
    def is_transactional(self) -> bool:
        """Whether the batches are sent in transactions of the task."""
        return self.identity == TRANSACTIONAL_IDENTITY

    @property
    def delivery(self) -> DeliveryMode:
        """How its records are delivered."""
        if self.is_transactional:
            return DeliveryMode.EXACTLY_ONCE
        return DeliveryMode.SEQUENCED if self.is_idempotent else DeliveryMode.AT_LEAST_ONCE

    def as_transactional(self) -> Self:
        """Return the lease for a task that sends in transactions."""
        return replace(self, identity=TRANSACTIONAL_IDENTITY)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        values = {name: getattr(self, name) for name in _LEASE_FIELDS}
        identity = {name: getattr(self.identity, name) for name in _IDENTITY_FIELDS}
        return values | {
            "source": list(self.source),
            "target": list(self.target),
            "identity": identity,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        values = dict(value)
        values["source"] = TopicPartition(*values["source"])
        values["target"] = TopicPartition(*values["target"])
        values["identity"] = LeaseIdentity(**values["identity"])
        values["last_epoch"] = tuple(values["last_epoch"])
        return cls(**values)


_LEASE_FIELDS = tuple(one.name for one in fields(Lease))
_IDENTITY_FIELDS = tuple(one.name for one in fields(LeaseIdentity))
