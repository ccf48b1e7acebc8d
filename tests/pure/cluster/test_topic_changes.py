"""Topics are created and deleted, although responses are lost and the controller moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.admin import CreateTopicsResponse, DeleteTopicsResponse
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.topic_changes import create_topics, delete_topics
from sparkmirror.errors import ClusterTimeout, TopicMissing, TopicRejected
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import Router
from tests.support.kafka.fake_broker import (
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    close_connection,
    response_reply,
)

METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 3, 18, 19, 20
RANGES = {METADATA: (0, 12), API_VERSIONS: (0, 3), CREATE_TOPICS: (2, 7), DELETE_TOPICS: (1, 6)}
EXISTS, MISSING, TIMED_OUT, NOT_CONTROLLER, THROTTLED = 36, 3, 7, 41, 89


class FakeController:
    """A broker with topics. It answers changes with `changes`, one after the other."""

    def __init__(self, changes: Sequence[Reply], topics: Sequence[str] = ()) -> None:
        self.topics = topics
        self._changes = iter(changes)
        self.broker = FakeBroker(iter(lambda: self._reply, None), sends_api_versions=False)

    def _reply(self, request: ReceivedRequest) -> bytes:
        if request.api_key == API_VERSIONS:
            return api_versions_reply(RANGES)(request)
        if request.api_key == METADATA:
            return response_reply(self._metadata())(request)
        return next(self._changes)(request)

    def _metadata(self) -> MetadataResponse:
        host, port = self.broker.address
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(
            partition_index=0, leader_id=0, replica_nodes=[0], isr_nodes=[0], offline_replicas=[]
        )
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=0, host=host, port=port)],
            topics=[topic(name=name, partitions=[partition]) for name in self.topics],
            cluster_id="c",
            controller_id=0,
        )

    def sent(self, api_key: int) -> list[bytes]:
        """Return the bodies of the requests with this API key."""
        return [r.body for r in self.broker.requests if r.api_key == api_key]


@contextmanager
def router_to(controller: FakeController) -> Iterator[Router]:
    with controller.broker:
        router = Router(ClientConfig(cluster="west"), [controller.broker.address])
        try:
            yield router
        finally:
            router.close()


def created(**codes: int) -> Reply:
    topic: Any = CreateTopicsResponse.CreatableTopicResult
    return response_reply(
        CreateTopicsResponse(
            throttle_time_ms=0,
            topics=[
                topic(name=name, error_code=code, error_message=None, configs=[])
                for name, code in codes.items()
            ],
        )
    )


def deleted(**codes: int) -> Reply:
    topic: Any = DeleteTopicsResponse.DeletableTopicResult
    return response_reply(
        DeleteTopicsResponse(
            throttle_time_ms=0,
            responses=[
                topic(name=name, error_code=code, error_message=None)
                for name, code in codes.items()
            ],
        )
    )


def test_only_topics_with_a_retriable_error_are_sent_again() -> None:
    changes = [created(done=0, throttled=THROTTLED, odd=17), created(throttled=0)]
    controller = FakeController(changes, topics=["done", "throttled"])
    with router_to(controller) as router:
        result = create_topics(router, [NewTopic(name=n) for n in ("done", "throttled", "odd")])
    assert result.unconfirmed == frozenset()
    assert {name: type(error) for name, error in result.failed.items()} == {"odd": TopicRejected}
    first, second = controller.sent(CREATE_TOPICS)
    assert b"done" in first
    assert b"throttled" in second
    assert b"done" not in second


@pytest.mark.parametrize("outcome_unknown", [close_connection, created(lost=TIMED_OUT)])
def test_it_is_unknown_who_created_a_topic_that_exists_after_a_lost_response(
    outcome_unknown: Reply,
) -> None:
    controller = FakeController([outcome_unknown, created(lost=EXISTS)], topics=["lost"])
    with router_to(controller) as router:
        assert create_topics(router, [NewTopic(name="lost")]) == ({}, frozenset({"lost"}))


@pytest.mark.parametrize("not_done", [THROTTLED, NOT_CONTROLLER])
def test_a_topic_that_exists_after_an_answer_that_nothing_was_done_is_rejected(
    not_done: int,
) -> None:
    controller = FakeController([created(old=not_done), created(old=EXISTS)], topics=["old"])
    with router_to(controller) as router:
        failed = create_topics(router, [NewTopic(name="old")]).failed
    assert isinstance(failed["old"], TopicRejected)


def test_a_topic_that_exists_at_the_first_try_is_rejected() -> None:
    controller = FakeController([created(old=EXISTS)], topics=["old"])
    with router_to(controller) as router:
        assert isinstance(
            create_topics(router, [NewTopic(name="old")]).failed["old"], TopicRejected
        )


def test_a_request_is_sent_again_if_the_broker_is_not_the_controller() -> None:
    controller = FakeController([created(new=NOT_CONTROLLER), created(new=0)], topics=["new"])
    with router_to(controller) as router:
        assert create_topics(router, [NewTopic(name="new")]) == ({}, frozenset())
    lookups = [r.api_key for r in controller.broker.requests].count(METADATA)
    assert lookups >= 3  # the controller before each try, the leaders at the end


def test_a_topic_that_is_missing_after_a_lost_response_counts_as_deleted() -> None:
    controller = FakeController([close_connection, deleted(lost=MISSING)])
    with router_to(controller) as router:
        assert delete_topics(router, ["lost"]) == {}


def test_a_topic_that_is_missing_at_the_first_try_is_an_error() -> None:
    controller = FakeController([deleted(never=MISSING)])
    with router_to(controller) as router:
        assert isinstance(delete_topics(router, ["never"])["never"], TopicMissing)


def test_a_retriable_error_is_the_error_of_the_topic_after_the_timeout() -> None:
    controller = FakeController([created(slow=TIMED_OUT)] * 50)
    with router_to(controller) as router:
        failed = create_topics(router, [NewTopic(name="slow")], timeout_s=3.0).failed
    assert isinstance(failed["slow"], ClusterTimeout)
