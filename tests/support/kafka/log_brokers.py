"""Brokers in this process that keep the logs of one topic `t`: they append, list offsets and fetch,
and give producer ids.

A fetch without new records waits as at a real broker: until a record is appended, the leader
changes, or its time is up. Error codes for appends are scripted. Each request is recorded.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.producer import InitProducerIdResponse, ProduceRequest, ProduceResponse

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.offsets import LATEST
from tests.support.kafka.fake_broker import (
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    response_reply,
)
from tests.support.kafka.record_batches import read_batch

TOPIC = "t"
PRODUCE, FETCH, LIST_OFFSETS, METADATA, INIT_PRODUCER_ID = 0, 1, 2, 3, 22
_HEADER_TAGS = 1
"""The header of a flexible request ends with a byte for its tags."""


class BrokerRequest(NamedTuple):
    """A request for partitions: at which broker, of which API, for which partitions."""

    broker: int
    api_key: int
    partitions: tuple[int, ...]


class LogBrokers:
    """Some brokers, and the partitions of the topic. Partition p is led by broker p modulo n."""

    def __init__(self, brokers: int, partitions: int) -> None:
        self.brokers = [
            FakeBroker(repeat(partial(self._reply, index)), sends_api_versions=False)
            for index in range(brokers)
        ]
        self.leaders = {number: number % brokers for number in range(partitions)}
        """The broker that leads each partition; -1: none."""
        self.append_codes: dict[int, deque[ErrorCode]] = defaultdict(deque)
        """The error codes of the next appends to a partition."""
        self.requests: list[BrokerRequest] = []
        self.fetch_waits_ms: list[int] = []
        self.fetch_min_bytes: list[int] = []
        """What each fetch asked for. A fetch is answered as soon as there is a record."""
        self.producer_ids = 0
        """How many producer ids were given."""
        self._logs: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
        self._changed = threading.Condition()
        self._closing = False

    # -- what a test does ----------------------------------------------------------------------

    def router(self) -> Router:
        """Return a new router to the brokers. The caller closes it."""
        servers = ",".join(str(broker.address) for broker in self.brokers)
        return ClusterAccess.from_properties("c", {"bootstrap.servers": servers}).new_router()

    def requests_of(self, api_key: int) -> list[BrokerRequest]:
        """Return the requests of one API, in order."""
        return [one for one in self.requests if one.api_key == api_key]

    def append(self, number: int, *values: bytes) -> None:
        """Append records without keys to a partition."""
        records = [Record(at, 0, None, value) for at, value in enumerate(values)]
        with self._changed:
            self._append(number, build_batch(records))

    def records(self, number: int) -> list[Record]:
        """Return the records in a partition, in order."""
        return [record for batch in self._logs[number] for record in read_batch(batch)]

    def values(self, number: int) -> list[bytes | None]:
        """Return the values in a partition, in order."""
        return [record.value for record in self.records(number)]

    def batches(self, number: int) -> list[bytes]:
        """Return the batches in a partition, in order."""
        return list(self._logs[number])

    def add_partitions(self, count: int) -> None:
        """Add partitions to the topic, led by the first broker."""
        for number in range(len(self.leaders), len(self.leaders) + count):
            self._logs[number] = []
            self.leaders[number] = 0

    def move_leader(self, number: int, broker: int) -> None:
        """Let another broker lead a partition; fetches at the former one end."""
        with self._changed:
            self.leaders[number] = broker
            self._changed.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let no broker answer an append, a fetch or a request for offsets within the block."""
        with self._changed:
            yield

    def close(self) -> None:
        """Stop the brokers."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for broker in self.brokers:
            broker.stop()

    # -- replies -------------------------------------------------------------------------------

    def _reply(self, index: int, received: ReceivedRequest) -> bytes:
        replies: dict[int, Any] = {
            PRODUCE: self._produce,
            FETCH: self._fetch,
            LIST_OFFSETS: self._list_offsets,
            INIT_PRODUCER_ID: self._init_producer_id,
            METADATA: lambda *_: response_reply(self._metadata()),
        }
        make: Any = replies.get(received.api_key, lambda *_: api_versions_reply())
        reply: Reply = make(index, received)
        return reply(received)

    def _metadata(self) -> Any:
        topic = MetadataResponse.MetadataResponseTopic
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=index, host=broker.address.host, port=broker.address.port
                )
                for index, broker in enumerate(self.brokers)
            ],
            topics=[
                topic(
                    error_code=0,
                    name=TOPIC,
                    partitions=[
                        topic.MetadataResponsePartition(
                            partition_index=number,
                            leader_id=leader,
                            leader_epoch=1,
                            replica_nodes=[],
                            isr_nodes=[],
                        )
                        for number, leader in self.leaders.items()
                    ],
                )
            ],
            cluster_id="c",
            controller_id=0,
        )

    def _init_producer_id(self, *_: object) -> Reply:
        self.producer_ids += 1
        return response_reply(
            InitProducerIdResponse(error_code=0, producer_id=self.producer_ids, producer_epoch=0)
        )

    def _produce(self, index: int, received: ReceivedRequest) -> Reply:
        request = _decode(ProduceRequest, received)
        (data,) = request.topic_data
        self._record(index, PRODUCE, [one.index for one in data.partition_data])
        topic = ProduceResponse.TopicProduceResponse
        with self._changed:
            results = [
                topic.PartitionProduceResponse(
                    index=one.index,
                    error_code=self._append_code(index, one.index, one.records).value,
                    base_offset=0,
                )
                for one in data.partition_data
            ]
        return response_reply(
            ProduceResponse(responses=[topic(name=TOPIC, partition_responses=results)])
        )

    def _append_code(self, index: int, number: int, batch: bytes) -> ErrorCode:
        if self.leaders[number] != index:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.append_codes[number]:
            return self.append_codes[number].popleft()
        self._append(number, bytes(batch))
        return ErrorCode.NONE

    def _append(self, number: int, batch: bytes) -> None:
        self._logs[number].append(struct.pack(">q", self._end(number)) + batch[8:])
        self._changed.notify_all()

    def _end(self, number: int) -> int:
        return sum(read_header(batch).record_count for batch in self._logs[number])

    def _list_offsets(self, index: int, received: ReceivedRequest) -> Reply:
        request = _decode(ListOffsetsRequest, received)
        (asked,) = request.topics
        self._record(index, LIST_OFFSETS, [one.partition_index for one in asked.partitions])
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        with self._changed:
            offsets = [
                topic.ListOffsetsPartitionResponse(
                    partition_index=one.partition_index,
                    error_code=0,
                    offset=self._end(one.partition_index) if one.timestamp == LATEST else 0,
                    timestamp=-1,
                    leader_epoch=0,
                )
                for one in asked.partitions
            ]
        return response_reply(ListOffsetsResponse(topics=[topic(name=TOPIC, partitions=offsets)]))

    def _fetch(self, index: int, received: ReceivedRequest) -> Reply:
        request = _decode(FetchRequest, received)
        (asked,) = request.topics
        offsets = {one.partition: one.fetch_offset for one in asked.partitions}
        self._record(index, FETCH, list(offsets))
        self.fetch_waits_ms.append(request.max_wait_ms)
        self.fetch_min_bytes.append(request.min_bytes)
        deadline = time.monotonic() + request.max_wait_ms / 1000
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._closing
                    or any(
                        self.leaders[number] != index or self._end(number) > offset
                        for number, offset in offsets.items()
                    )
                ),
                timeout=max(deadline - time.monotonic(), 0.0),
            )
            found = [self._fetched(index, number, offset) for number, offset in offsets.items()]
        topic = FetchResponse.FetchableTopicResponse(topic=TOPIC, partitions=found)
        return response_reply(
            FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=[topic])
        )

    def _fetched(self, index: int, number: int, offset: int) -> Any:
        is_leader = self.leaders[number] == index
        newer = [batch for batch in self._logs[number] if read_header(batch).base_offset >= offset]
        end = self._end(number)
        return FetchResponse.FetchableTopicResponse.PartitionData(
            partition_index=number,
            error_code=0 if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER.value,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=0,
            aborted_transactions=[],
            preferred_read_replica=-1,
            records=b"".join(newer) if is_leader else b"",
        )

    def _record(self, index: int, api_key: int, partitions: Sequence[int]) -> None:
        self.requests.append(BrokerRequest(index, api_key, tuple(sorted(partitions))))


def _decode(message: Any, received: ReceivedRequest) -> Any:
    return message.decode(received.body[_HEADER_TAGS:], version=received.version)


@contextmanager
def running_log_brokers(brokers: int, partitions: int) -> Iterator[LogBrokers]:
    """Start brokers; they stop at the end of the block."""
    cluster = LogBrokers(brokers, partitions)
    try:
        for broker in cluster.brokers:
            broker.__enter__()
        yield cluster
    finally:
        cluster.close()
