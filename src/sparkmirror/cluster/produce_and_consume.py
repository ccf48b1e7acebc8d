"""Whole topics: write a list of records, read all records up to the end.

For initial data of a lab cluster, for checkpoints that a client reads, and for tests. Record by
record and in memory: this is not the data path of the mirror.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from sparkmirror.backoff import seconds_left
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import TopicDescription, await_new_topic, describe_topic
from sparkmirror.errors import ClusterTimeout
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch import message_format_v1
from sparkmirror.wire.batch.aborted_transactions import AbortedTransactionFilter
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import MAGIC, iter_batches, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch, read_records
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    OffsetOutOfRange,
    SingleFetchResult,
    fetch_records,
    raise_for_code,
)
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets

MIN_CALL_S = 0.1
"""The shortest timeout of a call, also at the deadline."""
BATCH_BYTES = 16_384
"""A batch ends with the record that reaches this size, as with Kafka's `batch.size`."""
_RECORD_OVERHEAD_BYTES = 20
_FURTHER_BACK = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """A record to write.

    Without a partition, the key decides; without a key too, partitions take turns. Without a
    timestamp, the record has the time of writing.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecord:
    """A record in a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def produce_records(
    access: ClusterAccess, topic: str, records: Iterable[ProducerRecord], timeout_s: float = 30.0
) -> list[tuple[int, int]]:
    """Write records. Returns the partition and the offset of each, when brokers have them all."""
    deadline = time.monotonic() + timeout_s
    with closing(access.new_router()) as router:
        found = _describe_new_topic(router, topic, deadline, wait_s=NEW_TOPIC_WAIT_S)
        count = len(found.partitions)
        identity = init_producer_id(router, timeout_s=seconds_left(deadline, MIN_CALL_S))
        producer = BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)
        by_partition: dict[int, list[tuple[int, Record]]] = {}
        turns = itertools.count()
        number = -1
        for number, record in enumerate(records):
            partition = _partition_of(record, count, turns)
            by_partition.setdefault(partition, []).append((number, _to_wire(record)))
        stored = [(-1, -1)] * (number + 1)
        for partition, numbered in by_partition.items():
            sequence = 0
            for group in _batches(numbered):
                batch = memoryview(
                    build_batch([r._replace(offset=at) for at, (_, r) in enumerate(group)])
                )
                base_offset = append_batch(
                    router,
                    TopicPartition(topic, partition),
                    forward_batch(read_header(batch), batch, producer, sequence),
                    timeout_s=seconds_left(deadline, MIN_CALL_S),
                )
                sequence += len(group)
                for at, (number, _) in enumerate(group):
                    stored[number] = (partition, base_offset + at)
    return stored


def read_topic(
    access: ClusterAccess,
    topic: str,
    timeout_s: float = 30.0,
    *,
    committed_only: bool = False,
    new_topic_wait_s: float = NEW_TOPIC_WAIT_S,
    last: int | None = None,
) -> list[ConsumerRecord]:
    """Read a topic from its beginning to its present end, by partition and offset.

    With `last`, read only so many records at the end of each partition.

    Raises TopicMissing if the topic does not exist within `new_topic_wait_s`.
    """
    deadline = time.monotonic() + timeout_s
    with closing(access.new_router()) as router:
        found = _describe_new_topic(router, topic, deadline, wait_s=new_topic_wait_s)
        partitions = [TopicPartition(topic, partition.index) for partition in found.partitions]
        starts = _offsets(router, partitions, EARLIEST, deadline)
        ends = _offsets(router, partitions, LATEST, deadline, read_committed=committed_only)
        return [
            _to_consumer_record(partition, record)
            for partition in partitions
            for record in _read_last(
                partial(
                    _read_partition,
                    router,
                    partition,
                    end=ends[partition],
                    deadline=deadline,
                    committed_only=committed_only,
                ),
                starts[partition],
                ends[partition],
                last,
            )
        ]


