"""Fetch writes and reads the same bytes as kafka-python's message classes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.protocol import fetch
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.fetch import (
    VERSIONS_BY_ID,
    VERSIONS_BY_NAME,
    EpochEndOffset,
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
)
from sparkmirror.wire.protocol.topics.current_leader import BrokerNode, LeaderAndEpoch
from sparkmirror.wire.protocol.topics.topic_key import TopicKey

VERSIONS = (*VERSIONS_BY_NAME, *VERSIONS_BY_ID)
ID = UUID("00112233-4455-6677-8899-aabbccddeeff").bytes
OTHER_ID = UUID(int=7).bytes

_Topic = FetchRequest.FetchTopic
_Partition = _Topic.FetchPartition
_Forgotten = FetchRequest.ForgottenTopic
_ResponseTopic = FetchResponse.FetchableTopicResponse
_ResponsePartition = _ResponseTopic.PartitionData

offsets = st.integers(-1, 2**63 - 1)
epochs = st.integers(-1, 2**31 - 1)


def topics_of(version: int) -> tuple[TopicKey, TopicKey]:
    return (ID, OTHER_ID) if version in VERSIONS_BY_ID else ("orders", "größe-µ")


def kafka_python_topic(make: Callable[..., Any], topic: TopicKey, partitions: list[Any]) -> Any:
    if isinstance(topic, bytes):
        return make(topic_id=UUID(bytes=topic), partitions=partitions)
    return make(topic=topic, partitions=partitions)


def kafka_python_forgotten(limits: FetchParams) -> list[Any]:
    """Return the forgotten topics of a session, with kafka-python's classes."""
    topics: dict[TopicKey, list[int]] = {}
    for topic, partition in limits.forgotten:
        topics.setdefault(topic, []).append(partition)
    return [kafka_python_topic(_Forgotten, topic, places) for topic, places in topics.items()]


def kafka_python_request(
    version: int, limits: FetchParams, positions: Sequence[FetchPosition]
) -> bytes:
    """Return the same request, written by kafka-python."""
    topics: dict[TopicKey, list[Any]] = {}
    for p in positions:
        topics.setdefault(p.topic, []).append(
            _Partition(
                partition=p.partition,
                current_leader_epoch=p.leader_epoch,
                fetch_offset=p.offset,
                last_fetched_epoch=p.last_fetched_epoch,
                log_start_offset=-1,
                partition_max_bytes=p.max_bytes,
            )
        )
    message: Any = FetchRequest(
        replica_id=-1,
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=int(limits.read_committed),
        session_id=limits.session[0],
        session_epoch=limits.session[1],
        topics=[kafka_python_topic(_Topic, topic, parts) for topic, parts in topics.items()],
        forgotten_topics_data=kafka_python_forgotten(limits),
        rack_id=limits.rack,
    )
    encoded: bytes = message.encode(version=version)
    return encoded


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=8)
@given(data=st.data())
def test_a_request_has_the_same_bytes_as_kafka_pythons(version: int, data: st.DataObject) -> None:
    topics = st.sampled_from(topics_of(version))
    position = st.builds(
        FetchPosition,
        topics,
        st.integers(0, 300),
        offsets,
        st.integers(0, 2**31 - 1),
        epochs if version >= 9 else st.just(-1),
        epochs if version >= 12 else st.just(-1),
    )
    positions = data.draw(st.lists(position, max_size=150 if data.draw(st.booleans()) else 5))
    limits = FetchParams(
        max_wait_ms=data.draw(st.integers(0, 10_000)),
        max_bytes=data.draw(st.integers(0, 2**31 - 1)),
        read_committed=data.draw(st.booleans()),
        rack=data.draw(st.text(max_size=5)),
        session=data.draw(st.tuples(st.integers(0, 2**31 - 1), st.integers(-1, 2**31 - 1))),
        forgotten=tuple(data.draw(st.lists(st.tuples(topics, st.integers(0, 300)), max_size=5))),
    )
    request = fetch_request(version, limits, positions)
    assert b"".join(request.body) == kafka_python_request(version, limits, positions)
    assert request.flexible is (version >= 12)


