"""Three brokers: leaders and coordinators move, and requests and copies follow them."""

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
from sparkmirror.cluster.produce_and_consume import ProducerRecord
from sparkmirror.cluster.produce_and_consume import produce_records as write_records
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.batch.lanes.forward import BatchProducer
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
from sparkmirror.wire.protocol.topics.current_leader import LeaderAndEpoch
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets
from tests.support.kafka.clusters import create_topic
from tests.support.kafka.wire_copier import (
    WireCopier,
    build_recent_batch,
    make_router,
    produce_buffers,
    read_stored_batches,
    wire_client,
)
from tests.support.waiting import wait_until


@pytest.fixture
def router(three_broker_cluster: Cluster) -> Iterator[Router]:
    made = make_router(three_broker_cluster.access())
    yield made
    made.close()


def create_replicated_topic(
    three_broker_cluster: Cluster, topic: str, partitions: int = 3
) -> list[TopicPartition]:
    """Create a topic and wait until every broker has its metadata."""
    create_topic(three_broker_cluster.access(), topic, partitions=partitions, replicas=3)
    for address in three_broker_cluster.access().bootstrap_servers:
        wait_until(
            partial(_has_metadata, three_broker_cluster, address, topic),
            f"{address} to have metadata of {topic}",
        )
    return [TopicPartition(topic, index) for index in range(partitions)]


def _has_metadata(three_broker_cluster: Cluster, address: Address, topic: str) -> bool:
    """Whether the broker at an address knows all leaders of a topic."""
    router = Router(wire_client(three_broker_cluster.access()), [address])
    try:
        found = router.refresh([topic])
    finally:
        router.close()
    partitions = found.topics[topic].partitions if topic in found.topics else ()
    return bool(partitions) and all(
        found.leader_of(TopicPartition(topic, index)) is not None for index in partitions
    )


def leader_of(router: Router, partition: TopicPartition) -> LeaderAndEpoch:
    """Return the leader; wait for it if the topic is new."""
    wait_until(
        lambda: router.refresh([partition.topic]).leader_of(partition) is not None,
        f"{partition} to have a leader",
    )
    leader = router.metadata.leader_of(partition)
    assert leader is not None
    return leader


def test_a_follower_names_the_leader_and_its_address(
    three_broker_cluster: Cluster, router: Router, topic: str
) -> None:
    (partition,) = create_replicated_topic(three_broker_cluster, topic, partitions=1)
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


def elect(three_broker_cluster: Cluster, partition: TopicPartition, node: int) -> None:
    """Make a broker the leader of a partition while all brokers run."""
    connect: Any = KafkaAdminClient
    client = connect(bootstrap_servers=three_broker_cluster.bootstrap_servers().split(","))
    key = KafkaPartition(*partition)
    others = [other for other in (1, 2, 3) if other != node]
    client.alter_partition_reassignments({key: [node, *others]})
    wait_until(
        lambda: not client.list_partition_reassignments(), "the reassignment, which copies nothing"
    )
    client.elect_leaders(0, {partition.topic: [partition.partition]})
    client.close()


def test_a_leader_refuses_an_older_leader_epoch(
    three_broker_cluster: Cluster, router: Router, topic: str
) -> None:
    (partition,) = create_replicated_topic(three_broker_cluster, topic, partitions=1)
    leader = leader_of(router, partition)
    elect(three_broker_cluster, partition, leader.node_id % 3 + 1)
    wait_until(
        lambda: leader_of(router, partition).node_id != leader.node_id,
        "the new leader to be known",
    )
    successor = leader_of(router, partition)
    assert successor.epoch > leader.epoch
    topic_id = router.metadata.topic_id(topic)
    assert topic_id is not None
    stale = FetchPosition(topic_id.bytes, 0, 0, 1000, leader_epoch=leader.epoch)

    def fetch_with_old_epoch() -> FetchResponseData:
        link = router.connection_to(LeaderOf(partition))
        return link.send_and_wait(fetch_request(16, FetchParams(max_wait_ms=10), [stale]))

    wait_until(
        lambda: fetch_with_old_epoch().partitions[0].error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "the new leader to know its election",
    )
    answer = fetch_with_old_epoch()
    (got,) = answer.partitions
    assert ErrorCode(got.error_code) is ErrorCode.FENCED_LEADER_EPOCH
    assert got.current_leader == successor
    assert [broker.node_id for broker in answer.node_endpoints] == [successor.node_id]


