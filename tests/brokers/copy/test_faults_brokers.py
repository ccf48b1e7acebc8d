"""Brokers that stop, die, freeze, move and cut connections: every record arrives once, in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.spec import ClusterSpec
from sparkmirror.lab.verbs import VERBS
from sparkmirror.model import TopicPartition
from sparkmirror.wire.place import Address
from sparkmirror.wire.producers import describe_producers
from tests.brokers.copy.conftest import PROPERTIES, flow_between
from tests.support.clusters import StartCluster, UniqueName
from tests.support.flows import Flow, remote_name
from tests.support.operator import elect_preferred
from tests.support.proxy import Proxy
from tests.support.raw_copy import router_of
from tests.support.waiting import wait_until
from tests.support.writing import MIXED, MIXED_LIMIT, Writer, now_ms, numbered, write_mixed

log = logging.getLogger(__name__)

SLOWLY: dict[str, Any] = {"bytes_per_s": 1_000_000, "lease_s": 60.0}
TWO_DAYS_MS = 2 * 24 * 3600 * 1000
UNANSWERED_S = 17.0
"""Longer than any answer is waited for."""


def prepared(flow: Flow, topic: str, writer: Writer) -> dict[str, int]:
    """A topic with plain, transactional and fat partitions, and its number of partitions."""
    flow.create(topic, MIXED, remote=MIXED_LIMIT)
    write_mixed(writer, topic)
    return {topic: MIXED}


def something(seen: Snapshot) -> bool:
    """Whether copying is under way."""
    return seen.records > 0


@pytest.mark.parametrize(
    ("side", "verb"),
    [("target", "stop"), ("target", "kill"), ("source", "kill")],
    ids=["target-stops", "target-dies", "source-dies"],
)
def test_a_lone_broker_may_go_and_come_back(
    flow: Flow, topic: str, writer: Writer, pair: tuple[Cluster, Cluster], side: str, verb: str
) -> None:
    topics = prepared(flow, topic, writer)
    cluster = pair[side == "target"]
    with flow.stage(flow.job(topics, settings=SLOWLY)) as stage:
        stage.wait("copying to begin", something)
        VERBS[verb].to_broker(cluster, 1)
        try:
            stage.wait(
                "the reason to be told",
                lambda seen: any(f"{side}: " in one.reason for one in seen.partitions.values()),
            )
        finally:
            cluster.start_broker(1)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics), 90)
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)
        assert stage.snapshot.events == (), "nothing that an operator must know of"


def test_a_task_that_dies_while_the_source_is_down_costs_one_fence(
    flow: Flow, topic: str, writer: Writer, pair: tuple[Cluster, Cluster]
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    writer.write_many(partition, numbered(range(1000), size=1000), batch=10)
    # It says next to nothing of what it copies, so that there is something to be found out.
    quiet = {"report_every_s": 3600.0, "lease_s": 3600.0, "bytes_per_s": 100_000}
    with flow.stage(flow.job({topic: 1}, settings=quiet, silence_s=3600.0)) as stage:
        wait_until(lambda: flow.logs(partition)[1].end > 100, "something to be copied")
        pair[0].stop_broker(1)
        try:
            stage.kill(0)
            stage.wait(
                "it to be held",
                lambda seen: "source: " in seen.partitions[str(partition)].reason,
            )
        finally:
            pair[0].start_broker(1)
        stage.conductor.set_rate(0)
        wait_until(lambda: flow.logs(partition)[1].end == 1001, "everything to be copied", 60)
        stage.drain()
        flow.assert_mirrored({topic: 1}, fences=1, stage=stage)


def test_frozen_brokers_are_waited_for(
    flow: Flow, topic: str, writer: Writer, pair: tuple[Cluster, Cluster]
) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(flow.job(topics, settings=SLOWLY)) as stage:
        stage.wait("copying to begin", something)
        for cluster in pair:
            cluster.pause_broker(1)
        frozen_at = time.monotonic()
        try:
            wait_until(
                lambda: time.monotonic() - frozen_at > UNANSWERED_S, "answers to be overdue", 60
            )
        finally:
            for cluster in pair:
                cluster.resume_broker(1)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics), 90)
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)


# -- connections that are cut ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def proxied(start_module_cluster: StartCluster) -> Iterator[tuple[Cluster, Proxy]]:
    """A cluster that everybody reaches through a proxy, its own broker included."""
    with Proxy() as proxy:
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        cluster = start_module_cluster(
            ClusterSpec(name="proxied", fast_start=True, properties={**PROPERTIES, **advertised})
        )
        proxy.lead_to(Address.parse(cluster.bootstrap()))
        yield cluster, proxy


@pytest.fixture
def proxied_flow(
    proxied: tuple[Cluster, Proxy], unique_name: UniqueName
) -> Iterator[tuple[Flow, Proxy, Writer]]:
    """A flow from the proxied cluster to itself, and a writer."""
    cluster, proxy = proxied
    flow = flow_between(unique_name("flow"), cluster, cluster)
    writer = Writer(flow.source)
    yield flow, proxy, writer
    writer.close()
    proxy.delay_s, proxy.is_deaf = 0.0, False


def test_cut_connections_are_opened_again(
    proxied_flow: tuple[Flow, Proxy, Writer], topic: str
) -> None:
    flow, proxy, writer = proxied_flow
    topics = prepared(flow, topic, writer)
    proxy.delay_s = 0.02
    with flow.stage(flow.job(topics, settings=SLOWLY)) as stage:
        for _ in range(4):
            stage.wait_for_more()
            proxy.cut()
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics))
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)
        assert stage.snapshot.events == ()


@pytest.mark.parametrize("age_ms", [0, TWO_DAYS_MS], ids=["young", "two-days-old"])
def test_batches_nobody_answered_for_arrive_once(
    proxied_flow: tuple[Flow, Proxy, Writer], topic: str, age_ms: int
) -> None:
    flow, proxy, writer = proxied_flow
    flow.create(topic)
    old = now_ms() - age_ms
    records = numbered(range(2000), size=1000, timestamp=old)
    writer.write_many(TopicPartition(topic, 0), records, batch=10)
    with flow.stage(flow.job({topic: 1}, settings=SLOWLY)) as stage:
        stage.wait("copying to begin", something)
        proxy.swallow_answers()
        wait_until(lambda: proxy.swallowed > 0, "a batch whose answer is swallowed")
        if age_ms:
            wait_until(lambda: _is_forgotten(flow, topic), "the broker to forget our producer")
        proxy.is_deaf = False
        proxy.cut()
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
        flow.assert_mirrored({topic: 1}, fences=1 if age_ms else 0, stage=stage)
        kinds = [one.kind for one in stage.snapshot.events]
        assert kinds == (["ambiguous", "takeover"] if age_ms else [])


def _is_forgotten(flow: Flow, topic: str) -> bool:
    """Whether the target's broker remembers nobody who wrote to the remote topic."""
    partition, router = TopicPartition(remote_name(topic), 0), router_of(flow.target)
    try:
        return describe_producers(router, [partition])[partition].value == {}
    finally:
        router.close()


