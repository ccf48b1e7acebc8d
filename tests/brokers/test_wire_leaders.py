"""Three brokers: leaders and coordinators move, and calls and copies follow them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient

from sparkmirror.cluster.group_states import EMPTY_STATE, describe_group_state
from sparkmirror.cluster.groups import (
    alter_consumer_group_offsets,
    list_consumer_group_offsets,
    list_consumer_groups,
)
from sparkmirror.cluster.topic_contents import ProducerRecord
from sparkmirror.cluster.topic_contents import produce_records as write_records
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.batch.forward import BatchProducer
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.routing import (
    CALL_TIMEOUT_S,
    Controller,
    CoordinatorOf,
    CoordinatorType,
    LeaderOf,
    NodeWithId,
    Router,
)
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import (
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
)
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.topics.leaders import LeaderAndEpoch
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets
from tests.support.kafka.clusters import StartCluster, create_topic
from tests.support.kafka.wire_copier import (
    WireCopier,
    build_recent_batch,
    make_router,
    produce_buffers,
    read_stored_batches,
    wire_client,
)
from tests.support.waiting import wait_until

# A broker that stood still for a moment must not lose its partitions: many tests know who leads.
SESSIONS = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "500"}


@pytest.fixture(scope="module")
def three_brokers(start_module_cluster: StartCluster) -> Cluster:
    return start_module_cluster(
        ClusterSpec(name="trio", brokers=3, fast_start=True, properties=SESSIONS)
    )


@pytest.fixture
def trio(three_brokers: Cluster) -> Cluster:
    """Three brokers. All run and know each other, whatever the test before did to them."""
    three_brokers.start_brokers()
    return three_brokers


@pytest.fixture
def router(trio: Cluster) -> Iterator[Router]:
    made = make_router(trio.access())
    yield made
    made.close()


def create_replicated_topic(trio: Cluster, topic: str, partitions: int = 3) -> list[TopicPartition]:
    """Create a topic that every broker has heard of."""
    create_topic(trio.access(), topic, partitions=partitions, replicas=3)
    for address in trio.access().bootstrap_servers:
        wait_until(partial(_has_metadata, trio, address, topic), f"{address} to hear of {topic}")
    return [TopicPartition(topic, index) for index in range(partitions)]


def _has_metadata(trio: Cluster, address: Address, topic: str) -> bool:
    """Whether one certain broker knows all leaders of a topic."""
    router = Router(wire_client(trio.access()), [address])
    try:
        found = router.refresh([topic])
    finally:
        router.close()
    partitions = found.topics[topic].partitions if topic in found.topics else ()
    return bool(partitions) and all(
        found.leader_of(TopicPartition(topic, index)) is not None for index in partitions
    )


def leader_of(router: Router, partition: TopicPartition) -> LeaderAndEpoch:
    """Find the leader, waiting for it if the topic is very new."""
    wait_until(
        lambda: router.refresh([partition.topic]).leader_of(partition) is not None,
        f"{partition} should have a leader",
    )
    leader = router.metadata.leader_of(partition)
    assert leader is not None
    return leader


def test_a_follower_names_the_leader_and_where_it_is(
    trio: Cluster, router: Router, topic: str
) -> None:
    (partition,) = create_replicated_topic(trio, topic, partitions=1)
    leader = leader_of(router, partition)
    follower = next(node for node in (1, 2, 3) if node != leader.node_id)
    link = router.connection_to(NodeWithId(follower))
    batch = OutgoingBatch(topic, 0, produce_buffers(build_recent_batch(1), BatchProducer(), -1))
    answer = link.send_and_wait(produce_request(12, [batch], timeout_ms=1000))
    ack = answer.partition_responses[topic, 0]
    assert ErrorCode(ack.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ack.current_leader == leader
    assert [broker.node_id for broker in answer.node_endpoints] == [leader.node_id]
    assert answer.node_endpoints[0].address == router.metadata.brokers[leader.node_id].address
    old = link.send_and_wait(produce_request(7, [batch], timeout_ms=1000)).partition_responses[
        topic, 0
    ]
    assert (ErrorCode(old.error_code), old.current_leader) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        None,
    )


def elect(trio: Cluster, partition: TopicPartition, node: int) -> None:
    """Make a broker the leader of a partition, in an orderly way."""
    connect: Any = KafkaAdminClient
    client = connect(bootstrap_servers=trio.bootstrap_servers().split(","))
    key = KafkaPartition(*partition)
    others = [other for other in (1, 2, 3) if other != node]
    client.alter_partition_reassignments({key: [node, *others]})
    wait_until(
        lambda: not client.list_partition_reassignments(), "a change of order needs no copying"
    )
    client.elect_leaders(0, {partition.topic: [partition.partition]})
    client.close()


def test_a_leader_that_knows_a_newer_epoch_says_so(
    trio: Cluster, router: Router, topic: str
) -> None:
    (partition,) = create_replicated_topic(trio, topic, partitions=1)
    leader = leader_of(router, partition)
    elect(trio, partition, leader.node_id % 3 + 1)
    wait_until(
        lambda: leader_of(router, partition).node_id != leader.node_id,
        "the new leader should be known",
    )
    successor = leader_of(router, partition)
    assert successor.epoch > leader.epoch
    topic_id = router.metadata.topic_id(topic)
    assert topic_id is not None
    stale = FetchPosition(topic_id, 0, 0, 1000, leader_epoch=leader.epoch)

    def ask() -> FetchResponseData:
        link = router.connection_to(LeaderOf(partition))
        return link.send_and_wait(fetch_request(16, FetchParams(max_wait_ms=10), [stale]))

    wait_until(
        lambda: ask().partitions[0].error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "the new leader to know of it itself",
    )
    answer = ask()
    (got,) = answer.partitions
    assert ErrorCode(got.error_code) is ErrorCode.FENCED_LEADER_EPOCH
    assert got.current_leader == successor
    assert [broker.node_id for broker in answer.node_endpoints] == [successor.node_id]


def test_copies_and_calls_outlive_the_broker_they_relied_on(
    trio: Cluster, router: Router, topic: str
) -> None:
    topics = (f"{topic}.from", f"{topic}.to")
    partitions = [create_replicated_topic(trio, name) for name in topics]
    records = [ProducerRecord(value=b"record %d" % n, partition=n % 3) for n in range(300)]
    write_records(trio.access(), topics[0], records[:150])
    target = make_router(trio.access())
    copier = WireCopier(router, target, topics, (16, 13))
    copier.run(30)
    before = init_producer_id(router, transactional_id=topic)
    gone = coordinator_of(router, topic)
    trio.kill_broker(gone)
    try:
        copier.run(150)
        write_records(trio.access(), topics[0], records[150:])
        copier.run(300)
        after = init_producer_id(router, transactional_id=topic)
        assert after.producer_id == before.producer_id
        assert after.epoch > before.epoch
        found = list_offsets(router, dict.fromkeys(partitions[0], EARLIEST))
        assert {outcome.code for outcome in found.values()} == {ErrorCode.NONE}
        wait_until(lambda: gone not in router.refresh().brokers, "all to know that it is gone")
        assert router.connection_to(Controller()).api_versions.ranges
    finally:
        trio.start_broker(gone)
    for source, copy in zip(*partitions, strict=True):
        assert read_stored_batches(router, source) == read_stored_batches(target, copy)
    target.close()


def coordinator_of(router: Router, transactional_id: str) -> int:
    to = CoordinatorOf(CoordinatorType.TRANSACTION, transactional_id)
    address = router.find_address(to, time.monotonic() + 30)
    brokers = router.refresh().brokers
    return next(node for node, broker in brokers.items() if broker.address == address)


def test_a_frozen_broker_costs_the_others_nothing(
    trio: Cluster, router: Router, topic: str
) -> None:
    partitions = create_replicated_topic(trio, topic)
    leaders = {partition: leader_of(router, partition).node_id for partition in partitions}
    for node in set(leaders.values()):
        router.connection_to(NodeWithId(node))
    frozen = leaders[partitions[0]]
    trio.pause_broker(frozen)
    try:
        started = time.monotonic()
        found = list_offsets(router, dict.fromkeys(partitions, LATEST), timeout_s=3.0)
        assert time.monotonic() - started < CALL_TIMEOUT_S / 2
    finally:
        trio.resume_broker(frozen)
    codes = {leaders[partition]: outcome.code for partition, outcome in found.items()}
    assert codes.pop(frozen) in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.LEADER_NOT_AVAILABLE)
    assert set(codes.values()) == {ErrorCode.NONE}


def test_groups_are_read_and_written_while_every_broker_restarts(
    trio: Cluster, router: Router, topic: str
) -> None:
    (partition,) = create_replicated_topic(trio, topic, partitions=1)
    over = threading.Event()
    rounds: list[int] = []

    def is_listed() -> bool:
        return topic in {group.group_id for group in list_consumer_groups(router)}

    def use() -> None:
        while not over.is_set():
            offset = OffsetAndMetadata(len(rounds))
            assert alter_consumer_group_offsets(router, topic, {partition: offset}) == {
                partition: ErrorCode.NONE
            }
            assert list_consumer_group_offsets(router, [topic]) == {topic: {partition: offset}}
            assert describe_group_state(router, topic) == EMPTY_STATE
            wait_until(
                is_listed, "the group to be listed; while its coordinator moves, nobody does"
            )
            rounds.append(1)

    with ThreadPoolExecutor(1) as pool:
        using = pool.submit(use)
        try:
            for node_id in trio.brokers:
                before = len(rounds)
                trio.restart_broker(node_id)
                wait_until(lambda: len(rounds) > before or using.done(), "more rounds", 90)  # noqa: B023
        finally:
            over.set()
        using.result(timeout=90)
