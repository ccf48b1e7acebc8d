"""Exactly-once on other clusters: several brokers that restart in turn, and brokers of old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sparkmirror.copy.committer import Committer
from sparkmirror.copy.delivery import Delivery
from sparkmirror.copy.lease import IN_TRANSACTIONS, Lease
from sparkmirror.copy.ledger import entry_of
from sparkmirror.copy.term import Term
from sparkmirror.copy.terms import Terms
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.spec import ClusterSpec
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append_batch
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import read_header
from sparkmirror.wire.records import build
from sparkmirror.wire.routing import CoordinatorKind, CoordinatorOf, Router
from tests.brokers.copy.conftest import PROPERTIES, flow_between
from tests.support.clusters import StartCluster, UniqueName, create_topic
from tests.support.committed import (
    assert_exactly_once,
    assert_ledger_stands_at,
    committed,
    stable_end,
)
from tests.support.flows import Flow, remote_name
from tests.support.raw_copy import router_of
from tests.support.stage import PATIENCE_S
from tests.support.waiting import wait_until
from tests.support.writing import Writer, numbered

PARTITIONS = 6
OLD = "3.9.2"
"""Of the last line whose transactions keep their epoch and take partitions one by one."""


SLOWLY = {"bytes_per_s": 30_000}
"""So slow that every fault finds something under way: what is written takes half a minute."""


@pytest.fixture(scope="module")
def started_trio(start_module_cluster: StartCluster) -> Cluster:
    """Three brokers."""
    return start_module_cluster(
        ClusterSpec(name="eo-trio", brokers=3, fast_start=True, properties=PROPERTIES)
    )


@pytest.fixture
def trio(started_trio: Cluster) -> Cluster:
    """The three brokers, all of them up and known to each other, whatever a test before did."""
    started_trio.start_brokers()
    return started_trio


@contextmanager
def filled(flow: Flow, topic: str) -> Iterator[dict[str, int]]:
    """A topic with records in every partition."""
    flow.create(topic, PARTITIONS)
    writer = Writer(flow.source)
    for number in range(PARTITIONS):
        writer.write_many(TopicPartition(topic, number), numbered(range(300), size=1000), batch=30)
    try:
        yield {topic: PARTITIONS}
    finally:
        writer.close()


def test_brokers_and_coordinators_may_restart_one_after_the_other(
    trio: Cluster, unique_name: UniqueName, topic: str
) -> None:
    flow = flow_between(unique_name("flow"), trio, trio, replicas=3)
    with filled(flow, topic) as topics:
        ends = flow.ends(topics)
        job = flow.job(topics, tasks=2, delivery=Delivery.EXACTLY_ONCE, settings=SLOWLY)
        with flow.stage(job) as stage:
            stage.wait("copying to begin", lambda seen: seen.records > 0)
            for node_id in trio.brokers:
                trio.restart_broker(node_id)
            stage.conductor.set_rate(0)
            stage.wait_until_caught_up(ends)
            stage.drain()
            assert_exactly_once(flow, topics, stage)
            assert_ledger_stands_at(flow, job, ends)


def test_what_hangs_is_ended_as_it_was_decided(
    trio: Cluster, unique_name: UniqueName, topic: str
) -> None:
    """Partitions without a leader miss the markers of a commit and of an abort."""
    flow = flow_between(unique_name("flow"), trio, trio, replicas=3)
    flow.create("unused" + topic)
    create_topic(flow.target, remote_name(topic), PARTITIONS, replicas=1)
    job = flow.job({topic: PARTITIONS}, tasks=2, delivery=Delivery.EXACTLY_ONCE)
    router = router_of(flow.target)
    before, after = Terms(router, job), Terms(router, job)
    before.begin()
    terms = [term for term in (before.take(0), before.take(1)) if term]
    node = _without_coordinators(router, terms)
    kept, lost = [p for p in _remotes(router, topic) if _leader(router, p) == node][:2]
    for term, partition in zip(terms, (kept, lost), strict=True):
        _write_in(router, term, partition)
    trio.kill_broker(node)
    wait_until(lambda: _leader(router, kept) is None, "nobody to lead", PATIENCE_S)
    source = TopicPartition(topic, kept.partition)
    lease = Lease(
        source=source, target=kept, position=3, expected=3, records=3, identity=IN_TRANSACTIONS
    )
    Committer(router, terms[0], "source").commit({source: entry_of(lease, is_open=False)})
    after.begin()
    assert after.end_hanging({kept: 3, lost: -1}) == frozenset(), "they cannot be looked at"
    trio.start_broker(node)
    wait_until(
        lambda: all(_leader(router, p) == node for p in (kept, lost)),
        "the leader to be back",
        PATIENCE_S,
    )
    assert [stable_end(router, p) for p in (kept, lost)] == [0, 0], "markers are missing"
    assert after.end_hanging({kept: 3, lost: -1}) == {kept, lost}
    wait_until(lambda: [stable_end(router, p) for p in (kept, lost)] == [4, 4], "markers")
    there = committed(flow.target, remote_name(topic))
    assert {number: len(records) for number, records in there.items()} == {kept.partition: 3}
    router.close()


def _remotes(router: Router, topic: str) -> list[TopicPartition]:
    router.refresh([remote_name(topic)])
    return [TopicPartition(remote_name(topic), number) for number in range(PARTITIONS)]


def _leader(router: Router, partition: TopicPartition) -> int | None:
    leader = router.refresh([partition.topic]).leader_of(partition)
    return leader.node_id if leader else None


def _without_coordinators(router: Router, terms: list[Term]) -> int:
    """A broker that coordinates none of some terms."""
    deadline = time.monotonic() + 30
    busy = {
        router.locate(CoordinatorOf(CoordinatorKind.TRANSACTION, term.transactional_id), deadline)
        for term in terms
    }
    brokers = router.refresh().brokers
    return next(node for node, broker in brokers.items() if broker.address not in busy)


def _write_in(router: Router, term: Term, partition: TopicPartition) -> None:
    """Append three records in the transaction of a term."""
    batch = memoryview(build(numbered(range(3))))
    producer = Producer(
        producer_id=term.identity.producer_id, epoch=term.identity.epoch, transactional=True
    )
    append_batch(
        router,
        partition,
        forward(read_header(batch), batch, producer, 0),
        transactional_id=term.transactional_id,
    )


def test_brokers_of_old_are_written_to_in_their_own_way(
    start_cluster: StartCluster, unique_name: UniqueName, topic: str
) -> None:
    old = start_cluster(
        ClusterSpec(name="eo-old", version=OLD, fast_start=True, properties=PROPERTIES)
    )
    flow = flow_between(unique_name("flow"), old, old)
    with filled(flow, topic) as topics:
        job = flow.job(topics, tasks=2, delivery=Delivery.EXACTLY_ONCE, settings=SLOWLY)
        with flow.stage(job) as stage:
            stage.wait_until_all_copy()
            stage.kill(0)
            stage.wait_for_event("takeover")
            stage.wait_for_more()
            stage.conductor.end_epoch()
            stage.wait_for_attempts(1)
            stage.conductor.set_rate(0)
            stage.wait_until_caught_up(flow.ends(topics))
            stage.drain()
            assert_exactly_once(flow, topics, stage)
            assert_ledger_stands_at(flow, job, flow.ends(topics))