# -- leaders that move -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trio(start_module_cluster: StartCluster) -> Cluster:
    """Three brokers."""
    return start_module_cluster(
        ClusterSpec(name="trio", brokers=3, fast_start=True, properties=PROPERTIES)
    )


@pytest.fixture
def trio_flow(trio: Cluster, unique_name: UniqueName) -> Iterator[tuple[Flow, Writer]]:
    """A flow from three brokers to the same three, so that what moves moves on both sides."""
    flow = flow_between(unique_name("flow"), trio, trio, replicas=3)
    writer = Writer(flow.source)
    yield flow, writer
    writer.close()


def test_a_dead_leader_is_replaced_and_a_preferred_one_comes_back(
    trio: Cluster, trio_flow: tuple[Flow, Writer], topic: str
) -> None:
    flow, writer = trio_flow
    topics, remote = {topic: MIXED}, remote_name(topic)
    flow.create(topic, MIXED, remote=MIXED_LIMIT)
    write_mixed(writer, topic, records=300)
    slower = {**SLOWLY, "bytes_per_s": 100_000}
    with flow.stage(flow.job(topics, settings=slower)) as stage, Admin(flow.target) as admin:
        stage.wait("copying to begin", something)
        leader = admin.topic(remote).partitions[0].leader
        assert leader
        trio.kill_broker(leader)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics), 90)
        trio.start_broker(leader)
        stage.conductor.set_rate(slower["bytes_per_s"])
        write_mixed(writer, topic, first=10_000, records=300)
        for name in (topic, remote):
            wait_until(partial(_is_in_sync, admin, name), "every replica to be in sync", 60)
            elect_preferred(flow.target, name)
        assert admin.topic(remote).partitions[0].leader == leader
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics), 90)
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)


def _is_in_sync(admin: Admin, topic: str) -> bool:
    return all(len(partition.in_sync) == 3 for partition in admin.topic(topic).partitions)


def test_a_rolling_restart_costs_nothing(
    trio: Cluster, trio_flow: tuple[Flow, Writer], topic: str
) -> None:
    flow, writer = trio_flow
    topics = {topic: 6}
    flow.create(topic, 6)
    for number in range(6):
        writer.write_many(TopicPartition(topic, number), numbered(range(500), size=1000), batch=50)
    slower = {**SLOWLY, "bytes_per_s": 150_000}
    with flow.stage(flow.job(topics, settings=slower)) as stage:
        stage.wait(
            "every partition to have its turn",
            lambda seen: all(one.position > 0 for one in seen.partitions.values()),
        )
        assert not any(one.position == 500 for one in stage.snapshot.partitions.values())
        for node_id in trio.brokers:
            trio.restart_broker(node_id)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics), 90)
        stage.drain()
        flow.assert_mirrored(topics, fences=0, stage=stage)
        assert stage.snapshot.events == ()
