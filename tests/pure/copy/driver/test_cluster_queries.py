"""Looking for clusters that are not there."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.copy.driver.cluster_queries import (
    FIRST_METADATA_TIMEOUT_S,
    ClusterQueries,
    LogRange,
)
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ClusterError, ClusterUnavailable
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import (
    API_VERSION_RANGES,
    FakeBroker,
    ReceivedRequest,
    api_versions_reply,
    response_reply,
)

LIST_OFFSETS, METADATA, OFFSET_FOR_LEADER_EPOCH = 2, 3, 23
PARTITION = TopicPartition("t", 0)


def clusters(servers: str) -> ClusterQueries:
    there = {"bootstrap.servers": servers}
    return ClusterQueries.create(CopySettings(source=there, target=there))


def test_a_cluster_that_is_not_there_is_told_soon_the_first_time() -> None:
    began = time.monotonic()
    with pytest.raises(ClusterUnavailable, match=r"source: .*127.0.0.1:1: connection refused"):
        clusters("127.0.0.1:1").find_topics(["a"], ["a"])
    assert time.monotonic() - began < 25 * FIRST_METADATA_TIMEOUT_S


def test_a_mute_host_is_told_as_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        with pytest.raises(ClusterError, match=f"127.0.0.1:{mute.getsockname()[1]}"):
            clusters(f"127.0.0.1:{mute.getsockname()[1]}").find_topics(["a"], ["a"])
        assert time.monotonic() - began < 25 * FIRST_METADATA_TIMEOUT_S


def test_a_slow_cluster_is_given_more_time_with_each_try() -> None:
    slow = clusters("127.0.0.1:1")
    slow.metadata_timeout_s = 0.01
    given = []
    for _ in range(3):
        given.append(slow.metadata_timeout_s)
        with pytest.raises(ClusterError):
            slow.find_topics(["a"], ["a"])
    assert given == [0.01, 0.02, 0.04]


def talker(answers: dict[int, Callable[[FakeBroker], Any]]) -> FakeBroker:
    """A broker that answers every question of a kind in the same way."""

    def reply(heard: ReceivedRequest) -> bytes:
        if heard.api_key in answers:
            return response_reply(answers[heard.api_key](broker))(heard)
        return api_versions_reply({**API_VERSION_RANGES, OFFSET_FOR_LEADER_EPOCH: (2, 4)})(heard)

    broker = FakeBroker(itertools.repeat(reply), greets=False)
    return broker


def metadata(
    broker: FakeBroker, code: ErrorCode = ErrorCode.NONE, topic_id: UUID | None = None
) -> Any:
    topic = MetadataResponse.MetadataResponseTopic
    led = topic.MetadataResponsePartition(
        partition_index=0, leader_id=1, leader_epoch=1, replica_nodes=[], isr_nodes=[]
    )
    found = topic(error_code=code.value, name="t", topic_id=topic_id or UUID(int=0))
    found.partitions = [led]
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=1, host=broker.address.host, port=broker.address.port
            )
        ],
        topics=[found],
        cluster_id="c",
        controller_id=1,
    )


def epoch_end(code: ErrorCode, end: int) -> Any:
    topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    found = topic.EpochEndOffset(error_code=code.value, partition=0, leader_epoch=1, end_offset=end)
    return OffsetForLeaderEpochResponse(topics=[topic(topic="t", partitions=[found])])


def listed(code: ErrorCode, offset: int) -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    found = topic.ListOffsetsPartitionResponse(
        partition_index=0, error_code=code.value, timestamp=-1, offset=offset, leader_epoch=-1
    )
    return ListOffsetsResponse(topics=[topic(name="t", partitions=[found])])


def test_a_leader_that_refuses_to_say_does_not_say_that_a_log_ends_before_it_begins() -> None:
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with talker({METADATA: metadata, LIST_OFFSETS: lambda _: listed(refused, -1)}) as broker:
        there = clusters(str(broker.address))
        assert there.source_ranges([PARTITION]) == {PARTITION: refused}
        assert there.target_ends([PARTITION]) == {PARTITION: refused}
        assert there.offsets_for_time([PARTITION], 5) == {PARTITION: refused}
        there.close()


def test_a_log_reaches_from_where_to_where_its_leader_says() -> None:
    with talker({METADATA: metadata, LIST_OFFSETS: lambda _: listed(ErrorCode.NONE, 7)}) as broker:
        there = clusters(str(broker.address))
        reach = LogRange(start=7, end=7, high_watermark=7)
        assert there.source_ranges([PARTITION]) == {PARTITION: reach}
        there.close()


@pytest.mark.parametrize(
    ("code", "end", "found"),
    [
        pytest.param(ErrorCode.NONE, 30, {PARTITION: 30}, id="known"),
        pytest.param(ErrorCode.NONE, -1, {}, id="an-epoch-nobody-remembers"),
        pytest.param(ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, {}, id="not-for-us-to-know"),
        pytest.param(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            -1,
            {PARTITION: ErrorCode.NOT_LEADER_OR_FOLLOWER},
            id="asked-again-later",
        ),
    ],
)
def test_an_epoch_that_could_not_be_asked_about_is_not_one_that_nobody_knows(
    code: ErrorCode, end: int, found: dict[TopicPartition, int | ErrorCode]
) -> None:
    answers = {METADATA: metadata, OFFSET_FOR_LEADER_EPOCH: lambda _: epoch_end(code, end)}
    with talker(answers) as broker:
        there = clusters(str(broker.address))
        assert there.epoch_ends({PARTITION: 1}) == found
        there.close()


@pytest.mark.parametrize(
    ("code", "topic_id", "found"),
    [
        pytest.param(ErrorCode.NONE, UUID(int=5), UUID(int=5).hex, id="known"),
        pytest.param(ErrorCode.LEADER_NOT_AVAILABLE, UUID(int=5), UUID(int=5).hex, id="leaderless"),
        pytest.param(ErrorCode.NONE, None, "", id="older-brokers"),
        pytest.param(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            None,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            id="not-there",
        ),
    ],
)
def test_a_topic_that_a_broker_does_not_know_is_not_one_without_an_id(
    code: ErrorCode, topic_id: UUID | None, found: str | ErrorCode
) -> None:
    with talker({METADATA: lambda broker: metadata(broker, code, topic_id)}) as broker:
        there = clusters(str(broker.address))
        assert there.topic_ids(there.source, ["t"]) == {"t": found}
        there.close()
