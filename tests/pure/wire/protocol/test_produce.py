"""Produce writes and reads the same bytes as kafka-python's message classes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.protocol import produce
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.produce import (
    VERSIONS_BY_ID,
    VERSIONS_BY_NAME,
    OutgoingBatch,
    ProduceRecordError,
    ProduceResponseData,
    produce_request,
)
from sparkmirror.wire.protocol.topics.current_leader import BrokerNode, LeaderAndEpoch
from sparkmirror.wire.protocol.topics.topic_key import TopicKey

VERSIONS = (*VERSIONS_BY_NAME, *VERSIONS_BY_ID)
ID = UUID("00112233-4455-6677-8899-aabbccddeeff").bytes
OTHER_ID = UUID(int=7).bytes

_Topic = ProduceRequest.TopicProduceData
_Partition = _Topic.PartitionProduceData
_ResponseTopic = ProduceResponse.TopicProduceResponse
_ResponsePartition = _ResponseTopic.PartitionProduceResponse

offsets = st.integers(-1, 2**63 - 1)


def topics_of(version: int) -> tuple[TopicKey, TopicKey]:
    return (ID, OTHER_ID) if version in VERSIONS_BY_ID else ("orders", "größe-µ")


def kafka_python_topic(make: Callable[..., Any], topic: TopicKey, **parts: Any) -> Any:
    if isinstance(topic, bytes):
        return make(topic_id=UUID(bytes=topic), **parts)
    return make(name=topic, **parts)


def kafka_python_request(
    version: int, batches: Sequence[OutgoingBatch], transactional_id: str | None
) -> bytes:
    """Return the same request, written by kafka-python."""
    topics: dict[TopicKey, list[Any]] = {}
    for batch in batches:
        data = _Partition(index=batch.partition, records=b"".join(batch.buffers))
        topics.setdefault(batch.topic, []).append(data)
    message: Any = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5000,
        topic_data=[kafka_python_topic(_Topic, t, partition_data=p) for t, p in topics.items()],
    )
    encoded: bytes = message.encode(version=version)
    return encoded


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=8)
@given(data=st.data())
def test_a_request_has_the_same_bytes_as_kafka_pythons(version: int, data: st.DataObject) -> None:
    batch = st.builds(
        OutgoingBatch,
        st.sampled_from(topics_of(version)),
        st.integers(0, 2**31 - 1),
        st.lists(st.binary(max_size=200), max_size=3),
    )
    batches = data.draw(st.lists(batch, max_size=6, unique_by=lambda b: (b.topic, b.partition)))
    transactional_id = data.draw(st.none() | st.text(max_size=5))
    request = produce_request(version, batches, timeout_ms=5000, transactional_id=transactional_id)
    assert b"".join(request.body) == kafka_python_request(version, batches, transactional_id)
    assert request.flexible is (version >= 9)


@pytest.mark.parametrize("version", [7, 12])
def test_a_batch_is_not_copied_into_the_request(version: int) -> None:
    header, records = bytearray(61), memoryview(bytearray(5000))
    request = produce_request(version, [OutgoingBatch("t", 0, [header, records])], timeout_ms=1)
    assert any(part is header for part in request.body)
    assert any(part is records for part in request.body)


@pytest.mark.parametrize("version", [7, 12])
def test_two_batches_for_one_partition_are_refused(version: int) -> None:
    batches = [OutgoingBatch("t", 1, [b"a"]), OutgoingBatch("u", 1, [b"b"])]
    produce_request(version, batches, timeout_ms=1)
    with pytest.raises(ValueError, match="two batches for partition 1 of 't'"):
        produce_request(version, [*batches, OutgoingBatch("t", 1, [b"c"])], timeout_ms=1)


def read(version: int, body: bytes) -> ProduceResponseData:
    """Read a response from a frame, as a connection does."""
    frame = BufferPool().allocate(len(body) + 4)
    frame.view[4:] = body
    return produce_request(version, [], timeout_ms=1).decode(frame, 4)


def kafka_python_partition(version: int, **parts: Any) -> Any:
    if version < 8:
        parts.pop("record_errors", None)
        parts.pop("error_message", None)
    if version < 10:
        parts.pop("current_leader", None)
    return _ResponsePartition(**parts)


def responses(version: int) -> st.SearchStrategy[Any]:
    """Responses with kafka-python's classes."""
    refused = st.builds(
        _ResponsePartition.BatchIndexAndErrorMessage,
        batch_index=st.integers(0, 1000),
        batch_index_error_message=st.none() | st.text(max_size=10),
    )
    partition = st.builds(
        kafka_python_partition,
        st.just(version),
        index=st.integers(0, 1000),
        error_code=st.sampled_from([0, 6, 45, 87, 100]),
        base_offset=offsets,
        log_append_time_ms=offsets,
        log_start_offset=offsets,
        record_errors=st.lists(refused, max_size=2),
        error_message=st.none() | st.text(max_size=10),
        current_leader=st.builds(
            _ResponsePartition.LeaderIdAndEpoch,
            leader_id=st.integers(-1, 9),
            leader_epoch=st.integers(-1, 9),
        ),
    )
    partitions = st.lists(partition, max_size=4, unique_by=lambda p: p.index)
    topics = st.lists(
        st.tuples(st.sampled_from(topics_of(version)), partitions),
        max_size=2,
        unique_by=lambda pair: pair[0],
    )
    return st.builds(
        lambda throttle, pairs: ProduceResponse(
            throttle_time_ms=throttle,
            responses=[
                kafka_python_topic(_ResponseTopic, t, partition_responses=p) for t, p in pairs
            ],
        ),
        st.integers(0, 2**31 - 1),
        topics,
    )


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=10)
@given(data=st.data())
def test_a_response_is_read_as_kafka_python_wrote_it(version: int, data: st.DataObject) -> None:
    message = data.draw(responses(version))
    answer = read(version, message.encode(version=version))
    assert answer.throttle_time_ms == message.throttle_time_ms
    expected = {
        (
            topic.topic_id.bytes if version in VERSIONS_BY_ID else topic.name,
            partition.index,
        ): partition
        for topic in message.responses
        for partition in topic.partition_responses
    }
    assert answer.partition_responses.keys() == expected.keys()
    for key, got in answer.partition_responses.items():
        partition = expected[key]
        assert (got.topic, got.partition) == key
        assert got[2:6] == (
            partition.error_code,
            partition.base_offset,
            partition.log_append_time_ms,
            partition.log_start_offset,
        )
        if version >= 8:
            assert got.error_message == partition.error_message
            assert list(got.record_errors) == [
                ProduceRecordError(r.batch_index, r.batch_index_error_message)
                for r in partition.record_errors
            ]
        if version >= 10:
            leader = partition.current_leader
            named = LeaderAndEpoch(leader.leader_id, leader.leader_epoch)
            assert got.current_leader == (None if leader.leader_id == -1 else named)


