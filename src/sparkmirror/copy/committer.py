"""Commits: source offsets go into Connect's offsets topic, and the transaction ends with them.

The offsets of everything in a transaction are a part of it, so both count or neither does. A commit
that fails is decided all the same: whoever takes over the transactional id finds the offsets there
or not. Blocks; belongs to one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

from sparkmirror.copy.ledger import Entry, to_offset
from sparkmirror.copy.term import Term
from sparkmirror.errors import TopicMissing
from sparkmirror.mirror.connect_offsets import StoredOffset, placed, source_partition
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append_batch
from sparkmirror.wire.codes import Code
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import read_header
from sparkmirror.wire.place import refusal
from sparkmirror.wire.producers import ProducerIdentity
from sparkmirror.wire.records import Record, build
from sparkmirror.wire.routing import Router
from sparkmirror.wire.sequence import next_sequence
from sparkmirror.wire.transactions import EPOCH_RAISING, add_partitions, end_transaction

AT_ONCE = 2000
"""Offsets in one batch: about 300 KB, which every offsets topic takes."""


class Committer:
    """The transactions of one term, as their coordinator sees them."""

    def __init__(self, router: Router, term: Term, source_alias: str) -> None:
        self.identity = term.identity
        self._router = router
        self._term = term
        self._source_alias = source_alias
        self._joins = term.version >= EPOCH_RAISING
        self._sequences: dict[TopicPartition, int] = {}

    def join(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Code]:
        """Add partitions to the transaction, where batches do not do that by themselves."""
        assert not self._joins
        return add_partitions(self._router, self._term.transactional_id, self.identity, partitions)

    def commit(self, entries: Mapping[TopicPartition, Entry]) -> ProducerIdentity:
        """Write where source partitions stand, and end; returns the identity to go on with."""
        by_partition = self._placed(entries)
        if not self._joins:
            self._join_all(by_partition)
        for partition, offsets in by_partition.items():
            for at in range(0, len(offsets), AT_ONCE):
                self._append(partition, offsets[at : at + AT_ONCE])
        return self._end(commit=True)

    def abort(self) -> ProducerIdentity:
        """End a transaction in which there is nothing."""
        return self._end(commit=False)

    def _placed(
        self, entries: Mapping[TopicPartition, Entry]
    ) -> dict[TopicPartition, list[RecordBytes]]:
        topic, count = self._term.offsets_topic, self._partitions()
        return {
            TopicPartition(topic, number): offsets
            for number, offsets in placed(self._stored(entries), count).items()
        }

    def _stored(self, entries: Mapping[TopicPartition, Entry]) -> Iterator[StoredOffset]:
        for source, entry in entries.items():
            yield StoredOffset(
                connector=self._term.connector,
                partition=source_partition(self._source_alias, source),
                offset=to_offset(entry),
            )

    def _partitions(self) -> int:
        name = self._term.offsets_topic
        topic = self._router.metadata.topics.get(name)
        if topic is None or not topic.partitions:
            topic = self._router.refresh([name]).topics.get(name)
        if topic is None or not topic.partitions:
            raise TopicMissing(
                self._router.client.cluster, f"there is no offsets topic {name}; create it"
            )
        return len(topic.partitions)

    def _join_all(self, partitions: Collection[TopicPartition]) -> None:
        for partition, code in self.join(partitions).items():
            if code is not Code.NONE:
                cluster = self._router.client.cluster
                raise refusal(cluster, "AddPartitionsToTxn", code, str(partition))

    def _append(self, partition: TopicPartition, offsets: Sequence[RecordBytes]) -> None:
        now_ms = time.time_ns() // 1_000_000
        batch = memoryview(
            build([Record(n, now_ms, key, value) for n, (key, value) in enumerate(offsets)])
        )
        producer = Producer(
            producer_id=self.identity.producer_id, epoch=self.identity.epoch, transactional=True
        )
        sequence = self._sequences.get(partition, 0)
        append_batch(
            self._router,
            partition,
            forward(read_header(batch), batch, producer, sequence),
            transactional_id=self._term.transactional_id,
            joins=self._joins,
        )
        self._sequences[partition] = next_sequence(sequence, len(offsets))

    def _end(self, *, commit: bool) -> ProducerIdentity:
        self.identity = end_transaction(
            self._router,
            self._term.transactional_id,
            self.identity,
            commit=commit,
            version=self._term.version,
        )
        if self._joins:
            self._sequences.clear()
        return self.identity
