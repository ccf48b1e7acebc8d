"""Brokers that stop, die, freeze and move: every record arrives once, in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic, TopicPartitionInfo
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable, TopicMissing
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_actions import CLUSTER_ACTIONS
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import LeaderOf
from sparkmirror.wire.protocol.fetch import FetchParams, FetchPosition, fetch_request
from tests.brokers.copy.conftest import PROPERTIES, flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic, has_copied_records
from tests.support.kafka.admin_operations import elect_preferred_leaders
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    numbered_records,
    write_mixed_batches,
)
from tests.support.kafka.clusters import StartCluster, UniqueName
from tests.support.kafka.partition_log import assert_copied, log_start_and_end
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

RACKS = ("north", "south", "west")
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SHORT_TIMEOUTS = {"fetch_timeout_s": 2.0, "produce_timeout_s": 3.0}
FROZEN_S = 4.0
"""Longer than both timeouts: every open request is lost."""


@pytest.mark.parametrize(
    ("side", "verb"),
    [("target", "stop"), ("target", "kill"), ("source", "stop"), ("source", "kill")],
    ids=["target-stops", "target-dies", "source-stops", "source-dies"],
)
def test_a_lone_broker_may_go_and_come_back(
    flow: CopyFlow,
    topic: str,
    writer: BatchWriter,
    pair: tuple[Cluster, Cluster],
    side: str,
    verb: str,
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    cluster = pair[side == "target"]
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as stage:
        stage.wait_for_snapshot("copying to begin", has_copied_records)
        CLUSTER_ACTIONS[verb].run_on_broker(cluster, 1)
        try:
            stage.wait_for_snapshot(
                "the reason to be told",
                lambda seen: any(f"{side}: " in one.reason for one in seen.partitions.values()),
            )
        finally:
            cluster.start_broker(1)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.source_end_offsets(topics))
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)
        assert stage.snapshot.events == (), "nothing that an operator must know of"


def test_a_task_that_dies_while_the_source_is_down_costs_one_fence(
    flow: CopyFlow, topic: str, writer: BatchWriter, pair: tuple[Cluster, Cluster]
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batches(partition, numbered_records(range(1000), size=1000), batch=10)
    wanted = 1000 + 1  # records, and one fence
    # It says next to nothing of what it copies, so that there is something to be found out.
    quiet = {"report_interval_s": 3600.0, "lease_timeout_s": 3600.0, "bytes_per_s": 50_000}
    with flow.harness(flow.job({topic: 1}, settings=quiet, task_timeout_s=3600.0)) as stage:
        wait_until(lambda: _target_end_offset(flow, partition) > 100, "something to be copied")
        pair[0].stop_broker(1)
        try:
            stage.kill(0)
            stage.wait_for_snapshot(
                "it to be held",
                lambda seen: "source: " in seen.partitions[str(partition)].reason,
            )
        finally:
            pair[0].start_broker(1)
        stage.conductor.set_rate(0)
        wait_until(
            lambda: _target_end_offset(flow, partition) == wanted,
            "everything to be copied",
            HARNESS_TIMEOUT_S,
        )
        stage.drain()
        flow.assert_mirrored({topic: 1}, fences=1, stage=stage)


def _target_end_offset(flow: CopyFlow, partition: TopicPartition) -> int:
    router = make_router(flow.target)
    try:
        return log_start_and_end(
            router, partition._replace(topic=remote_topic_name(partition.topic))
        )[1]
    finally:
        router.close()


def test_frozen_brokers_are_waited_for(
    flow: CopyFlow, topic: str, writer: BatchWriter, pair: tuple[Cluster, Cluster]
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY | SHORT_TIMEOUTS)) as stage:
        stage.wait_for_snapshot("copying to begin", has_copied_records)
        for cluster in pair:
            cluster.pause_broker(1)
        frozen_at = time.monotonic()
        try:
            wait_until(lambda: time.monotonic() - frozen_at > FROZEN_S, "answers to be overdue", 60)
        finally:
            for cluster in pair:
                cluster.resume_broker(1)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.source_end_offsets(topics))
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)


# -- leaders that move -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def started_trio(start_module_cluster: StartCluster) -> Cluster:
    """Three brokers, each in a rack of its own; whoever says where he is reads from there."""
    return start_module_cluster(
        ClusterSpec(
            name="trio",
            brokers=3,
            fast_start=True,
            racks=RACKS,
            properties={**PROPERTIES, "replica.selector.class": SELECTOR},
        )
    )


@pytest.fixture
def trio(started_trio: Cluster) -> Cluster:
    """The three brokers, all of them up and known to each other, whatever a test before did."""
    started_trio.start_brokers()
    return started_trio


@pytest.fixture
def other_trio(start_cluster: StartCluster) -> Cluster:
    """Three more."""
    return start_cluster(
        ClusterSpec(name="other-trio", brokers=3, fast_start=True, properties=PROPERTIES)
    )


@pytest.fixture
def trio_flow(trio: Cluster, unique_name: UniqueName) -> Iterator[tuple[CopyFlow, BatchWriter]]:
    """A flow from three brokers to the same three, so that what moves moves on both sides."""
    flow = flow_between(unique_name("flow"), trio, trio, replicas=3)
    writer = BatchWriter(flow.source)
    yield flow, writer
    writer.close()


def test_a_dead_leader_is_replaced_and_a_preferred_one_comes_back(
    trio: Cluster, trio_flow: tuple[CopyFlow, BatchWriter], topic: str
) -> None:
    flow, writer = trio_flow
    topics, remote = {topic: MIXED_PARTITIONS}, remote_topic_name(topic)
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, records=300)
    ends = flow.source_end_offsets(topics)
    slower = {"bytes_per_s": 30_000}
    with flow.harness(flow.job(topics, settings=slower)) as stage, Admin(flow.target) as admin:
        stage.wait_for_snapshot("copying to begin", has_copied_records)
        preferred = _in_sync(admin, remote)[0].replicas[0]
        wait_until(lambda: _leader(admin, remote) == preferred, "the preferred one to lead")
        trio.kill_broker(preferred)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(ends)
        wait_until(lambda: _leader(admin, remote) not in (None, preferred), "another one to lead")
        trio.start_broker(preferred)
        stage.conductor.set_rate(slower["bytes_per_s"])
        write_mixed_batches(writer, topic, first=10_000, records=300)
        for name in (topic, remote):
            _in_sync(admin, name)
            wait_until(
                partial(_is_led_as_preferred, flow, admin, name),
                "the preferred ones to lead",
                HARNESS_TIMEOUT_S,
            )
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.source_end_offsets(topics))
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)


def _described(admin: Admin, topic: str) -> tuple[TopicPartitionInfo, ...]:
    """What a broker says of a topic; nothing if it does not know it yet, or is gone.

    Brokers hear of a change one after the other, so one look proves nothing: wait until it fits.
    """
    try:
        return admin.describe_topic(topic).partitions
    except (TopicMissing, ClusterUnavailable, ClusterTimeout):
        return ()


def _in_sync(admin: Admin, topic: str, replicas: int = 3) -> tuple[TopicPartitionInfo, ...]:
    """Wait until every partition is led and all its replicas are in sync; return that picture."""
    seen: list[TopicPartitionInfo] = []

    def is_so() -> bool:
        seen[:] = _described(admin, topic)
        return bool(seen) and all(one.leader and len(one.isr) == replicas for one in seen)

    wait_until(is_so, f"every replica of {topic} to be in sync", HARNESS_TIMEOUT_S)
    return tuple(seen)


def _leader(admin: Admin, topic: str) -> int | None:
    """Who leads partition 0, if anybody does."""
    return next((one.leader for one in _described(admin, topic)), None)


def _is_led_as_preferred(flow: CopyFlow, admin: Admin, topic: str) -> bool:
    """Whether the first replica of each partition leads it; if not, that is asked for."""
    partitions = _described(admin, topic)
    if partitions and all(one.leader == one.replicas[0] for one in partitions):
        return True
    elect_preferred_leaders(flow.target, topic)
    return False


def test_a_rolling_restart_on_each_side_costs_nothing(
    trio: Cluster, other_trio: Cluster, topic: str, unique_name: UniqueName
) -> None:
    flow = flow_between(unique_name("flow"), trio, other_trio, replicas=3)
    writer = BatchWriter(flow.source)
    topics, partitions = {topic: 6}, [TopicPartition(topic, number) for number in range(6)]
    flow.create_topic(topic, 6)

    def write(first: int) -> None:
        for partition in partitions:
            writer.write_batches(
                partition, numbered_records(range(first, first + 300), size=1000), batch=50
            )

    write(0)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as stage, ThreadPoolExecutor(2) as both:
        stage.wait_for_snapshot(
            "every partition to have its turn",
            lambda seen: all(one.position > 0 for one in seen.partitions.values()),
        )
        for node_id in trio.brokers:
            list(both.map(lambda side, node=node_id: side.restart_broker(node), (trio, other_trio)))
            write(300 * node_id)
            stage.wait_for_more_records()
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.source_end_offsets(topics))
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)
        assert stage.snapshot.events == ()
    writer.close()


def test_the_replica_in_the_same_rack_is_read(
    trio_flow: tuple[CopyFlow, BatchWriter], topic: str
) -> None:
    """A leader that knows of a nearer replica names it, and gives nothing itself."""
    flow, writer = trio_flow
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
    with flow.harness(flow.job({topic: 1}, settings={"rack": rack})) as stage:
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        stage.drain()
        flow.assert_mirrored({topic: 1}, fences=0, stage=stage)


def test_partitions_without_a_leader_wait_while_the_others_go_on(
    trio: Cluster, trio_flow: tuple[CopyFlow, BatchWriter], topic: str
) -> None:
    flow, writer = trio_flow
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
    trio.kill_broker(gone)
    try:
        with lonely.harness(lonely.job(topics)) as stage:
            stage.wait_until_caught_up(free)
            stage.wait_for_snapshot(
                "the reasons", lambda seen: all(seen.partitions[p].reason for p in stuck)
            )
            trio.start_broker(gone)
            stage.wait_until_caught_up(lonely.source_end_offsets(topics))
            stage.drain()
            lonely.assert_mirrored(topics, fences=0, stage=stage)
    finally:
        trio.start_broker(gone)


@pytest.mark.parametrize(
    ("later", "policy"),
    [(20, DataLossPolicy.SKIP), (50, DataLossPolicy.HALT)],
    ids=["shorter-skip", "longer-halt"],
)
def test_a_source_that_lost_its_end_is_told_even_if_it_grew_again(
    trio: Cluster,
    target: Cluster,
    topic: str,
    unique_name: UniqueName,
    later: int,
    policy: DataLossPolicy,
) -> None:
    """A replica that was left behind becomes the leader: what only the old one had is gone."""
    flow, partition = flow_between(unique_name("flow"), trio, target), TopicPartition(topic, 0)
    flow.create_topics({})
    flow.create_remote_topic(topic)
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    writer = BatchWriter(flow.source)
    records, others = numbered_records(range(60)), numbered_records(range(100, 100 + later))
    with Admin(flow.source) as admin:
        admin.create_topic(NewTopic(name=topic, replication_factor=2, configs=unclean))
        [at_first] = _in_sync(admin, topic, replicas=2)
        [behind] = set(at_first.replicas) - {at_first.leader}
        assert at_first.leader
        writer.write_batch(partition, records[:30])
        trio.kill_broker(behind)
        wait_until(
            partial(_leads_alone, admin, topic, at_first.leader),
            "it to lead alone",
            HARNESS_TIMEOUT_S,
        )
        writer.write_batch(partition, records[30:])
        with flow.harness(flow.job({topic: 1}, on_loss=policy)) as stage:
            stage.wait_until_caught_up({str(partition): 60})
            trio.kill_broker(at_first.leader)
            trio.start_broker(behind)
            wait_until(
                partial(_leads_alone, admin, topic, behind), "it to lead alone", HARNESS_TIMEOUT_S
            )
            writer.write_batch(partition, others)
            event = stage.wait_for_event("truncated")
            assert (event.lost_from, event.lost_to) == (30, 60)
            if policy is DataLossPolicy.SKIP:
                stage.wait_for_snapshot(
                    "the rest", lambda seen: _position(seen, partition) == 30 + later
                )
            stage.drain()
        trio.start_broker(at_first.leader)
    writer.close()
    wanted = records if policy is DataLossPolicy.HALT else records + others
    assert_copied(wanted, flow.partition_logs(partition)[1])


def _leads_alone(admin: Admin, topic: str, node_id: int) -> bool:
    led = [(one.leader, one.isr) for one in _described(admin, topic)]
    return led == [(node_id, (node_id,))]


def _position(seen: CopySnapshot, partition: TopicPartition) -> int:
    return seen.partitions[str(partition)].position
