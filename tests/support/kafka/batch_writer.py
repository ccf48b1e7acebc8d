"""A writer with control over batches and transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import await_new_topic
from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import NO_SEQUENCE, BytesLike, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, RecordHeader, build_batch
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from sparkmirror.wire.protocol.transactions import (
    EPOCH_BUMPING_VERSION,
    add_partitions_to_txn,
    end_txn,
    transaction_version,
)
from tests.support.kafka.wire_copier import make_router

WRITE_TIMEOUT_S = 120.0
MAX_TRANSACTION_MS = 15 * 60 * 1000
"""The maximum of brokers: a transaction does not time out, even on a slow computer."""


def now_ms() -> int:
    """Return the current time as a record timestamp."""
    return time.time_ns() // 1_000_000


def numbered_records(
    numbers: Iterable[int], size: int = 100, timestamp: int | None = None
) -> list[Record]:
    """Return records with distinct keys and values of at least `size` bytes."""
    time_ms = now_ms() if timestamp is None else timestamp
    return [
        Record(n, time_ms, b"key %d" % n, (b"value %d " % n).ljust(size, b".")) for n in numbers
    ]


def priced_records(
    numbers: Iterable[int], size: int = 100, timestamp: int | None = None
) -> list[Record]:
    """Return numbered records with JSON values, for `transform_chains.DROP_AND_MASK`.

    Every third one has the header `drop`, every second one `pii`.
    """
    priced = []
    for record in numbered_records(numbers, 0, timestamp):
        headers: list[RecordHeader] = [(b"drop", None)] if record.offset % 3 == 0 else []
        headers += [(b"pii", b"secret"), (b"kept", b"")] if record.offset % 2 == 0 else []
        padding = b"." * max(size - 50, 0)
        value = b'{"number":%d,"price":12.5,"padding":"%s"}' % (record.offset, padding)
        priced.append(record._replace(value=value, headers=tuple(headers)))
    return priced


class BatchWriter:
    """Appends to one cluster. Only one thread may use it."""

    def __init__(self, access: ClusterAccess) -> None:
        self.router = make_router(access)

    def write_batch(
        self,
        partition: TopicPartition,
        records: Sequence[Record],
        codec: CompressionType = CompressionType.NONE,
    ) -> int:
        """Append records as one batch; ignore their offsets. Return the base offset."""
        return self.write_raw_batch(
            partition, build_batch([r._replace(offset=n) for n, r in enumerate(records)], codec)
        )

    def write_batches(
        self, partition: TopicPartition, records: Sequence[Record], batch: int = 100
    ) -> None:
        """Append records as batches of `batch` records."""
        for at in range(0, len(records), batch):
            self.write_batch(partition, records[at : at + batch])

    def write_raw_batch(self, partition: TopicPartition, batch: bytes | memoryview) -> int:
        """Append a complete batch without its producer. Return the base offset."""
        view = memoryview(batch)
        buffers = forward_batch(read_header(view), view, BatchProducer(), NO_SEQUENCE)
        return _append(self.router, partition, buffers)

    def begin_transaction(self, transactional_id: str) -> WriterTransaction:
        return WriterTransaction(self, transactional_id)

    def close(self) -> None:
        self.router.close()


class WriterTransaction:
    """One transaction after the other, on brokers of any transaction.version."""

    def __init__(self, writer: BatchWriter, transactional_id: str) -> None:
        self._router = writer.router
        self._id = transactional_id
        self._identity: ProducerIdAndEpoch = init_producer_id(
            self._router,
            transactional_id=transactional_id,
            transaction_timeout_ms=MAX_TRANSACTION_MS,
        )
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._version = transaction_version(self._router)

    def write_batch(self, partition: TopicPartition, records: Sequence[Record]) -> int:
        """Append records as one batch of the transaction. Return the base offset."""
        if self._version < EPOCH_BUMPING_VERSION and partition not in self._added:
            codes = add_partitions_to_txn(self._router, self._id, self._identity, [partition])
            assert codes == {partition: ErrorCode.NONE}
            self._added.add(partition)
        view = memoryview(build_batch([r._replace(offset=n) for n, r in enumerate(records)]))
        producer = BatchProducer(
            producer_id=self._identity.producer_id, epoch=self._identity.epoch, transactional=True
        )
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(records)
        buffers = forward_batch(read_header(view), view, producer, sequence)
        return _append(self._router, partition, buffers, transactional_id=self._id)

    def commit(self) -> None:
        self._end(commit=True)

    def abort(self) -> None:
        self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        before = self._identity
        self._identity = end_txn(
            self._router, self._id, before, commit=commit, version=self._version
        )
        self._added.clear()
        if self._identity != before:
            self._sequences.clear()


def _append(
    router: Router,
    partition: TopicPartition,
    buffers: Sequence[BytesLike],
    transactional_id: str | None = None,
) -> int:
    """Append a batch; retry until WRITE_TIMEOUT_S. Return the base offset.

    The leader of a new topic may learn of it after other brokers.
    """
    append = partial(append_batch, router, partition, buffers, transactional_id=transactional_id)
    deadline = time.monotonic() + WRITE_TIMEOUT_S
    while True:
        try:
            return await_new_topic(append, NEW_TOPIC_WAIT_S)
        except ClusterError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise


MakeRecords = Callable[[Iterable[int], int], list[Record]]
"""Makes records with these numbers and of about so many bytes."""
MIXED_PARTITIONS = 3
"""Partitions of a topic that `write_mixed_batches` fills."""
SMALL_MESSAGE_LIMIT = {"max.message.bytes": "20000"}
"""A config of a remote topic. The task then splits the batches of partition 2."""


def write_mixed_batches(
    writer: BatchWriter,
    topic: str,
    first: int = 0,
    records: int = 1500,
    make_records: MakeRecords = numbered_records,
) -> None:
    """Write to three partitions: plain batches, transactions of which some abort, large batches."""
    plain, transactional, large = (TopicPartition(topic, n) for n in range(MIXED_PARTITIONS))
    numbers = range(first, first + records)
    writer.write_batches(plain, make_records(numbers, 1000), batch=25)
    transaction = writer.begin_transaction(f"mixed-{topic}")
    for at in numbers[::100]:
        transaction.write_batch(transactional, make_records(range(at, at + 30), 1000))
        transaction.commit()
        transaction.write_batch(transactional, [Record(0, now_ms(), b"k", b"aborted %d" % at)])
        transaction.abort()
        writer.write_batch(transactional, make_records(range(at + 30, at + 100), 500))
    for at in numbers[::50]:
        writer.write_batch(
            large,
            make_records(range(at, at + 50), 1000),
            CompressionType.GZIP if at % 20 else CompressionType.NONE,
        )