def read(version: int, body: bytes) -> FetchResponseData:
    """Read a response from a frame with four more bytes before it."""
    frame = BufferPool().allocate(len(body) + 4)
    frame.view[4:] = body
    return fetch_request(version, FetchParams(), []).decode(frame, 4)


def kafka_python_partition(version: int, **parts: Any) -> Any:
    if version < 12:
        parts.pop("diverging_epoch", None)
        parts.pop("current_leader", None)
    return _ResponsePartition(**parts)


def responses(version: int) -> st.SearchStrategy[Any]:
    """Responses with kafka-python's classes."""
    aborted = st.builds(
        _ResponsePartition.AbortedTransaction, producer_id=offsets, first_offset=offsets
    )
    partition = st.builds(
        kafka_python_partition,
        st.just(version),
        partition_index=st.integers(0, 1000),
        error_code=st.sampled_from([0, 1, 6, 100]),
        high_watermark=offsets,
        last_stable_offset=offsets,
        log_start_offset=offsets,
        aborted_transactions=st.none() | st.lists(aborted, max_size=3),
        preferred_read_replica=st.just(-1) if version < 11 else st.integers(-1, 9),
        records=st.none() | st.binary(max_size=300),
        diverging_epoch=st.builds(
            _ResponsePartition.EpochEndOffset, epoch=epochs, end_offset=offsets
        ),
        current_leader=st.builds(
            _ResponsePartition.LeaderIdAndEpoch, leader_id=epochs, leader_epoch=epochs
        ),
    )
    topic = st.builds(
        kafka_python_topic,
        st.just(_ResponseTopic),
        st.sampled_from(topics_of(version)),
        st.lists(partition, max_size=4),
    )
    return st.builds(
        FetchResponse,
        throttle_time_ms=st.integers(0, 2**31 - 1),
        error_code=st.integers(-1, 120) if version >= 7 else st.just(0),
        session_id=st.just(0),
        responses=st.lists(topic, max_size=3),
    )


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=10)
@given(data=st.data())
def test_a_response_is_read_as_kafka_python_wrote_it(version: int, data: st.DataObject) -> None:
    message = data.draw(responses(version))
    answer = read(version, message.encode(version=version))
    assert answer.throttle_time_ms == message.throttle_time_ms
    assert answer.error_code == message.error_code
    expected = [(topic, partition) for topic in message.responses for partition in topic.partitions]
    assert len(answer.partitions) == len(expected)
    for got, (topic, partition) in zip(answer.partitions, expected, strict=True):
        assert got.topic == (topic.topic_id.bytes if version in VERSIONS_BY_ID else topic.topic)
        assert got[1:6] == (
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
        )
        assert list(got.aborted_transactions) == [
            AbortedTransaction(a.first_offset, a.producer_id)
            for a in partition.aborted_transactions or ()
        ]
        assert got.preferred_read_replica == partition.preferred_read_replica
        assert got.records == (partition.records or b"")
        if version >= 12:
            leader = partition.current_leader
            named = LeaderAndEpoch(leader.leader_id, leader.leader_epoch)
            assert got.current_leader == (None if leader.leader_id == -1 else named)
            ends = partition.diverging_epoch
            assert got.diverging_epoch in (None, EpochEndOffset(ends.epoch, ends.end_offset))


def test_a_former_leader_names_the_new_leader_and_its_address() -> None:
    node = FetchResponse.NodeEndpoint(node_id=3, host="b3.example", port=9093, rack="r1")
    other = FetchResponse.NodeEndpoint(node_id=4, host="b4.example", port=9094, rack=None)
    partition = _ResponsePartition(
        partition_index=0,
        error_code=6,
        high_watermark=-1,
        current_leader=_ResponsePartition.LeaderIdAndEpoch(leader_id=3, leader_epoch=12),
        diverging_epoch=_ResponsePartition.EpochEndOffset(epoch=4, end_offset=99),
        records=None,
    )
    message: Any = FetchResponse(
        responses=[_ResponseTopic(topic_id=UUID(bytes=ID), partitions=[partition])],
        node_endpoints=[node, other],
    )
    answer = read(16, message.encode(version=16))
    assert answer.partitions[0].current_leader == LeaderAndEpoch(3, 12)
    assert answer.partitions[0].diverging_epoch == EpochEndOffset(4, 99)
    assert answer.node_endpoints == (
        BrokerNode(3, "b3.example", 9093, "r1"),
        BrokerNode(4, "b4.example", 9094, None),
    )


