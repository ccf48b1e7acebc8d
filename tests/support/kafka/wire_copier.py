"""Copy a topic batch by batch with the wire package alone, one step at a time.

This is not the copy engine: it has no pipelining and no leases. It proves that the wire package
sends what it received, on every listener and through leader changes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import BytesLike, iter_batches, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.sequence import next_sequence
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import (
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
)
from sparkmirror.wire.protocol.produce import OutgoingBatch, ProduceResponseData, produce_request
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.request import ClientRequest
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.wire.protocol.topics.topic_key import TopicKey
from tests.support.kafka.record_batches import build_stored_batch
from tests.support.waiting import wait_until

T = TypeVar("T")

DEADLINE_S = 90.0
PARTITION_BYTES = 1 << 20


class StoredBatch(NamedTuple):
    """A batch of a broker, without the header fields that brokers and producers write."""

    base_offset: int
    record_count: int
    max_timestamp: int
    body: bytes


class ReadyBatch(NamedTuple):
    """A batch that waits to be produced."""

    record_count: int
    buffers: tuple[BytesLike, ...]


def wire_client(access: ClusterAccess) -> ClientConfig:
    """Return the wire client for the access to a cluster."""
    return ClientConfig(cluster=access.cluster, security=access.security)


def make_router(access: ClusterAccess) -> Router:
    """Return a router for this thread."""
    return Router(wire_client(access), [Address(*address) for address in access.bootstrap_servers])


def connect_first_broker(access: ClusterAccess, timeout_s: float = 30.0) -> BrokerConnection:
    """Connect to the first broker of a cluster."""
    return BrokerConnection.open(
        wire_client(access), Address(*access.bootstrap_servers[0]), timeout_s=timeout_s
    )


def build_recent_batch(
    count: int, codec: CompressionType = CompressionType.NONE, key: bytes | None = b"k"
) -> bytearray:
    """Return a stored batch with recent timestamps, so every broker accepts it."""
    now = int(time.time() * 1000)
    records = [
        Record(offset=n, timestamp=now + n, key=key, value=b"value %d " % n * 20, headers=())
        for n in range(count)
    ]
    return build_stored_batch(records, codec)


def produce_buffers(
    batch: bytearray, producer: BatchProducer, sequence: int
) -> tuple[BytesLike, ...]:
    """Return the buffers to produce a batch."""
    return forward_batch(read_header(batch), memoryview(batch), producer, sequence)


def read_stored_batches(router: Router, partition: TopicPartition) -> list[StoredBatch]:
    """Return all batches of a partition."""
    ends = list_offsets(router, {partition: LATEST})[partition].value
    starts = list_offsets(router, {partition: EARLIEST})[partition].value
    assert ends is not None
    assert starts is not None
    found: list[StoredBatch] = []
    deadline = time.monotonic() + DEADLINE_S
    position = starts.offset
    while position < ends.offset:
        answer = router.connection_to(LeaderOf(partition)).send_and_wait(
            fetch_request(
                12,
                FetchParams(),
                [FetchPosition(partition.topic, partition.partition, position, 1)],
            )
        )
        if answer.partitions[0].error_code:
            assert time.monotonic() < deadline, ErrorCode(answer.partitions[0].error_code)
            router.invalidate(LeaderOf(partition))
        records = answer.partitions[0].records
        for span in iter_batches(records):
            header = read_header(records, span.start)
            body = bytes(records[span.start + 61 : span.end])
            found.append(
                StoredBatch(header.base_offset, header.record_count, header.max_timestamp, body)
            )
            position = header.next_offset
    return found


class WireCopier:
    """Copies all partitions of a topic to the same partitions of another."""

    def __init__(
        self, source: Router, target: Router, topics: tuple[str, str], versions: tuple[int, int]
    ) -> None:
        self.source, self.target = source, target
        self.topics = topics
        self.versions = versions
        for router, topic in zip((source, target), topics, strict=True):
            wait_until(partial(_has_metadata, router, topic), f"{topic} to be known")
        self.position = dict.fromkeys(source.metadata.topics[topics[0]].partitions, 0)
        self.sequence = dict.fromkeys(self.position, 0)
        self.queue: dict[int, deque[ReadyBatch]] = {index: deque() for index in self.position}
        self.copied = 0
        self.errors: list[str] = []
        identity = init_producer_id(target)
        self.producer = BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)

    def run(self, records: int) -> None:
        """Copy until `records` records are acknowledged."""
        deadline = time.monotonic() + DEADLINE_S
        while self.copied < records:
            assert time.monotonic() < deadline, f"{self.copied} of {records}: {self.errors}"
            self.copy_step()

    def copy_step(self) -> None:
        """Fetch for partitions without a ready batch, then produce the ready batches."""
        idle = [index for index, waiting in self.queue.items() if not waiting]
        for fetched in self._request_leaders(
            self.source, self.topics[0], idle, self._fetch_request
        ):
            for part in fetched.partitions:
                if part.error_code:
                    self._on_partition_error(
                        self.source, self.topics[0], part.partition, part.error_code
                    )
                else:
                    self._enqueue_batches(part.partition, part.records)
        full = [index for index, waiting in self.queue.items() if waiting]
        for answer in self._request_leaders(
            self.target, self.topics[1], full, self._produce_request
        ):
            for ack in answer.partition_responses.values():
                if ack.error_code:
                    self._on_partition_error(
                        self.target, self.topics[1], ack.partition, ack.error_code
                    )
                else:
                    self.copied += self.queue[ack.partition].popleft().record_count

    def _enqueue_batches(self, index: int, records: memoryview) -> None:
        for span in iter_batches(records):
            header = read_header(records, span.start)
            if header.last_offset < self.position[index]:
                continue
            batch = records[span.start : span.end]
            verify_crc(header, batch)
            parts = forward_batch(header, batch, self.producer, self.sequence[index])
            self.queue[index].append(ReadyBatch(header.record_count, parts))
            self.sequence[index] = next_sequence(self.sequence[index], header.record_count)
            self.position[index] = header.next_offset

    def _fetch_request(self, indexes: Sequence[int]) -> ClientRequest[FetchResponseData]:
        topic = _topic_key(self.source, self.topics[0], by_id=self.versions[0] >= 13)
        positions = [FetchPosition(topic, i, self.position[i], PARTITION_BYTES) for i in indexes]
        return fetch_request(self.versions[0], FetchParams(max_wait_ms=50), positions)

    def _produce_request(self, indexes: Sequence[int]) -> ClientRequest[ProduceResponseData]:
        topic = _topic_key(self.target, self.topics[1], by_id=self.versions[1] >= 13)
        waiting = [OutgoingBatch(topic, i, self.queue[i][0].buffers) for i in indexes]
        return produce_request(self.versions[1], waiting, timeout_ms=5000)

    def _request_leaders(
        self,
        router: Router,
        topic: str,
        indexes: Sequence[int],
        make: Callable[[Sequence[int]], ClientRequest[T]],
    ) -> list[T]:
        """Send a request to each leader; the next step retries what fails."""
        leaders: dict[Address, list[int]] = {}
        for index in indexes:
            broker = router.metadata.leader_node(TopicPartition(topic, index))
            if broker is None:
                router.refresh([topic])
            else:
                leaders.setdefault(broker.address, []).append(index)
        requests = {address: _constant(make(group)) for address, group in leaders.items()}
        answers = []
        for address, answer in router.connections.request_all(
            requests, time.monotonic() + 10
        ).items():
            if not isinstance(answer, ClusterError):
                answers.append(answer)
                continue
            self.errors.append(str(answer))
            for index in leaders[address]:
                router.invalidate(LeaderOf(TopicPartition(topic, index)))
        return answers

    def _on_partition_error(self, router: Router, topic: str, index: int, error: int) -> None:
        assert ErrorCode(error).is_retriable, ErrorCode(error)
        self.errors.append(str(ErrorCode(error)))
        router.invalidate(LeaderOf(TopicPartition(topic, index)))


def _has_metadata(router: Router, topic: str) -> bool:
    """Whether the metadata of a broker has the topic, which may be new."""
    found = router.refresh([topic]).topics.get(topic)
    return found is not None and bool(found.partitions)


def _constant(request: ClientRequest[T]) -> Callable[[BrokerConnection], ClientRequest[T]]:
    return lambda connection: request


def _topic_key(router: Router, topic: str, *, by_id: bool) -> TopicKey:
    topic_id = router.metadata.topic_id(topic)
    assert topic_id is not None
    return topic_id.bytes if by_id else topic
