"""The router finds leaders, coordinators and the controller, also after they move or fail."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from kafka.protocol.admin import DescribeClusterResponse
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse
from kafka.protocol.producer import InitProducerIdResponse
from kafka.protocol.sasl import SaslHandshakeResponse

from sparkmirror.backoff import Backoff
from sparkmirror.cluster.describe_cluster import describe_cluster
from sparkmirror.cluster.describe_topics import describe_topics
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import (
    CallCancelled,
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    RequestRefused,
    UnsupportedByBroker,
)
from sparkmirror.model import TopicPartition
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.wire.net import broker_connections
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import AnyBroker, Controller, LeaderOf, NodeWithId, Router
from sparkmirror.wire.protocol.apis import METADATA as METADATA_API
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, init_producer_id
from sparkmirror.wire.protocol.topics.metadata_snapshot import metadata_request
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from tests.support.kafka.fake_broker import (
    API_VERSION_RANGES,
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    close_connection,
    no_reply,
    response_reply,
)
from tests.support.reserved_port import reserved_port
from tests.support.waiting import wait_until

PARTITION = TopicPartition("t", 0)
METADATA, LIST_OFFSETS, FIND_COORDINATOR, INIT_PRODUCER_ID, API_VERSIONS = 3, 2, 10, 22, 18
DESCRIBE_CLUSTER = 60
CLIENT = ClientConfig(cluster="primary")


@pytest.fixture
def unhurried_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an attempt end that begins right before the deadline, however slow the computer is."""
    monkeypatch.setattr(broker_connections, "MIN_ATTEMPT_S", 50.0)


@contextmanager
def dead_address() -> Iterator[Address]:
    """An address where nothing listens."""
    with reserved_port() as port:
        yield Address("127.0.0.1", port)


class FakeCluster:
    """Fake brokers with one rule for each API: from the index of a broker to its reply."""

    def __init__(self, brokers: list[FakeBroker]) -> None:
        self.brokers = brokers
        self.leader = 0
        self.coordinator = 0
        self.controller = 0
        self.rules: dict[int, Callable[[int], Reply]] = {
            API_VERSIONS: lambda index: api_versions_reply(),
            METADATA: lambda index: response_reply(self.metadata_response()),
            FIND_COORDINATOR: lambda index: response_reply(self.find_coordinator_response()),
        }
        self.received_requests: list[tuple[int, int]] = []
        """The index of the broker and the API key of each request except ApiVersions."""

    def reply(self, index: int, received: ReceivedRequest) -> bytes:
        if received.api_key != API_VERSIONS:
            self.received_requests.append((index, received.api_key))
        return self.rules[received.api_key](index)(received)

    def address(self, index: int) -> Address:
        return self.brokers[index].address

    def metadata_response(self, code: int = 0) -> MetadataResponse:
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(
            partition_index=0,
            leader_id=self.leader,
            leader_epoch=self.leader,
            replica_nodes=[],
            isr_nodes=[],
        )
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=index, host=self.address(index).host, port=self.address(index).port
                )
                for index in range(len(self.brokers))
            ],
            topics=[topic(error_code=0, name="t", partitions=[partition])],
            cluster_id="c",
            controller_id=self.controller,
            error_code=code,
        )

    def find_coordinator_response(self) -> FindCoordinatorResponse:
        one = FindCoordinatorResponse.Coordinator(
            key="id",
            node_id=self.coordinator,
            host=self.address(self.coordinator).host,
            port=self.address(self.coordinator).port,
            error_code=0,
        )
        return FindCoordinatorResponse(coordinators=[one])

    def receivers_of(self, api_key: int) -> list[int]:
        return [index for index, key in self.received_requests if key == api_key]


@contextmanager
def fake_cluster(size: int) -> Iterator[FakeCluster]:
    cluster: FakeCluster

    def serve(index: int) -> Iterator[Reply]:
        return itertools.repeat(lambda received: cluster.reply(index, received))

    with ExitStack() as stack:
        brokers = [FakeBroker(serve(index), sends_api_versions=False) for index in range(size)]
        cluster = FakeCluster([stack.enter_context(broker) for broker in brokers])
        yield cluster


@contextmanager
def router_to(
    cluster: FakeCluster, *bootstrap: Address, timeout_s: float = 50.0
) -> Iterator[Router]:
    router = Router(CLIENT, bootstrap or [cluster.address(0)], request_timeout_s=timeout_s)
    yield router
    router.close()


