"""A lease: the right to copy one partition, and everything needed to use it.

The driver grants leases; a task only uses them. A lease says where the copying stands on both sides
and under which producer identity the next batch must be appended. The sequence number of a batch
follows from its target offset alone, which turns the target broker into compare-and-append:

    target log     ... | anchor ........ expected | (next batch goes here)
    sequence             0  1  2  ...     n       n = (expected - anchor) mod 2**31

A batch that was appended before is recognised (or refused) by its sequence, never appended twice.
Knows no socket and no Spark; travels as JSON over the control channel.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH, NO_PRODUCER_ID
from sparkmirror.wire.batch.sequence import sequence_at


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseIdentity:
    """The producer identity of a lease: who appends, counted from where.

    `IN_TRANSACTIONS` stands for none: the task has one for all its partitions, which changes with
    every transaction, and a batch lands wherever the target puts it.
    """

    producer_id: int
    producer_epoch: int
    anchor: int

    def sequence_for(self, target_offset: int) -> int:
        """Sequence number of the record that will lie at this target offset."""
        return sequence_at(target_offset, self.anchor)


TRANSACTIONAL_IDENTITY = LeaseIdentity(
    producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH, anchor=0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to copy one partition from `position` on, appending at `expected`."""

    source: TopicPartition
    target: TopicPartition
    position: int
    expected: int
    identity: LeaseIdentity
    records: int = 0
    """Copied by this mirror so far: offsets do not tell, they have gaps and markers."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    last_epoch: tuple[int, int] = (NO_EPOCH, -1)
    """Leader epoch of the last source record copied, and the position of which that was said."""

    def __post_init__(self) -> None:
        assert self.position >= 0
        assert self.expected >= self.identity.anchor
        assert self.source.partition == self.target.partition, "partitions keep their number"

    def advanced_to(self, position: int, expected: int, records: int) -> Self:
        """The same right further on: what the next owner gets after a clean hand-over."""
        assert position >= self.position
        assert expected >= self.expected
        assert records >= self.records
        return replace(self, position=position, expected=expected, records=records)

    @property
    def source_epoch(self) -> int:
        """Leader epoch of the record before the position; -1 if it is not known."""
        epoch, position = self.last_epoch
        return epoch if position == self.position else NO_EPOCH

    def with_source_epoch(self, epoch: int) -> Self:
        """The same right, with the leader epoch of what was copied last."""
        return replace(self, last_epoch=(epoch, self.position))

    @property
    def is_transactional(self) -> bool:
        """Whether its batches go in the transactions of its task."""
        return self.identity == TRANSACTIONAL_IDENTITY

    def as_transactional(self) -> Self:
        """The same right for a task that has transactions."""
        return replace(self, identity=TRANSACTIONAL_IDENTITY)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self) | {"source": list(self.source), "target": list(self.target)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        fields = dict(value)
        fields["source"] = TopicPartition(*fields["source"])
        fields["target"] = TopicPartition(*fields["target"])
        fields["identity"] = LeaseIdentity(**fields["identity"])
        fields["last_epoch"] = tuple(fields["last_epoch"])
        return cls(**fields)