def response_with_errors(version: int) -> Any:
    refused = _ResponsePartition.BatchIndexAndErrorMessage(
        batch_index=3, batch_index_error_message="no key"
    )
    partition = kafka_python_partition(
        version,
        index=2,
        error_code=87,
        record_errors=[refused],
        error_message="one or more records",
        current_leader=_ResponsePartition.LeaderIdAndEpoch(leader_id=3, leader_epoch=12),
    )
    topics = [
        kafka_python_topic(_ResponseTopic, topic, partition_responses=[partition])
        for topic in topics_of(version)
    ]
    node = ProduceResponse.NodeEndpoint(node_id=3, host="b3.example", port=9093, rack="r1")
    ends: dict[str, Any] = {"node_endpoints": [node]} if version >= 10 else {}
    return ProduceResponse(responses=topics, throttle_time_ms=11, **ends)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_truncated_response_is_refused(version: int) -> None:
    whole: bytes = response_with_errors(version).encode(version=version)
    assert len(read(version, whole).partition_responses) == 2
    for length in range(len(whole)):
        with pytest.raises((ValueError, IndexError, struct.error)):
            read(version, whole[:length])


@pytest.mark.parametrize("version", [10, 13])
def test_a_former_leader_names_the_new_leader_and_its_address(version: int) -> None:
    answer = read(version, response_with_errors(version).encode(version=version))
    assert {got.current_leader for got in answer.partition_responses.values()} == {
        LeaderAndEpoch(3, 12)
    }
    assert answer.node_endpoints == (BrokerNode(3, "b3.example", 9093, "r1"),)


@pytest.mark.parametrize(
    ("highest", "by_id", "implicit_add", "chosen"),
    [
        (7, False, True, 7),
        (8, False, True, 8),
        (9, False, True, 9),
        (11, False, True, 11),
        (12, False, True, 12),
        (13, True, True, 13),
        (13, False, True, 12),
        (13, False, False, 11),
    ],
)
def test_the_highest_shared_version_is_chosen(
    highest: int, by_id: bool, implicit_add: bool, chosen: int
) -> None:
    versions = NodeApiVersions(cluster="a", ranges={0: (0, highest)})
    assert produce.produce_version(versions, by_id=by_id, implicit_add=implicit_add) == chosen
    assert produce.supports_topic_ids(versions) is (highest >= 13)


def test_topic_ids_need_a_broker_that_supports_them() -> None:
    with pytest.raises(UnsupportedByBroker, match="versions 0 to 12, needed is one of 13"):
        produce.produce_version(NodeApiVersions(cluster="a", ranges={0: (0, 12)}), by_id=True)


@pytest.mark.parametrize("version", VERSIONS)
@given(
    st.text("aé", max_size=40),
    st.text("t", max_size=30),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 70_000)), max_size=4, unique=True),
)
@settings(max_examples=25)
def test_no_request_is_larger_than_its_overheads_and_its_batches(
    version: int, client_id: str, transactional_id: str, sizes: list[tuple[int, int]]
) -> None:
    topics = topics_of(version)
    batches = {
        (topic, size % 5): OutgoingBatch(topics[topic], size % 5, [b"x" * size])
        for topic, size in sizes
    }
    request = produce_request(
        version,
        batches.values(),
        timeout_ms=1,
        transactional_id=transactional_id or None,
    )
    header = 4 + 8 + 2 + len(client_id.encode()) + (1 if request.flexible else 0)
    sent = header + sum(map(len, request.body))
    largest = produce.request_overhead(client_id, transactional_id) + sum(
        produce.partition_overhead(str(batch.topic)) + len(batch.buffers[0])
        for batch in batches.values()
    )
    assert sent <= largest
    if len(batches) == 1:
        ((batch,)) = batches.values()
        assert len(batch.buffers[0]) <= produce.max_batch_bytes(
            largest, str(batch.topic), client_id=client_id, transactional_id=transactional_id
        )