def list_offsets_response(code: int = 0) -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = topic.ListOffsetsPartitionResponse(
        partition_index=0, error_code=code, offset=42, timestamp=-1, leader_epoch=0
    )
    return ListOffsetsResponse(topics=[topic(name="t", partitions=[partition])])


def init_producer_id_response(code: int = 0) -> Any:
    return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=3)


def test_a_request_about_a_partition_goes_to_its_leader() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        cluster.leader = 1
        cluster.rules[LIST_OFFSETS] = lambda index: response_reply(list_offsets_response())
        outcome = list_offsets(router, {PARTITION: LATEST})[PARTITION]
        assert outcome.value is not None
        assert outcome.value.offset == 42
        assert cluster.receivers_of(LIST_OFFSETS) == [1]


def test_a_leader_that_moved_is_found_again() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:

        def moved(index: int) -> Reply:
            cluster.leader = 1
            return response_reply(list_offsets_response(0 if index == 1 else 6))

        cluster.rules[LIST_OFFSETS] = moved
        assert list_offsets(router, {PARTITION: LATEST})[PARTITION].code is ErrorCode.NONE
        assert cluster.receivers_of(LIST_OFFSETS) == [0, 1]


def test_a_request_is_sent_again_if_the_leader_closes_the_connection() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        replies = iter([close_connection, response_reply(list_offsets_response())])
        cluster.rules[LIST_OFFSETS] = lambda index: next(replies)
        assert list_offsets(router, {PARTITION: LATEST})[PARTITION].code is ErrorCode.NONE
        assert cluster.brokers[0].connections == 2


def test_a_partition_whose_leader_is_silent_has_an_error_code_after_the_timeout() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        router.refresh(["t"])
        cluster.rules[LIST_OFFSETS] = lambda index: no_reply
        started = time.monotonic()
        outcome = list_offsets(router, {PARTITION: LATEST}, timeout_s=0.3)[PARTITION]
        assert outcome.code is ErrorCode.NETWORK_EXCEPTION
        assert time.monotonic() - started < 25


def test_an_error_code_that_is_tried_again_is_that_of_the_partition_after_the_timeout(
    unhurried_attempts: None,
) -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        cluster.rules[LIST_OFFSETS] = lambda index: response_reply(list_offsets_response(6))
        outcome = list_offsets(router, {PARTITION: LATEST}, timeout_s=0.3)[PARTITION]
        assert outcome.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_too_old_for_the_request_is_an_error() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        cluster.rules[API_VERSIONS] = lambda index: api_versions_reply(
            {METADATA: (0, 13), 18: (0, 4)}
        )
        with pytest.raises(UnsupportedByBroker, match="does not support ListOffsets"):
            list_offsets(router, {PARTITION: LATEST})


def test_connected_brokers_get_their_request_before_new_connections_open() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        soon = time.monotonic() + 50
        connected = router.connections.get(cluster.address(1), soon)
        request = METADATA_API.build_request(metadata_request(()), connected.api_versions)
        wanted = {cluster.address(index): lambda link: request for index in (0, 1)}
        receivers_before: list[list[int]] = []

        def slow_api_versions(index: int) -> Reply:
            with suppress(AssertionError):
                wait_until(
                    lambda: bool(cluster.receivers_of(METADATA)),
                    "the connected broker to receive its request",
                    10,
                )
            receivers_before.append(cluster.receivers_of(METADATA))
            return api_versions_reply()

        cluster.rules[API_VERSIONS] = slow_api_versions
        assert len(router.connections.request_all(wanted, soon)) == 2
        assert receivers_before == [[1]]


def test_a_coordinator_that_moved_is_found_again() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:

        def moved(index: int) -> Reply:
            cluster.coordinator = 1
            return response_reply(init_producer_id_response(0 if index == 1 else 16))

        cluster.rules[INIT_PRODUCER_ID] = moved
        assert init_producer_id(router, transactional_id="id") == ProducerIdAndEpoch(7, 3)
        assert cluster.receivers_of(INIT_PRODUCER_ID) == [0, 1]
        assert init_producer_id(router, transactional_id="id") == ProducerIdAndEpoch(7, 3)
        assert len(cluster.receivers_of(FIND_COORDINATOR)) == 2


