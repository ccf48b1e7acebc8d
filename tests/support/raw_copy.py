"""Copy a topic batch by batch with nothing but the wire room: simple, patient, one step at a time.

Not the copy engine: no pipelining, no leases. It serves to prove that what the wire room sends is
what it received, on whatever listener and whoever leads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from sparkmirror.cluster.access import Access
from sparkmirror.errors import ClusterError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.checksum import verify
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.codes import Code
from sparkmirror.wire.connection import Client, Connection
from sparkmirror.wire.fetch import FetchAnswer, FetchLimits, Position, fetch_request
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import Data, batches, read_header
from sparkmirror.wire.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.wire.place import Address
from sparkmirror.wire.produce import OutgoingBatch, ProduceAnswer, produce_request
from sparkmirror.wire.producers import init_producer_id
from sparkmirror.wire.records import Record
from sparkmirror.wire.request import Request
from sparkmirror.wire.routing import LeaderOf, Router
from sparkmirror.wire.sequence import next_sequence
from sparkmirror.wire.topickey import TopicKey
from tests.support.batches import stored
from tests.support.waiting import wait_until

T = TypeVar("T")

DEADLINE_S = 90.0
PARTITION_BYTES = 1 << 20


class Stored(NamedTuple):
    """A batch as a broker keeps it, without what brokers and producers write into its header."""

    base_offset: int
    record_count: int
    max_timestamp: int
    body: bytes


class Ready(NamedTuple):
    """A batch that waits to be produced."""

    records: int
    buffers: tuple[Data, ...]


def client_of(access: Access) -> Client:
    """Be to the wire room who we are to the cluster room."""
    return Client(cluster=access.cluster, security=access.security.keywords())


def router_of(access: Access) -> Router:
    """Make a router that belongs to this thread."""
    return Router(client_of(access), [Address(*address) for address in access.bootstrap])


def first_connection(access: Access, timeout_s: float = 30.0) -> Connection:
    """Connect to the first broker of a cluster."""
    return Connection.open(client_of(access), Address(*access.bootstrap[0]), timeout_s=timeout_s)


def batch_of(count: int, codec: Codec = Codec.NONE, key: bytes | None = b"k") -> bytearray:
    """Make a batch as some producer stored it, young enough for every broker."""
    now = int(time.time() * 1000)
    records = [
        Record(offset=n, timestamp=now + n, key=key, value=b"value %d " % n * 20, headers=())
        for n in range(count)
    ]
    return stored(records, codec)


def sealed(batch: bytearray, producer: Producer, sequence: int) -> tuple[Data, ...]:
    """Make a batch ready to be produced."""
    return forward(read_header(batch), memoryview(batch), producer, sequence)


def log_of(router: Router, partition: TopicPartition) -> list[Stored]:
    """Read a whole partition."""
    ends = list_offsets(router, {partition: LATEST})[partition].value
    starts = list_offsets(router, {partition: EARLIEST})[partition].value
    assert ends is not None
    assert starts is not None
    found: list[Stored] = []
    deadline = time.monotonic() + DEADLINE_S
    position = starts.offset
    while position < ends.offset:
        answer = router.connection_to(LeaderOf(partition)).wait_for(
            fetch_request(
                12, FetchLimits(), [Position(partition.topic, partition.partition, position, 1)]
            )
        )
        if answer.partitions[0].error:
            assert time.monotonic() < deadline, Code(answer.partitions[0].error)
            router.forget(LeaderOf(partition))
        records = answer.partitions[0].records
        for span in batches(records):
            header = read_header(records, span.start)
            body = bytes(records[span.start + 61 : span.end])
            found.append(
                Stored(header.base_offset, header.record_count, header.max_timestamp, body)
            )
            position = header.next_offset
    return found


class RawCopy:
    """Copies all partitions of a topic to the same partitions of another."""

    def __init__(
        self, source: Router, target: Router, topics: tuple[str, str], versions: tuple[int, int]
    ) -> None:
        self.source, self.target = source, target
        self.topics = topics
        self.versions = versions
        for router, topic in zip((source, target), topics, strict=True):
            wait_until(partial(_knows, router, topic), f"{topic} to be known")
        self.position = dict.fromkeys(source.metadata.topics[topics[0]].partitions, 0)
        self.sequence = dict.fromkeys(self.position, 0)
        self.queue: dict[int, deque[Ready]] = {index: deque() for index in self.position}
        self.copied = 0
        self.troubles: list[str] = []
        identity = init_producer_id(target)
        self.producer = Producer(producer_id=identity.producer_id, epoch=identity.epoch)

    def run(self, records: int) -> None:
        """Copy until so many records have been acknowledged."""
        deadline = time.monotonic() + DEADLINE_S
        while self.copied < records:
            assert time.monotonic() < deadline, f"{self.copied} of {records}: {self.troubles}"
            self.step()

    def step(self) -> None:
        """Fetch for what has nothing waiting, then produce what waits."""
        idle = [index for index, waiting in self.queue.items() if not waiting]
        for fetched in self._ask(self.source, self.topics[0], idle, self._fetch):
            for part in fetched.partitions:
                if part.error:
                    self._moved(self.source, self.topics[0], part.partition, part.error)
                else:
                    self._take(part.partition, part.records)
        full = [index for index, waiting in self.queue.items() if waiting]
        for answer in self._ask(self.target, self.topics[1], full, self._produce):
            for ack in answer.acknowledgements.values():
                if ack.error:
                    self._moved(self.target, self.topics[1], ack.partition, ack.error)
                else:
                    self.copied += self.queue[ack.partition].popleft().records

    def _take(self, index: int, records: memoryview) -> None:
        for span in batches(records):
            header = read_header(records, span.start)
            if header.last_offset < self.position[index]:
                continue
            batch = records[span.start : span.end]
            verify(header, batch)
            parts = forward(header, batch, self.producer, self.sequence[index])
            self.queue[index].append(Ready(header.record_count, parts))
            self.sequence[index] = next_sequence(self.sequence[index], header.record_count)
            self.position[index] = header.next_offset

    def _fetch(self, indexes: Sequence[int]) -> Request[FetchAnswer]:
        topic = _key(self.source, self.topics[0], by_id=self.versions[0] >= 13)
        positions = [Position(topic, i, self.position[i], PARTITION_BYTES) for i in indexes]
        return fetch_request(self.versions[0], FetchLimits(max_wait_ms=50), positions)

    def _produce(self, indexes: Sequence[int]) -> Request[ProduceAnswer]:
        topic = _key(self.target, self.topics[1], by_id=self.versions[1] >= 13)
        waiting = [OutgoingBatch(topic, i, self.queue[i][0].buffers) for i in indexes]
        return produce_request(self.versions[1], waiting, timeout_ms=5000)

    def _ask(
        self,
        router: Router,
        topic: str,
        indexes: Sequence[int],
        make: Callable[[Sequence[int]], Request[T]],
    ) -> list[T]:
        """Ask each leader about its partitions; whatever goes wrong is tried again next time."""
        leaders: dict[Address, list[int]] = {}
        for index in indexes:
            broker = router.metadata.broker_of(TopicPartition(topic, index))
            if broker is None:
                router.refresh([topic])
            else:
                leaders.setdefault(broker.address, []).append(index)
        requests = {address: _always(make(group)) for address, group in leaders.items()}
        answers = []
        for address, answer in router.links.gather(requests, time.monotonic() + 10).items():
            if not isinstance(answer, ClusterError):
                answers.append(answer)
                continue
            self.troubles.append(str(answer))
            for index in leaders[address]:
                router.forget(LeaderOf(TopicPartition(topic, index)))
        return answers

    def _moved(self, router: Router, topic: str, index: int, error: int) -> None:
        assert Code(error).is_worth_retrying, Code(error)
        self.troubles.append(str(Code(error)))
        router.forget(LeaderOf(TopicPartition(topic, index)))


def _knows(router: Router, topic: str) -> bool:
    """Whether the broker that is asked has heard of a topic, which may be very new."""
    found = router.refresh([topic]).topics.get(topic)
    return found is not None and bool(found.partitions)


def _always(request: Request[T]) -> Callable[[Connection], Request[T]]:
    return lambda connection: request


def _key(router: Router, topic: str, *, by_id: bool) -> TopicKey:
    topic_id = router.metadata.topic_id(topic)
    assert topic_id is not None
    return topic_id if by_id else topic