def _describe_new_topic(
    router: Router, topic: str, deadline: float, *, wait_s: float
) -> TopicDescription:
    """Describe a topic that may be new.

    Raises TopicMissing if no broker knows it within `wait_s` and before the deadline.
    """
    return await_new_topic(
        lambda: describe_topic(router, topic, timeout_s=seconds_left(deadline, MIN_CALL_S)),
        min(wait_s, seconds_left(deadline)),
    )


# -- writing ---------------------------------------------------------------------------------------


def _partition_of(record: ProducerRecord, count: int, turns: Iterator[int]) -> int:
    if record.partition is not None:
        return record.partition
    return next(turns) % count if record.key is None else partition_for(record.key, count)


def _to_wire(record: ProducerRecord) -> Record:
    timestamp_ms = record.timestamp_ms
    return Record(
        offset=0,
        timestamp=int(time.time() * 1000) if timestamp_ms is None else timestamp_ms,
        key=_to_bytes(record.key),
        value=_to_bytes(record.value),
        headers=tuple((name.encode(), _to_bytes(value)) for name, value in record.headers),
    )


def _to_bytes(value: bytes | None) -> bytes | None:
    """Callers may give a bytearray, which the compiled modules refuse."""
    return None if value is None else bytes(value)


def _batches(numbered: Sequence[tuple[int, Record]]) -> Iterator[list[tuple[int, Record]]]:
    """Cut the records of a partition into batches of about BATCH_BYTES."""
    batch: list[tuple[int, Record]] = []
    size = 0
    for number, record in numbered:
        batch.append((number, record))
        size += _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        size += sum(len(name) + len(value or b"") for name, value in record.headers)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# -- reading ---------------------------------------------------------------------------------------


def _offsets(
    router: Router,
    partitions: Sequence[TopicPartition],
    when: int,
    deadline: float,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    found = list_offsets(
        router,
        dict.fromkeys(partitions, when),
        read_committed=read_committed,
        timeout_s=seconds_left(deadline, MIN_CALL_S),
    )
    offsets = {}
    for partition, (code, listed) in found.items():
        raise_for_code(router, partition, code)
        assert listed is not None
        offsets[partition] = listed.offset
    return offsets


def _read_last(
    read_from: Callable[[int], Iterator[Record]], start: int, end: int, last: int | None
) -> Iterable[Record]:
    """Read all records, or the last ones: from ever further back, until there are enough."""
    if last is None:
        return read_from(start)
    distance = last
    while True:
        begin = max(start, end - distance)
        found = list(read_from(begin))
        if len(found) >= last or begin == start:
            return found[-last:]
        distance *= _FURTHER_BACK


def _read_partition(
    router: Router,
    partition: TopicPartition,
    start: int,
    *,
    end: int,
    deadline: float,
    committed_only: bool,
) -> Iterator[Record]:
    """Read the records from `start` to before `end`.

    The position decides, not the records: markers and compacted records have offsets too.
    """
    position = start
    while position < end:
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"the end of {partition} was not reached: check the leader of the partition",
            )
        try:
            fetched = fetch_records(router, partition, position, read_committed=committed_only)
        except OffsetOutOfRange:
            position = _offsets(router, [partition], EARLIEST, deadline)[partition]
            continue
        for next_offset, records in _read_batches(fetched):
            if next_offset > position:
                yield from (record for record in records if position <= record.offset < end)
                position = next_offset


def _read_batches(fetched: SingleFetchResult) -> Iterator[tuple[int, list[Record]]]:
    """The batches of a fetch: the offset behind each, and its records without aborted ones."""
    aborted = AbortedTransactionFilter(fetched.aborted_transactions)
    for span in iter_batches(fetched.records):
        batch = fetched.records[span.start : span.end]
        if span.magic < MAGIC:
            records = message_format_v1.read_messages(batch)
            yield records[-1].offset + 1, records
            continue
        header = read_header(batch)
        verify_crc(header, batch)
        is_hidden = aborted.is_aborted(header, batch) or header.is_control
        yield header.next_offset, [] if is_hidden else read_records(header, batch)


def _to_consumer_record(partition: TopicPartition, record: Record) -> ConsumerRecord:
    return ConsumerRecord(
        partition=partition.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=tuple((name.decode(errors="replace"), value) for name, value in record.headers),
    )
