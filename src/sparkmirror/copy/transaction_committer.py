"""Commits a task's transactions, with the source offsets in Connect's offsets topic.

The source offsets of everything in a transaction belong to it, so both are committed or neither is.
When a commit fails, its outcome is still decided: the next owner of the transactional id finds the
offsets in the topic or not. Blocks; belongs to one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

from sparkmirror.copy.ledger import LedgerEntry, encode_entry
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.errors import TopicMissing
from sparkmirror.mirror.connect_topics.connect_offsets import (
    StoredOffset,
    group_by_offsets_partition,
    source_partition,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.sequence import next_sequence
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from sparkmirror.wire.protocol.transactions import (
    EPOCH_BUMPING_VERSION,
    add_partitions_to_txn,
    end_txn,
)

MAX_OFFSETS_PER_BATCH = 2000
"""Offsets in one batch: about 300 KB, less than the default max.message.bytes."""


class TransactionCommitter:
    """Ends the transactions of one transactional producer."""

    def __init__(self, router: Router, producer: TransactionalProducer, source_alias: str) -> None:
        self.identity = producer.identity
        self._router = router
        self._producer = producer
        self._source_alias = source_alias
        self._adds_implicitly = producer.transaction_version >= EPOCH_BUMPING_VERSION
        self._sequences: dict[TopicPartition, int] = {}

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Add partitions to the transaction. Only before transaction.version 2."""
        assert not self._adds_implicitly
        return add_partitions_to_txn(
            self._router, self._producer.transactional_id, self.identity, partitions
        )

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        """Write source offsets and commit; return producer id and epoch of the next transaction."""
        by_partition = self._by_offsets_partition(entries)
        if not self._adds_implicitly:
            self._add_all(by_partition)
        for partition, offsets in by_partition.items():
            for start in range(0, len(offsets), MAX_OFFSETS_PER_BATCH):
                self._append(partition, offsets[start : start + MAX_OFFSETS_PER_BATCH])
        return self._end_transaction(commit=True)

    def abort(self) -> ProducerIdAndEpoch:
        """Abort a transaction without batches; return producer id and epoch of the next one."""
        return self._end_transaction(commit=False)

    def _by_offsets_partition(
        self, entries: Mapping[TopicPartition, LedgerEntry]
    ) -> dict[TopicPartition, list[RecordBytes]]:
        topic, count = self._producer.offsets_topic, self._offsets_partition_count()
        return {
            TopicPartition(topic, number): offsets
            for number, offsets in group_by_offsets_partition(
                self._stored_offsets(entries), count
            ).items()
        }

    def _stored_offsets(
        self, entries: Mapping[TopicPartition, LedgerEntry]
    ) -> Iterator[StoredOffset]:
        for source, entry in entries.items():
            yield StoredOffset(
                connector=self._producer.connector,
                partition=source_partition(self._source_alias, source),
                offset=encode_entry(entry),
            )

    def _offsets_partition_count(self) -> int:
        name = self._producer.offsets_topic
        topic = self._router.metadata.topics.get(name)
        if topic is None or not topic.partitions:
            topic = self._router.refresh([name]).topics.get(name)
        if topic is None or not topic.partitions:
            raise TopicMissing(
                self._router.client.cluster, f"there is no offsets topic {name}; create it"
            )
        return len(topic.partitions)

    def _add_all(self, partitions: Collection[TopicPartition]) -> None:
        for partition, code in self.add_partitions_to_transaction(partitions).items():
            if code is not ErrorCode.NONE:
                cluster = self._router.client.cluster
                raise error_for_code(cluster, "AddPartitionsToTxn", code, str(partition))

    def _append(self, partition: TopicPartition, offsets: Sequence[RecordBytes]) -> None:
        now_ms = time.time_ns() // 1_000_000
        batch = memoryview(
            build_batch([Record(n, now_ms, key, value) for n, (key, value) in enumerate(offsets)])
        )
        producer = BatchProducer(
            producer_id=self.identity.producer_id, epoch=self.identity.epoch, transactional=True
        )
        sequence = self._sequences.get(partition, 0)
        append_batch(
            self._router,
            partition,
            forward_batch(read_header(batch), batch, producer, sequence),
            transactional_id=self._producer.transactional_id,
            implicit_add=self._adds_implicitly,
        )
        self._sequences[partition] = next_sequence(sequence, len(offsets))

    def _end_transaction(self, *, commit: bool) -> ProducerIdAndEpoch:
        self.identity = end_txn(
            self._router,
            self._producer.transactional_id,
            self.identity,
            commit=commit,
            version=self._producer.transaction_version,
        )
        if self._adds_implicitly:
            self._sequences.clear()
        return self.identity