def test_unknown_tagged_fields_are_ignored() -> None:
    partition = (
        b"\x00\x00\x00\x05\x00\x00"  # index 5, no error
        + (42).to_bytes(8, "big") * 3
        + b"\x02"  # one aborted transaction, with a tag of its own
        + (7).to_bytes(8, "big")
        + (40).to_bytes(8, "big")
        + b"\x01\x05\x02ab"
        + b"\xff\xff\xff\xff"  # no preferred replica
        + b"\x04abc"
        + b"\x02\x01\x08\x00\x00\x00\x03\x00\x00\x00\x0c\xe8\x07\x03xyz"  # leader, and tag 1000
    )
    body = (
        b"\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x02"
        + ID
        + b"\x02"
        + partition
        + b"\x01\x63\x01z"
        + b"\x01\x64\x00"
    )
    answer = read(13, body)
    (got,) = answer.partitions
    assert (got.partition, got.high_watermark, bytes(got.records)) == (5, 42, b"abc")
    assert got.aborted_transactions == [AbortedTransaction(40, 7)]
    assert got.current_leader == LeaderAndEpoch(3, 12)
    assert answer.throttle_time_ms == 9


@pytest.mark.parametrize("version", VERSIONS)
def test_a_truncated_response_is_refused(version: int) -> None:
    aborted = _ResponsePartition.AbortedTransaction(producer_id=7, first_offset=40)
    partition = kafka_python_partition(
        version,
        partition_index=5,
        aborted_transactions=[aborted],
        records=b"a batch",
        current_leader=_ResponsePartition.LeaderIdAndEpoch(leader_id=3, leader_epoch=12),
    )
    topics = [
        kafka_python_topic(_ResponseTopic, topic, [partition]) for topic in topics_of(version)
    ]
    message: Any = FetchResponse(responses=topics)
    whole: bytes = message.encode(version=version)
    assert len(read(version, whole).partitions) == 2
    for length in range(len(whole)):
        with pytest.raises((ValueError, IndexError, struct.error)):
            read(version, whole[:length])


def test_records_are_views_of_the_frame() -> None:
    partition = _ResponsePartition(partition_index=0, records=b"batch")
    message: Any = FetchResponse(responses=[_ResponseTopic(topic="t", partitions=[partition])])
    answer = read(11, message.encode(version=11))
    answer.partitions[0].records[0:1] = b"B"
    assert bytes(answer.frame.view).endswith(b"Batch")


def test_a_request_by_id_takes_no_names_and_by_name_no_ids() -> None:
    with pytest.raises(ValueError, match="needs topic ids"):
        fetch_request(13, FetchParams(), [FetchPosition("orders", 0, 0, 1)])
    with pytest.raises(ValueError, match="needs names"):
        fetch_request(11, FetchParams(), [FetchPosition(ID, 0, 0, 1)])


@pytest.mark.parametrize(
    ("offered", "by_id", "chosen"),
    [
        ((0, 10), False, 10),
        ((0, 11), False, 11),
        ((0, 12), False, 12),
        ((0, 13), True, 13),
        ((0, 15), True, 13),
        ((0, 17), True, 16),
        ((4, 18), True, 16),
        ((4, 18), False, 12),
    ],
)
def test_the_highest_shared_version_is_chosen(
    offered: tuple[int, int], by_id: bool, chosen: int
) -> None:
    versions = NodeApiVersions(cluster="a", ranges={1: offered})
    assert fetch.fetch_version(versions, by_id=by_id) == chosen
    assert fetch.supports_topic_ids(versions) is (offered[1] >= 13)


def test_an_unsupported_version_is_an_error_with_the_versions_of_the_broker() -> None:
    versions = NodeApiVersions(cluster="a", ranges={1: (0, 5)})
    with pytest.raises(UnsupportedByBroker, match="supports Fetch in versions 0 to 5"):
        fetch.fetch_version(versions, by_id=False)
    with pytest.raises(UnsupportedByBroker, match="does not support Fetch"):
        fetch.fetch_version(NodeApiVersions(cluster="a", ranges={}), by_id=True)
