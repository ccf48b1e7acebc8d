"""Three brokers: leaders move, die and restart, and every record arrives once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic, TopicPartitionInfo
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable, TopicMissing
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import LeaderOf
from sparkmirror.wire.protocol.fetch import FetchParams, FetchPosition, fetch_request
from tests.brokers.conftest import RACKS
from tests.brokers.copy.conftest import flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S
from tests.support.copy.fault_scenario import SLOW_COPY, has_copied_records
from tests.support.kafka.admin_operations import elect_preferred_leaders
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    numbered_records,
    write_mixed_batches,
)
from tests.support.kafka.clusters import UniqueName
from tests.support.kafka.partition_log import assert_copied
from tests.support.waiting import wait_until


@pytest.fixture
def three_broker_flow(
    three_broker_cluster: Cluster, unique_name: UniqueName
) -> Iterator[tuple[CopyFlow, BatchWriter]]:
    """A flow from the cluster to itself: a leader that moves, moves on both sides."""
    flow = flow_between(unique_name("flow"), three_broker_cluster, three_broker_cluster, replicas=3)
    writer = BatchWriter(flow.source)
    yield flow, writer
    writer.close()


def test_a_dead_leader_is_replaced_and_a_preferred_one_comes_back(
    three_broker_cluster: Cluster, three_broker_flow: tuple[CopyFlow, BatchWriter], topic: str
) -> None:
    flow, writer = three_broker_flow
    topics, remote = {topic: MIXED_PARTITIONS}, remote_topic_name(topic)
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, records=300)
    ends = flow.source_end_offsets(topics)
    slower = {"bytes_per_s": 30_000}
    with flow.harness(flow.job(topics, settings=slower)) as harness, Admin(flow.target) as admin:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        preferred = _in_sync(admin, remote)[0].replicas[0]
        wait_until(lambda: _leader(admin, remote) == preferred, "the preferred one to lead")
        three_broker_cluster.kill_broker(preferred)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(ends)
        wait_until(lambda: _leader(admin, remote) not in (None, preferred), "another one to lead")
        three_broker_cluster.start_broker(preferred)
        harness.conductor.set_rate(slower["bytes_per_s"])
        write_mixed_batches(writer, topic, first=10_000, records=300)
        for name in (topic, remote):
            _in_sync(admin, name)
            wait_until(
                partial(_is_led_as_preferred, flow, admin, name),
                "the preferred ones to lead",
                HARNESS_TIMEOUT_S,
            )
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        flow.assert_mirrored(topics, fences=0, harness=harness)


def _described(admin: Admin, topic: str) -> tuple[TopicPartitionInfo, ...]:
    """A broker's description of a topic; empty if the broker does not know it or is down.

    Brokers learn of a change one after the other: call this until the answer fits.
    """
    try:
        return admin.describe_topic(topic).partitions
    except (TopicMissing, ClusterUnavailable, ClusterTimeout):
        return ()


def _in_sync(admin: Admin, topic: str, replicas: int = 3) -> tuple[TopicPartitionInfo, ...]:
    """Wait until every partition has a leader and all replicas are in sync; return them."""
    seen: list[TopicPartitionInfo] = []

    def is_so() -> bool:
        seen[:] = _described(admin, topic)
        return bool(seen) and all(one.leader and len(one.isr) == replicas for one in seen)

    wait_until(is_so, f"every replica of {topic} to be in sync", HARNESS_TIMEOUT_S)
    return tuple(seen)


def _leader(admin: Admin, topic: str) -> int | None:
    """The leader of partition 0, or None."""
    return next((one.leader for one in _described(admin, topic)), None)


def _is_led_as_preferred(flow: CopyFlow, admin: Admin, topic: str) -> bool:
    """Whether the first replica of each partition leads; if not, requests an election."""
    partitions = _described(admin, topic)
    if partitions and all(one.leader == one.replicas[0] for one in partitions):
        return True
    elect_preferred_leaders(flow.target, topic)
    return False


@pytest.mark.soak
def test_a_rolling_restart_of_both_sides_costs_nothing(
    three_broker_cluster: Cluster, topic: str, unique_name: UniqueName
) -> None:
    flow = flow_between(unique_name("flow"), three_broker_cluster, three_broker_cluster, replicas=3)
    writer = BatchWriter(flow.source)
    topics, partitions = {topic: 6}, [TopicPartition(topic, number) for number in range(6)]
    flow.create_topic(topic, 6)

    def write(first: int) -> None:
        for partition in partitions:
            writer.write_batches(
                partition, numbered_records(range(first, first + 300), size=1000), batch=50
            )

    write(0)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot(
            "every partition to have its turn",
            lambda seen: all(one.position > 0 for one in seen.partitions.values()),
        )
        for node_id in three_broker_cluster.brokers:
            three_broker_cluster.restart_broker(node_id)
            write(300 * node_id)
            harness.wait_for_more_records()
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        flow.assert_mirrored(topics, fences=0, harness=harness)
        assert harness.snapshot.events == ()
    writer.close()


def test_the_replica_in_the_same_rack_is_read(
    three_broker_flow: tuple[CopyFlow, BatchWriter], topic: str
) -> None:
    """The leader names the replica in the rack of the reader, and returns no records itself."""
    flow, writer = three_broker_flow
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batches(partition, numbered_records(range(200)), batch=10)
    with Admin(flow.source) as admin:
        leader = _in_sync(admin, topic)[0].leader
    near = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    rack = RACKS[near - 1]
    question = fetch_request(
        12, FetchParams(max_wait_ms=50, rack=rack), [FetchPosition(topic, 0, 0, 1 << 20)]
    )

    def is_sent_there() -> bool:
        leading = writer.router.connection_to(LeaderOf(partition))
        (answer,) = leading.send_and_wait(question).partitions
        return (answer.preferred_read_replica, len(answer.records)) == (near, 0)

    wait_until(is_sent_there, "the leader to know that the other replica has everything")
    with flow.harness(flow.job({topic: 1}, settings={"rack": rack})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        flow.assert_mirrored({topic: 1}, fences=0, harness=harness)


def test_partitions_without_a_leader_wait_while_the_others_go_on(
    three_broker_cluster: Cluster, three_broker_flow: tuple[CopyFlow, BatchWriter], topic: str
) -> None:
    flow, writer = three_broker_flow
    flow.create_topics({})
    lonely, topics = replace(flow, replication_factor=1), {topic: 6}
    lonely.create_topic(topic, 6)
    every = [TopicPartition(topic, number) for number in range(6)]
    for partition in every:
        writer.write_batches(partition, numbered_records(range(100)), batch=10)
    with Admin(flow.target) as admin:
        led = [_in_sync(admin, name, replicas=1) for name in (topic, remote_topic_name(topic))]
    gone = led[0][0].leader
    assert gone
    stuck = {str(one) for one in every if gone in (side[one.partition].leader for side in led)}
    free = {str(one): 100 for one in every if str(one) not in stuck}
    assert free
    three_broker_cluster.kill_broker(gone)
    try:
        with lonely.harness(lonely.job(topics)) as harness:
            harness.wait_until_caught_up(free)
            harness.wait_for_snapshot(
                "the reasons", lambda seen: all(seen.partitions[p].reason for p in stuck)
            )
            three_broker_cluster.start_broker(gone)
            harness.wait_until_caught_up(lonely.source_end_offsets(topics))
            harness.drain()
            lonely.assert_mirrored(topics, fences=0, harness=harness)
    finally:
        three_broker_cluster.start_broker(gone)


def test_a_source_that_lost_its_end_is_reported_even_if_it_grew_again(
    three_broker_cluster: Cluster,
    target: Cluster,
    topic: str,
    unique_name: UniqueName,
) -> None:
    """A replica that is behind becomes the leader: records that only the old one had are lost."""
    flow, partition = (
        flow_between(unique_name("flow"), three_broker_cluster, target),
        TopicPartition(topic, 0),
    )
    flow.create_topics({})
    flow.create_remote_topic(topic)
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    writer = BatchWriter(flow.source)
    records, others = numbered_records(range(60)), numbered_records(range(100, 150))
    with Admin(flow.source) as admin:
        admin.create_topic(NewTopic(name=topic, replication_factor=2, configs=unclean))
        [at_first] = _in_sync(admin, topic, replicas=2)
        [behind] = set(at_first.replicas) - {at_first.leader}
        assert at_first.leader
        writer.write_batch(partition, records[:30])
        three_broker_cluster.kill_broker(behind)
        wait_until(
            partial(_leads_alone, admin, topic, at_first.leader),
            "it to lead alone",
            HARNESS_TIMEOUT_S,
        )
        writer.write_batch(partition, records[30:])
        with flow.harness(flow.job({topic: 1}, on_loss=DataLossPolicy.SKIP)) as harness:
            harness.wait_until_caught_up({str(partition): 60})
            three_broker_cluster.kill_broker(at_first.leader)
            three_broker_cluster.start_broker(behind)
            wait_until(
                partial(_leads_alone, admin, topic, behind), "it to lead alone", HARNESS_TIMEOUT_S
            )
            writer.write_batch(partition, others)
            event = harness.wait_for_event("truncated")
            assert (event.lost_from, event.lost_to) == (30, 60)
            harness.wait_for_snapshot("the rest", lambda seen: _position(seen, partition) == 80)
            harness.drain()
        three_broker_cluster.start_broker(at_first.leader)
    writer.close()
    assert_copied(records + others, flow.partition_logs(partition)[1])


def _leads_alone(admin: Admin, topic: str, node_id: int) -> bool:
    led = [(one.leader, one.isr) for one in _described(admin, topic)]
    return led == [(node_id, (node_id,))]


def _position(seen: CopySnapshot, partition: TopicPartition) -> int:
    return seen.partitions[str(partition)].position
