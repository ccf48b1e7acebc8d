"""Writes records to topics with an idempotent producer. Runs in Spark's executors.

A retry of a request appends no record twice. A Spark task that runs again does: it sends the rows
with new sequences, so that delivery is at-least-once. Records for one partition keep their order.
One task after the other may use a producer; `flush` ends a task. Blocks; belongs to one thread at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sparkmirror.backoff import JITTER
from sparkmirror.cluster.describe_topics import TopicDescription, await_new_topic, describe_topic
from sparkmirror.cluster.topic_auto_creation_request import request_auto_creation
from sparkmirror.errors import RequestError, RequestRefused, TopicMissing
from sparkmirror.mirror.connect_topics.partitioner import partition_for
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.synchronous.idempotent_producer import IdempotentProducer
from sparkmirror.wire.protocol.synchronous.multi_partition_produce import append_to_partitions

READY_BYTES = 4 << 20
"""Complete batches are sent when there are so many bytes of them."""
BUFFERED_BYTES = 32 << 20
"""All batches are sent when there are so many bytes, complete or not."""
_RECORD_OVERHEAD_BYTES = 20
_ADVICE = {
    ErrorCode.MESSAGE_TOO_LARGE: "a record is larger than max.message.bytes of the topic: raise it",
    ErrorCode.RECORD_LIST_TOO_LARGE: "a record is larger than a segment of the topic",
    ErrorCode.INVALID_TIMESTAMP: "a timestamp lies outside of message.timestamp.before.max.ms or"
    " message.timestamp.after.max.ms of the topic: raise them, or write other timestamps",
    ErrorCode.INVALID_RECORD: "the topic is compacted, for example, and a record has no key",
}


class RecordProducer:
    """Collects records to batches and sends them. Raises ClusterError and RequestError."""

    def __init__(
        self, router: Router, *, codec: CompressionType, batch_size: int, timeout_s: float
    ) -> None:
        """Own the router. The first record gets a producer id from the cluster."""
        self._router = router
        self._codec = codec
        self._producer: IdempotentProducer | None = None
        self._batch_size = batch_size
        self._timeout_s = timeout_s
        self._topics: dict[str, _TopicPartitions] = {}
        self._turn = JITTER.randrange(1 << 16)
        """Which partition comes next for records without a key."""
        self._open: dict[TopicPartition, list[Record]] = {}
        self._open_bytes: dict[TopicPartition, int] = {}
        self._ready: dict[TopicPartition, list[Sequence[Record]]] = {}
        self._ready_bytes = self._buffered_bytes = 0

    def close(self) -> None:
        """Close the connections. Records that are not sent are dropped."""
        self._router.close()

    def send(self, topic: str, partition: int | None, record: Record) -> None:
        """Add a record; send batches if there are many.

        Without a partition, the key decides as in Java's producer. Without a key too, partitions
        that have a leader take turns, a batch each.
        """
        partitions = self._partitions_of(topic)
        count = partitions.count
        if partition is None:
            partition = self._choose_partition(topic, record.key, partitions)
        elif not 0 <= partition < count:
            raise RequestError(
                f"a row has partition {partition}, but topic {topic} has {count} partitions; write"
                " another number, or null to let the key decide"
            )
        self._add(TopicPartition(topic, partition), record)
        if self._buffered_bytes >= BUFFERED_BYTES:
            self._send_all()
        elif self._ready_bytes >= READY_BYTES:
            self._send_ready()

    def flush(self) -> None:
        """Send all records, and end a task. Returns when the brokers have them.

        The next task asks for the partitions of topics again, and its records without a key begin
        with another partition.
        """
        self._send_all()
        self._topics.clear()
        self._turn += 1

    def _send_all(self) -> None:
        for partition in list(self._open):
            self._close(partition)
        self._send_ready()

    def _add(self, partition: TopicPartition, record: Record) -> None:
        size = record_bytes(record)
        if self._open_bytes.get(partition, 0) + size > self._batch_size:
            self._close(partition)
        self._open.setdefault(partition, []).append(record)
        self._open_bytes[partition] = self._open_bytes.get(partition, 0) + size
        self._buffered_bytes += size

    def _close(self, partition: TopicPartition) -> None:
        """Make the open batch of a partition ready, if it has one."""
        records = self._open.pop(partition, None)
        if records:
            self._ready.setdefault(partition, []).append(records)
            self._ready_bytes += self._open_bytes.pop(partition)

    def _send_ready(self) -> None:
        if not self._ready:
            return
        if self._producer is None:
            identity = init_producer_id(self._router, timeout_s=self._timeout_s)
            self._producer = IdempotentProducer(identity, self._codec)
        ready, self._ready = self._ready, {}
        self._buffered_bytes -= self._ready_bytes
        self._ready_bytes = 0
        try:
            append_to_partitions(
                self._router, ready, producer=self._producer, timeout_s=self._timeout_s
            )
        except RequestRefused as error:
            advice = _ADVICE.get(ErrorCode(error.code))
            if advice is None:
                raise
            raise RequestError(f"{error}; {advice}") from error

    def _choose_partition(self, topic: str, key: bytes | None, all_: _TopicPartitions) -> int:
        if key is not None:
            return partition_for(key, all_.count)
        number = all_.with_leader[self._turn % len(all_.with_leader)]
        if self._open_bytes.get(TopicPartition(topic, number), 0) >= self._batch_size // 2:
            self._turn += 1
            number = all_.with_leader[self._turn % len(all_.with_leader)]
        return number

    def _partitions_of(self, topic: str) -> _TopicPartitions:
        """Return the partitions; let brokers create a missing topic if they do so."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _TopicPartitions.of(self._describe(topic))
        return found

    def _describe(self, topic: str) -> TopicDescription:
        try:
            return describe_topic(self._router, topic, timeout_s=self._timeout_s)
        except TopicMissing:
            created = request_auto_creation(self._router, [topic], timeout_s=self._timeout_s)
            return await_new_topic(
                lambda: describe_topic(self._router, topic, timeout_s=self._timeout_s),
                NEW_TOPIC_WAIT_S if created else 0.0,
            )


@dataclass(frozen=True, slots=True)
class _TopicPartitions:
    """How many partitions a topic has, and which of them records without a key go to."""

    count: int
    with_leader: tuple[int, ...]

    @classmethod
    def of(cls, topic: TopicDescription) -> Self:
        numbers = tuple(one.index for one in topic.partitions)
        with_leader = tuple(one.index for one in topic.partitions if one.leader is not None)
        return cls(len(numbers), with_leader or numbers)


def record_bytes(record: Record) -> int:
    """Return about how many bytes a record takes in a batch."""
    size = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") + 4 for name, value in record.headers)
