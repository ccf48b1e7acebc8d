"""Exactly-once on other clusters: brokers that restart in turn, and old brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.fencing.transactional_id_fencing import TransactionalIdFencing
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease
from sparkmirror.copy.ledger import entry_for_lease
from sparkmirror.copy.transaction_committer import TransactionCommitter
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import build_batch
from sparkmirror.wire.net.routing import CoordinatorOf, CoordinatorType, Router
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from tests.brokers.conftest import COPY_PROPERTIES
from tests.brokers.copy.conftest import flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S
from tests.support.copy.exactly_once import (
    assert_exactly_once,
    assert_ledger_positions,
    last_stable_offset,
    read_committed_records,
)
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import StartCluster, UniqueName, wait_for_leaders
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until

PARTITIONS = 6
OLD_KAFKA_VERSION = "3.9.2"
"""Transactions of this version keep their epoch, and partitions are added one by one."""


SLOW_COPY = {"bytes_per_s": 30_000}
"""So slow that every fault hits a running copy: the records take half a minute."""


@contextmanager
def filled_topic(flow: CopyFlow, topic: str) -> Iterator[dict[str, int]]:
    """A topic with records in every partition."""
    flow.create_topic(topic, PARTITIONS)
    writer = BatchWriter(flow.source)
    for number in range(PARTITIONS):
        writer.write_batches(
            TopicPartition(topic, number), numbered_records(range(300), size=1000), batch=30
        )
    try:
        yield {topic: PARTITIONS}
    finally:
        writer.close()


def test_brokers_and_coordinators_may_restart_one_after_the_other(
    three_broker_cluster: Cluster, unique_name: UniqueName, topic: str
) -> None:
    flow = flow_between(unique_name("flow"), three_broker_cluster, three_broker_cluster, replicas=3)
    with filled_topic(flow, topic) as topics:
        ends = flow.source_end_offsets(topics)
        job = flow.job(topics, tasks=2, delivery=DeliveryMode.EXACTLY_ONCE, settings=SLOW_COPY)
        with flow.harness(job) as harness:
            harness.wait_for_snapshot("copying to begin", lambda seen: seen.records > 0)
            for node_id in three_broker_cluster.brokers:
                three_broker_cluster.restart_broker(node_id)
            harness.conductor.set_rate(0)
            harness.wait_until_caught_up(ends)
            harness.drain()
            assert_exactly_once(flow, topics, harness)
            assert_ledger_positions(flow, job, ends)


def test_a_hanging_transaction_is_ended_as_it_was_decided(
    three_broker_cluster: Cluster,
    unique_name: UniqueName,
    topic: str,
    request: pytest.FixtureRequest,
) -> None:
    """Partitions without a leader miss the markers of a commit and of an abort."""
    flow = flow_between(unique_name("flow"), three_broker_cluster, three_broker_cluster, replicas=3)
    flow.create_topic("unused" + topic)
    _create_assigned_topic(three_broker_cluster, remote_topic_name(topic))
    job = flow.job({topic: PARTITIONS}, tasks=2, delivery=DeliveryMode.EXACTLY_ONCE)
    router = make_router(flow.target)
    request.addfinalizer(router.close)
    before, after = TransactionalIdFencing(router, job), TransactionalIdFencing(router, job)
    before.fence_all(job)
    producers = [producer for producer in (before.acquire(0), before.acquire(1)) if producer]
    node = _without_coordinators(router, producers)
    led: list[TopicPartition] = []

    def leads_two() -> bool:
        """Brokers learn of a new topic one after the other."""
        led[:] = [p for p in _remotes(router, topic) if _leader(router, p) == node]
        return len(led) >= 2

    wait_until(leads_two, f"broker {node} to lead two partitions", HARNESS_TIMEOUT_S)
    kept, lost = led[:2]
    for producer, partition in zip(producers, (kept, lost), strict=True):
        _append_in_transaction(router, producer, partition)
    three_broker_cluster.kill_broker(node)
    wait_until(lambda: _leader(router, kept) is None, "no leader", HARNESS_TIMEOUT_S)
    source = TopicPartition(topic, kept.partition)
    lease = Lease(
        source=source,
        target=kept,
        position=3,
        expected=3,
        records=3,
        identity=TRANSACTIONAL_IDENTITY,
    )
    TransactionCommitter(router, producers[0], "source").commit(
        {source: entry_for_lease(lease, is_open=False)}
    )
    after.fence_all(job)
    assert after.end_hanging_transactions({kept: 3, lost: -1}) == frozenset(), (
        "without a leader they cannot be searched"
    )
    three_broker_cluster.start_broker(node)
    wait_until(
        lambda: all(_leader(router, p) == node for p in (kept, lost)),
        "the leader to be back",
        HARNESS_TIMEOUT_S,
    )
    assert [last_stable_offset(router, p) for p in (kept, lost)] == [0, 0], "markers are missing"
    assert after.end_hanging_transactions({kept: 3, lost: -1}) == {kept, lost}
    wait_until(lambda: [last_stable_offset(router, p) for p in (kept, lost)] == [4, 4], "markers")
    there = read_committed_records(flow.target, remote_topic_name(topic))
    assert {number: len(records) for number, records in there.items()} == {kept.partition: 3}


def _create_assigned_topic(cluster: Cluster, name: str) -> None:
    """Create a topic of which every broker leads two partitions.

    The controller gives no partition to a broker that has just restarted and is still fenced.
    """
    assignment = [[1 + number % 3] for number in range(PARTITIONS)]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers()})
    topic = NewTopic(name, num_partitions=PARTITIONS, replica_assignment=assignment)
    admin.create_topics([topic])[name].result(timeout=60)
    wait_for_leaders(cluster.access(), [TopicPartition(name, n) for n in range(PARTITIONS)])


def _remotes(router: Router, topic: str) -> list[TopicPartition]:
    router.refresh([remote_topic_name(topic)])
    return [TopicPartition(remote_topic_name(topic), number) for number in range(PARTITIONS)]


def _leader(router: Router, partition: TopicPartition) -> int | None:
    leader = router.refresh([partition.topic]).leader_of(partition)
    return leader.node_id if leader else None


def _without_coordinators(router: Router, producers: list[TransactionalProducer]) -> int:
    """A broker that coordinates none of these producers."""
    deadline = time.monotonic() + 30
    busy = {
        router.find_address(
            CoordinatorOf(CoordinatorType.TRANSACTION, producer.transactional_id), deadline
        )
        for producer in producers
    }
    brokers = router.refresh().brokers
    return next(node for node, broker in brokers.items() if broker.address not in busy)


def _append_in_transaction(
    router: Router, producer: TransactionalProducer, partition: TopicPartition
) -> None:
    """Append three records in the transaction of a producer."""
    batch = memoryview(build_batch(numbered_records(range(3))))
    batch_producer = BatchProducer(
        producer_id=producer.identity.producer_id, epoch=producer.identity.epoch, transactional=True
    )
    append_batch(
        router,
        partition,
        forward_batch(read_header(batch), batch, batch_producer, 0),
        transactional_id=producer.transactional_id,
    )


def test_old_brokers_get_transactions_of_their_version(
    start_cluster: StartCluster, unique_name: UniqueName, topic: str
) -> None:
    old = start_cluster(
        ClusterSpec(
            name="eo-old", version=OLD_KAFKA_VERSION, fast_start=True, properties=COPY_PROPERTIES
        )
    )
    flow = flow_between(unique_name("flow"), old, old)
    with filled_topic(flow, topic) as topics:
        job = flow.job(topics, tasks=2, delivery=DeliveryMode.EXACTLY_ONCE, settings=SLOW_COPY)
        with flow.harness(job) as harness:
            harness.wait_until_all_tasks_copy()
            harness.kill(0)
            harness.wait_for_event("takeover")
            harness.wait_for_more_records()
            harness.conductor.end_epoch()
            harness.wait_for_attempts(1)
            harness.conductor.set_rate(0)
            harness.wait_until_caught_up(flow.source_end_offsets(topics))
            harness.drain()
            assert_exactly_once(flow, topics, harness)
            assert_ledger_positions(flow, job, flow.source_end_offsets(topics))
