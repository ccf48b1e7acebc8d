"""Topics that a broker does not know yet."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.cluster import describe_topics, produce_and_consume, topic_auto_creation_request
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import await_new_topic
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.cluster.topic_auto_creation_request import request_auto_creation
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    TopicMissing,
)
from sparkmirror.model import TopicPartition
from sparkmirror.store.topic_reader import topic_partitions
from tests.support.kafka.fake_broker import (
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    response_reply,
)

LIST_OFFSETS, METADATA, API_VERSIONS = 2, 3, 18


class BrokerWithNewTopic:
    """A broker that knows the topic t from a certain metadata request on. The topic is empty."""

    def __init__(self, known_from_request: float) -> None:
        self.known_from_request = known_from_request
        self.metadata_requests = 0
        self.broker = FakeBroker(itertools.repeat(self._reply), sends_api_versions=False)

    def _reply(self, request: ReceivedRequest) -> bytes:
        return self._choose_reply(request.api_key)(request)

    def _choose_reply(self, api_key: int) -> Reply:
        if api_key == API_VERSIONS:
            return api_versions_reply()
        if api_key == LIST_OFFSETS:
            topic = ListOffsetsResponse.ListOffsetsTopicResponse
            partition = topic.ListOffsetsPartitionResponse(
                partition_index=0, error_code=0, offset=0, timestamp=-1, leader_epoch=0
            )
            return response_reply(
                ListOffsetsResponse(topics=[topic(name="t", partitions=[partition])])
            )
        self.metadata_requests += 1
        known = self.metadata_requests >= self.known_from_request
        return response_reply(self._metadata(known=known))

    def _metadata(self, *, known: bool) -> MetadataResponse:
        host, port = self.broker.address
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(
            partition_index=0, leader_id=0, replica_nodes=[0], isr_nodes=[0], offline_replicas=[]
        )
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=0, host=host, port=port)],
            topics=[
                topic(
                    name="t",
                    error_code=0 if known else 3,
                    partitions=[partition] if known else [],
                )
            ],
            cluster_id="c",
            controller_id=0,
        )


@contextmanager
def access_to(broker: FakeBroker) -> Iterator[ClusterAccess]:
    with broker:
        yield ClusterAccess.from_properties("west", {"bootstrap.servers": str(broker.address)})


def test_a_topic_that_is_late_in_metadata_is_read() -> None:
    new = BrokerWithNewTopic(known_from_request=3)
    with access_to(new.broker) as access:
        assert read_topic(access, "t") == []


class SimulatedTime:
    """Time that passes in `sleep` only."""

    def __init__(self) -> None:
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> SimulatedTime:
    """The time of the wait for a new topic."""
    simulated = SimulatedTime()
    monkeypatch.setattr(describe_topics, "time", simulated)
    return simulated


@pytest.mark.parametrize(("wait_s", "timeout_s"), [(0.0, 50.0), (3.0, 50.0), (90.0, 50.0)])
def test_a_topic_that_stays_unknown_is_missing_after_the_wait(
    wait_s: float, timeout_s: float, waiting: SimulatedTime
) -> None:
    new = BrokerWithNewTopic(known_from_request=float("inf"))
    with access_to(new.broker) as access, pytest.raises(TopicMissing):
        read_topic(access, "t", timeout_s, new_topic_wait_s=wait_s)
    assert min(wait_s, 25) <= waiting.slept_s < min(wait_s, timeout_s) + 0.001
    assert (new.metadata_requests > 1) == (wait_s > 0)


def test_the_partitions_of_a_topic_that_brokers_learn_of_late_are_found() -> None:
    new = BrokerWithNewTopic(known_from_request=3)
    with access_to(new.broker) as access, closing(access.new_router()) as router:
        assert topic_partitions(router, "t") == [TopicPartition("t", 0)]
        assert topic_partitions(router, "t") == [TopicPartition("t", 0)]
    assert new.metadata_requests == 3


def test_only_a_missing_topic_and_a_retriable_error_are_awaited() -> None:
    errors: list[ClusterError] = [
        TopicMissing("west", "there is no topic t"),
        ClusterUnavailable("west", "t has no leader"),
        NotAuthorized("west", "no right to describe t"),
    ]
    with pytest.raises(NotAuthorized):
        await_new_topic(partial(_raise_next, errors), wait_s=50.0)
    assert errors == []


def _raise_next(errors: list[ClusterError]) -> None:
    raise errors.pop(0)


def test_records_for_a_topic_that_stays_unknown_are_refused_after_the_wait(
    waiting: SimulatedTime,
) -> None:
    new = BrokerWithNewTopic(known_from_request=float("inf"))
    with access_to(new.broker) as access, pytest.raises(TopicMissing):
        produce_and_consume.produce_records(access, "t", [])
    assert new.metadata_requests > 1


def test_auto_creation_waits_for_leaders_within_its_own_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never, late = BrokerWithNewTopic(float("inf")), BrokerWithNewTopic(2)
    for new, limit_s, expected in ((never, 0.3, frozenset[str]()), (late, 50.0, frozenset({"t"}))):
        monkeypatch.setattr(topic_auto_creation_request, "AUTO_CREATION_TIMEOUT_S", limit_s)
        with access_to(new.broker) as access:
            router = access.new_router()
            assert request_auto_creation(router, ["t"]) == expected
            router.close()


def test_auto_creation_ends_after_its_timeout() -> None:
    started = time.monotonic()
    with access_to(FakeBroker()) as access:
        router = access.new_router()
        with pytest.raises(ClusterTimeout):
            request_auto_creation(router, ["t"], timeout_s=0.5)
        router.close()
    assert time.monotonic() - started < 25