def test_copies_and_requests_continue_after_a_broker_was_killed(
    three_broker_cluster: Cluster, router: Router, topic: str
) -> None:
    topics = (f"{topic}.from", f"{topic}.to")
    partitions = [create_replicated_topic(three_broker_cluster, name) for name in topics]
    records = [ProducerRecord(value=b"record %d" % n, partition=n % 3) for n in range(300)]
    write_records(three_broker_cluster.access(), topics[0], records[:150])
    target = make_router(three_broker_cluster.access())
    copier = WireCopier(router, target, topics, (16, 13))
    copier.run(30)
    before = init_producer_id(router, transactional_id=topic)
    gone = coordinator_of(router, CoordinatorType.TRANSACTION, topic)
    three_broker_cluster.kill_broker(gone)
    try:
        copier.run(150)
        write_records(three_broker_cluster.access(), topics[0], records[150:])
        copier.run(300)
        after = init_producer_id(router, transactional_id=topic)
        assert after.producer_id == before.producer_id
        assert after.epoch > before.epoch
        found = list_offsets(router, dict.fromkeys(partitions[0], EARLIEST))
        assert {outcome.code for outcome in found.values()} == {ErrorCode.NONE}
        wait_until(
            lambda: gone not in router.refresh().brokers, "all brokers to know that it stopped"
        )
        assert router.connection_to(Controller()).api_versions.ranges
    finally:
        three_broker_cluster.start_broker(gone)
    for source, copy in zip(*partitions, strict=True):
        assert read_stored_batches(router, source) == read_stored_batches(target, copy)
    target.close()


def coordinator_of(router: Router, kind: CoordinatorType, key: str) -> int:
    to = CoordinatorOf(kind, key)
    address = router.find_address(to, time.monotonic() + 30)
    brokers = router.refresh().brokers
    return next(node for node, broker in brokers.items() if broker.address == address)


def test_a_suspended_broker_does_not_delay_requests_to_others(
    three_broker_cluster: Cluster, router: Router, topic: str
) -> None:
    partitions = create_replicated_topic(three_broker_cluster, topic)
    leaders = {partition: leader_of(router, partition).node_id for partition in partitions}
    for node in set(leaders.values()):
        router.connection_to(NodeWithId(node))
    suspended = leaders[partitions[0]]
    three_broker_cluster.pause_broker(suspended)
    try:
        started = time.monotonic()
        found = list_offsets(router, dict.fromkeys(partitions, LATEST), timeout_s=3.0)
        assert time.monotonic() - started < CALL_TIMEOUT_S / 2
    finally:
        three_broker_cluster.resume_broker(suspended)
    codes = {leaders[partition]: outcome.code for partition, outcome in found.items()}
    assert codes.pop(suspended) in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.LEADER_NOT_AVAILABLE)
    assert set(codes.values()) == {ErrorCode.NONE}


@pytest.mark.parametrize("brokers", ["coordinator", pytest.param("all", marks=pytest.mark.soak)])
def test_groups_are_read_and_written_while_brokers_restart(
    three_broker_cluster: Cluster, router: Router, topic: str, brokers: str
) -> None:
    (partition,) = create_replicated_topic(three_broker_cluster, topic, partitions=1)
    assert alter_consumer_group_offsets(router, topic, {partition: OffsetAndMetadata(0)}) == {
        partition: ErrorCode.NONE
    }
    group_coordinator = coordinator_of(router, CoordinatorType.GROUP, topic)
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
                is_listed, "the group to be listed; no broker lists it while its coordinator moves"
            )
            rounds.append(1)

    with ThreadPoolExecutor(1) as pool:
        using = pool.submit(use)
        try:
            every = list(three_broker_cluster.brokers)
            for node_id in every if brokers == "all" else [group_coordinator]:
                before = len(rounds)
                three_broker_cluster.restart_broker(node_id)
                wait_until(lambda: len(rounds) > before or using.done(), "more rounds", 90)  # noqa: B023
        finally:
            over.set()
        using.result(timeout=90)