def test_a_coordinator_that_stops_is_looked_up_again() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:

        def stopped(index: int) -> Reply:
            cluster.coordinator = 1
            return response_reply(init_producer_id_response()) if index else close_connection

        cluster.rules[INIT_PRODUCER_ID] = stopped
        assert init_producer_id(router, transactional_id="id") == ProducerIdAndEpoch(7, 3)
        assert cluster.receivers_of(INIT_PRODUCER_ID) == [0, 1]


@pytest.mark.parametrize(
    ("code", "kind", "timeout_s"),
    [(90, RequestRefused, 50), (53, NotAuthorized, 50), (51, ClusterUnavailable, 1)],
)
def test_an_error_code_that_persists_becomes_its_error(
    code: int, kind: type[Exception], timeout_s: float
) -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        cluster.rules[INIT_PRODUCER_ID] = lambda index: response_reply(
            init_producer_id_response(code)
        )
        with pytest.raises(kind):
            init_producer_id(router, transactional_id="id", timeout_s=timeout_s)


def test_the_router_ignores_one_dead_bootstrap_address() -> None:
    with dead_address() as dead, fake_cluster(1) as cluster:
        for _ in range(4):
            with router_to(cluster, dead, cluster.address(0)) as router:
                assert router.refresh(["t"]).cluster_id == "c"


def test_the_router_uses_brokers_from_metadata_if_the_bootstrap_broker_stops() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        router.refresh(["t"])
        cluster.brokers[0].stop()
        assert router.refresh(["t"]).cluster_id == "c"
        assert cluster.received_requests[-1] == (1, METADATA)


@pytest.mark.parametrize("topics", [None, ["t"]])
def test_describing_topics_stores_the_brokers(topics: list[str] | None) -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        assert describe_topics(router, topics).keys() == {"t"}
        cluster.brokers[0].stop()
        assert describe_topics(router, topics).keys() == {"t"}
        assert cluster.received_requests[-1] == (1, METADATA)


def test_describing_the_cluster_stores_its_brokers_but_no_fenced_one() -> None:
    with fake_cluster(3) as cluster, router_to(cluster) as router:
        ranges = {**API_VERSION_RANGES, DESCRIBE_CLUSTER: (0, 2)}
        brokers = [
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=index,
                host=cluster.address(index).host,
                port=cluster.address(index).port,
                is_fenced=index == 2,
            )
            for index in range(3)
        ]
        described = DescribeClusterResponse(
            error_code=0, endpoint_type=1, cluster_id="c", controller_id=0, brokers=brokers
        )
        cluster.rules[API_VERSIONS] = lambda index: api_versions_reply(ranges)
        cluster.rules[DESCRIBE_CLUSTER] = lambda index: response_reply(described)
        assert len(describe_cluster(router).brokers) == 3
        assert router.metadata.brokers.keys() == {0, 1}


def test_a_connected_bootstrap_address_is_used_before_another_connection_opens() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        for _ in range(5):
            router.refresh(["t"])
        assert cluster.brokers[0].connections == 1
        assert cluster.brokers[1].connections == 0


def test_no_other_broker_is_tried_after_the_deadline() -> None:
    with fake_cluster(2) as cluster:
        cluster.rules[API_VERSIONS] = lambda index: no_reply
        bootstrap = cluster.address(0), cluster.address(1)
        with router_to(cluster, *bootstrap) as router, pytest.raises(ClusterTimeout):
            router.find_any_broker(time.monotonic() + 0.2)
        wait_until(lambda: any(broker.connections for broker in cluster.brokers), "a connection")
        assert sum(broker.connections for broker in cluster.brokers) == 1


def test_a_cluster_without_a_controller_is_an_error() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        cluster.controller = -1
        with pytest.raises(ClusterUnavailable, match="has no controller at the moment"):
            router.find_address(Controller(), time.monotonic() + 50)


