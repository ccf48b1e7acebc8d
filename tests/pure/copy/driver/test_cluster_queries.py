"""Queries to both clusters: timeouts, missing answers, unknown topics."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import ListOffsetsResponse, OffsetForLeaderEpochResponse

from sparkmirror.copy.driver import cluster_queries
from sparkmirror.copy.driver.cluster_queries import (
    FIRST_METADATA_TIMEOUT_S,
    ClusterQueries,
    LogRange,
)
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ClusterError, ClusterUnavailable
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net import broker_connections
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import (
    API_VERSION_RANGES,
    FakeBroker,
    answering_broker,
    leader_metadata,
)

LIST_OFFSETS, METADATA, OFFSET_FOR_LEADER_EPOCH = 2, 3, 23
PARTITION = TopicPartition("t", 0)


def clusters(servers: str) -> ClusterQueries:
    properties = {"bootstrap.servers": servers}
    return ClusterQueries.create(CopySettings(source=properties, target=properties))


def test_the_first_try_reports_an_unreachable_cluster_soon() -> None:
    began = time.monotonic()
    with pytest.raises(ClusterUnavailable, match=r"source: .*127.0.0.1:1: connection refused"):
        clusters("127.0.0.1:1").find_topics(["a"], ["a"])
    assert time.monotonic() - began < 25 * FIRST_METADATA_TIMEOUT_S


def test_the_first_try_reports_a_silent_host_as_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        queries, began = clusters(address), time.monotonic()
        queries.metadata_timeout_s = 0.2
        with pytest.raises(ClusterError, match=address):
            queries.find_topics(["a"], ["a"])
        assert time.monotonic() - began < 25


@pytest.fixture
def unhurried_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an attempt end that begins right before the deadline, however slow the computer is."""
    monkeypatch.setattr(broker_connections, "MIN_ATTEMPT_S", 50.0)


def test_two_unreachable_clusters_are_named_with_their_sides(unhurried_attempts: None) -> None:
    queries = clusters("127.0.0.1:1")
    queries.metadata_timeout_s = 0.1
    with pytest.raises(
        ClusterUnavailable,
        match=r"source: .*127.0.0.1:1: connection refused.*; and for target cluster target: .*:1: ",
    ):
        queries.find_topics(["a"], ["a"])


def test_each_try_doubles_the_time_limit() -> None:
    slow = clusters("127.0.0.1:1")
    slow.metadata_timeout_s = 0.01
    given = []
    for _ in range(3):
        given.append(slow.metadata_timeout_s)
        with pytest.raises(ClusterError):
            slow.find_topics(["a"], ["a"])
    assert given == [0.01, 0.02, 0.04]


EPOCH_RANGES = {**API_VERSION_RANGES, OFFSET_FOR_LEADER_EPOCH: (2, 4)}


def epoch_broker(answers: dict[int, Callable[[FakeBroker], Any]]) -> FakeBroker:
    """A broker that knows OffsetForLeaderEpoch."""
    return answering_broker(answers, ranges=EPOCH_RANGES)


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


def test_an_error_code_is_not_taken_for_an_offset(
    unhurried_attempts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_queries, "QUERY_TIMEOUT_S", 0.2)  # the code may pass: it is retried
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with epoch_broker(
        {METADATA: leader_metadata, LIST_OFFSETS: lambda _: listed(refused, -1)}
    ) as broker:
        queries = clusters(str(broker.address))
        assert queries.source_ranges([PARTITION]) == {PARTITION: refused}
        assert queries.target_ends([PARTITION]) == {PARTITION: refused}
        assert queries.offsets_for_time([PARTITION], 5) == {PARTITION: refused}
        queries.close()


def test_the_range_of_a_log_is_what_its_leader_lists() -> None:
    with epoch_broker(
        {METADATA: leader_metadata, LIST_OFFSETS: lambda _: listed(ErrorCode.NONE, 7)}
    ) as broker:
        queries = clusters(str(broker.address))
        expected = LogRange(start=7, end=7, high_watermark=7)
        assert queries.source_ranges([PARTITION]) == {PARTITION: expected}
        queries.close()


@pytest.mark.parametrize(
    ("code", "end", "found"),
    [
        pytest.param(ErrorCode.NONE, 30, {PARTITION: 30}, id="known"),
        pytest.param(ErrorCode.NONE, -1, {}, id="epoch-unknown-to-the-broker"),
        pytest.param(ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, {}, id="not-authorized"),
        pytest.param(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            -1,
            {PARTITION: ErrorCode.NOT_LEADER_OR_FOLLOWER},
            id="retriable",
        ),
    ],
)
def test_a_retriable_error_is_not_taken_for_an_unknown_epoch(
    code: ErrorCode,
    end: int,
    found: dict[TopicPartition, int | ErrorCode],
    unhurried_attempts: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_retried = code is ErrorCode.NOT_LEADER_OR_FOLLOWER  # until the timeout
    monkeypatch.setattr(cluster_queries, "QUERY_TIMEOUT_S", 0.2 if is_retried else 50.0)
    answers = {METADATA: leader_metadata, OFFSET_FOR_LEADER_EPOCH: lambda _: epoch_end(code, end)}
    with epoch_broker(answers) as broker:
        queries = clusters(str(broker.address))
        assert queries.epoch_ends({PARTITION: 1}) == found
        queries.close()


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
            id="unknown-topic",
        ),
    ],
)
def test_an_unknown_topic_is_not_taken_for_one_without_an_id(
    code: ErrorCode, topic_id: UUID | None, found: str | ErrorCode
) -> None:
    with epoch_broker({METADATA: lambda broker: leader_metadata(broker, code, topic_id)}) as broker:
        queries = clusters(str(broker.address))
        assert queries.topic_ids(queries.source, ["t"]) == {"t": found}
        queries.close()


def test_a_target_that_describes_no_configs_has_kafkas_defaults_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with answering_broker({}) as broker:
        properties = {"bootstrap.servers": str(broker.address), "max.request.size": "5000"}
        queries = ClusterQueries.create(CopySettings(source=properties, target=properties))
        (limits,) = queries.target_limits(["t"]).values()
        queries.target_limits(["t"])
        queries.close()
    assert isinstance(limits, TargetLimits)
    assert limits.max_message_bytes == 1_048_588
    assert 4000 < limits.max_batch_bytes < 5000
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 1
    assert "does not support DescribeConfigs. The configs of remote topics are unknown" in said[0]
