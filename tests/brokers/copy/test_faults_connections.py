"""Connections that are cut, slow, throttled or never answered: every record arrives once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.spec import ClusterSpec
from sparkmirror.model import TopicPartition
from sparkmirror.wire.place import Address
from sparkmirror.wire.producers import describe_producers
from tests.brokers.copy.conftest import PROPERTIES, flow_between
from tests.support.clusters import StartCluster, UniqueName
from tests.support.faults import SLOWLY, prepared, something
from tests.support.flows import Flow, remote_name
from tests.support.logs import assert_copied
from tests.support.operator import set_quota
from tests.support.proxy import Proxy
from tests.support.raw_copy import router_of
from tests.support.stage_process import StageProcess
from tests.support.waiting import wait_until
from tests.support.writing import Writer, now_ms, numbered

HOUR_MS = 3600 * 1000
TWO_DAYS_MS = 48 * HOUR_MS
QUOTA_BYTES_S = 1_000_000
FAR_S = 0.3


@pytest.fixture(scope="module")
def proxied(start_module_cluster: StartCluster) -> Iterator[tuple[Cluster, Proxy]]:
    """A cluster that everybody reaches through a proxy, its own broker included."""
    with Proxy() as proxy:
        advertised = {
            "advertised.listeners": f"PLAINTEXT://{proxy.address}",
            "quota.window.num": "2",
        }
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
        wait_until(lambda: proxy.swallowed > 0, "an answer that is swallowed")
        if age_ms:
            wait_until(lambda: _is_forgotten(flow, topic), "the broker to forget our producer")
        proxy.is_deaf = False
        proxy.cut()
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
        kinds = [one.kind for one in stage.snapshot.events]
        takeovers = kinds.count("takeover")
        assert bool(takeovers) == bool(age_ms)
        assert kinds == ["ambiguous", "takeover"] * takeovers
        flow.assert_mirrored({topic: 1}, fences=takeovers, stage=stage)


def test_a_restarted_broker_that_remembers_one_batch_of_many_doubles_none(
    proxied: tuple[Cluster, Proxy], proxied_flow: tuple[Flow, Proxy, Writer], topic: str
) -> None:
    """It refuses the sequence of a batch that it holds: what it holds must be found out."""
    flow, proxy, writer = proxied_flow
    flow.create(topic)
    records = numbered(range(2000), size=1000)
    writer.write_many(TopicPartition(topic, 0), records, batch=10)
    with flow.stage(flow.job({topic: 1}, settings=SLOWLY)) as stage:
        stage.wait("copying to begin", something)
        proxy.swallow_answers()
        wait_until(lambda: proxy.swallowed > 1, "answers that are swallowed")
        proxied[0].kill_broker(1)
        proxied[0].start_broker(1)
        proxy.is_deaf = False
        proxy.cut()
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
        flow.assert_mirrored({topic: 1}, fences=0, stage=stage)
        assert stage.snapshot.events == ()


def test_old_batches_nobody_answered_for_arrive_once_although_our_clock_takes_them_for_young(
    proxied_flow: tuple[Flow, Proxy, Writer], topic: str
) -> None:
    """The broker forgets producers by its own clock; ours is a day behind, and must not decide."""
    flow, proxy, writer = proxied_flow
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    records = numbered(range(2000), size=1000, timestamp=now_ms() - 30 * HOUR_MS)
    writer.write_many(partition, records, batch=10)
    job = flow.job({topic: 1}, settings=SLOWLY)
    with StageProcess(job, clock_ahead_ms=-24 * HOUR_MS) as behind:
        behind.wait_until_copied(100)
        proxy.swallow_answers()
        wait_until(lambda: proxy.swallowed > 0, "an answer that is swallowed")
        wait_until(lambda: _is_forgotten(flow, topic), "the broker to forget our producer")
        proxy.is_deaf = False
        proxy.cut()
        behind.wait_until_copied(len(records))
    assert_copied(records, flow.logs(partition)[1], fences=1)


def test_a_long_way_is_filled(proxied_flow: tuple[Flow, Proxy, Writer], topic: str) -> None:
    """Batches do not wait for one another's answers; how quick the computer is does not matter."""
    flow, proxy, writer = proxied_flow
    partition, batches = TopicPartition(topic, 0), 60
    flow.create(topic)
    for number in range(batches):
        first = 100 * number
        writer.write(partition, numbered(range(first, first + 100), size=1000))
    proxy.delay_s = FAR_S
    proxy.count_anew()
    with flow.stage(flow.job({topic: 1})) as stage:
        stage.wait_until_caught_up({str(partition): 100 * batches})
        stage.drain()
        assert proxy.produced >= batches
        assert proxy.unanswered > batches / 2
        proxy.delay_s = 0.0
        flow.assert_mirrored({topic: 1}, fences=0, stage=stage)
        assert stage.snapshot.events == ()


@pytest.mark.parametrize("direction", ["producer", "consumer"])
def test_a_broker_that_throttles_is_obeyed(
    proxied_flow: tuple[Flow, Proxy, Writer], topic: str, direction: str
) -> None:
    flow, _, writer = proxied_flow
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    writer.write_many(partition, numbered(range(4000), size=1000))
    set_quota(flow.target, flow.name, f"{direction}_byte_rate", QUOTA_BYTES_S)
    with flow.stage(flow.job({topic: 1}, settings={"client_id": flow.name})) as stage:
        began = time.monotonic()
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        assert time.monotonic() - began > 1.5, "four seconds' worth, of which the first is free"
        stage.drain()
        flow.assert_mirrored({topic: 1}, fences=0, stage=stage)
        assert stage.snapshot.events == ()


def _is_forgotten(flow: Flow, topic: str) -> bool:
    """Whether the target's broker remembers nobody who wrote to the remote topic."""
    partition, router = TopicPartition(remote_name(topic), 0), router_of(flow.target)
    try:
        return describe_producers(router, [partition])[partition].value == {}
    finally:
        router.close()