def test_the_error_of_a_refused_login_wins_over_that_of_a_dead_host() -> None:
    login = PasswordLogin(mechanism="PLAIN", username="ann", password=Password("pw"))
    security = ClientSecurity(protocol="SASL_PLAINTEXT", login=login)
    refusal = response_reply(SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI"]))
    replies = itertools.cycle([refusal, api_versions_reply()])
    with dead_address() as dead, FakeBroker(replies) as broker:
        router = Router(ClientConfig(cluster="primary", security=security), [dead, broker.address])
        for _ in range(8):  # the router chooses the order at random
            with pytest.raises(NotAuthorized, match="it offers GSSAPI"):
                router.find_any_broker(time.monotonic() + 50)
        with pytest.raises(NotAuthorized):
            router.refresh(timeout_s=5)
        router.close()


def test_refused_connections_are_an_error_after_the_timeout(unhurried_attempts: None) -> None:
    started = time.monotonic()
    with dead_address() as dead, pytest.raises(ClusterUnavailable, match="connection refused"):
        Router(CLIENT, [dead]).refresh(timeout_s=0.2)
    assert 0.2 <= time.monotonic() - started < 25
    with pytest.raises(ClusterUnavailable, match="no broker is configured"):
        Router(CLIENT, []).refresh(timeout_s=0)


def test_a_call_that_is_tried_again_says_why() -> None:
    errors: list[str] = []
    with dead_address() as dead:
        router = Router(CLIENT, [dead])

        def on_retry(error: ClusterError) -> None:
            errors.append(str(error))
            router.cancel()

        router.on_retry = on_retry
        with pytest.raises(CallCancelled):
            router.refresh(timeout_s=500)
    assert f"{dead}: connection refused; check whether the broker runs" in errors[0]


def test_another_thread_ends_a_call_that_waits() -> None:
    with dead_address() as dead:
        router = Router(CLIENT, [dead])
        router.on_retry = lambda error: threading.Thread(target=router.cancel).start()
        with pytest.raises(CallCancelled):
            router.refresh(timeout_s=500)
        with pytest.raises(CallCancelled):
            router.refresh(timeout_s=500)


def test_a_silent_broker_is_an_error_after_the_timeout() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        router.connection_to(AnyBroker())
        cluster.rules[METADATA] = lambda index: no_reply
        with pytest.raises(ClusterTimeout, match="no answer to Metadata in time"):
            router.refresh(timeout_s=0.3)


def test_the_controller_and_a_broker_are_found_again_after_invalidation() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        soon = time.monotonic() + 50
        cluster.controller = 1
        assert router.find_address(Controller(), soon) == cluster.address(1)
        assert router.find_address(NodeWithId(0), soon) == cluster.address(0)
        cluster.controller = 0
        router.invalidate(Controller())
        assert router.find_address(Controller(), soon) == cluster.address(0)
        router.invalidate(NodeWithId(1))
        assert router.find_address(NodeWithId(1), soon) == cluster.address(1)
        with pytest.raises(ClusterUnavailable, match="broker 9 is unknown"):
            router.find_address(NodeWithId(9), soon)
        with pytest.raises(ClusterUnavailable, match="t-5 has no leader"):
            router.find_address(LeaderOf(TopicPartition("t", 5)), soon)


def test_the_router_returns_to_the_bootstrap_addresses_on_rebootstrap_required() -> None:
    with fake_cluster(2) as cluster, router_to(cluster) as router:
        router.refresh(["t"])
        answers = itertools.chain([response_reply(cluster.metadata_response(code=129))])

        def outdated(index: int) -> Reply:
            return next(answers, response_reply(cluster.metadata_response()))

        cluster.rules[METADATA] = outdated
        assert router.refresh(["t"]).cluster_id == "c"
        assert cluster.received_requests[-1] == (0, METADATA)
        assert cluster.brokers[0].connections >= 2


def test_metadata_requests_have_a_minimum_interval() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        started = time.monotonic()
        for _ in range(3):
            router.refresh(["t"])
        assert time.monotonic() - started >= 0.2


def test_a_producer_id_comes_from_any_broker() -> None:
    with fake_cluster(1) as cluster, router_to(cluster) as router:
        cluster.rules[INIT_PRODUCER_ID] = lambda index: response_reply(init_producer_id_response())
        assert init_producer_id(router) == ProducerIdAndEpoch(7, 3)
        assert router.connection_to(AnyBroker()).in_flight_count == 0


def test_delays_grow_to_the_maximum_and_start_again_after_a_reset() -> None:
    backoff = Backoff(initial_s=0.1, max_s=0.5, jitter=0.0)
    assert [round(backoff.next_delay_s(), 3) for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    backoff.reset()
    assert backoff.next_delay_s() == pytest.approx(0.1)
    delays = {Backoff().next_delay_s() for _ in range(10)}
    assert len(delays) > 1
    assert all(0.04 <= delay <= 0.06 for delay in delays)
