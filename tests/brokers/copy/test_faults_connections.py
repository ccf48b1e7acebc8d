"""Connections that are cut, slow, throttled or lose responses: every record arrives once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.protocol.producer_ids import describe_producers
from tests.brokers.conftest import COPY_PROPERTIES
from tests.brokers.copy.conftest import flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic, has_copied_records
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.admin_operations import set_client_quota
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.broker_proxy import BrokerProxy
from tests.support.kafka.clusters import StartCluster, UniqueName
from tests.support.kafka.partition_log import assert_copied
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until

HOUR_MS = 3600 * 1000
TWO_DAYS_MS = 48 * HOUR_MS
QUOTA_BYTES_S = 1_000_000
SLOW_CONNECTION_S = 0.3


@pytest.fixture(scope="module")
def proxied(start_module_cluster: StartCluster) -> Iterator[tuple[Cluster, BrokerProxy]]:
    """A cluster that every client and its own broker reach through a proxy."""
    with BrokerProxy() as proxy:
        advertised = {
            "advertised.listeners": f"PLAINTEXT://{proxy.address}",
            "quota.window.num": "2",
            # The broker forgets old producers at once.
            "producer.id.expiration.check.interval.ms": "1000",
        }
        cluster = start_module_cluster(
            ClusterSpec(
                name="proxied", fast_start=True, properties={**COPY_PROPERTIES, **advertised}
            )
        )
        proxy.forward_to(Address.parse(cluster.bootstrap_servers()))
        yield cluster, proxy


@pytest.fixture
def proxied_flow(
    proxied: tuple[Cluster, BrokerProxy], unique_name: UniqueName
) -> Iterator[tuple[CopyFlow, BrokerProxy, BatchWriter]]:
    """A flow from the proxied cluster to itself, and a writer."""
    cluster, proxy = proxied
    flow = flow_between(unique_name("flow"), cluster, cluster)
    writer = BatchWriter(flow.source)
    yield flow, proxy, writer
    writer.close()
    proxy.delay_s, proxy.drops_produce_responses = 0.0, False


def test_cut_connections_are_opened_again(
    proxied_flow: tuple[CopyFlow, BrokerProxy, BatchWriter], topic: str
) -> None:
    flow, proxy, writer = proxied_flow
    topics = create_mixed_topic(flow, topic, writer)
    proxy.delay_s = 0.02
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        for _ in range(4):
            harness.wait_for_more_records()
            proxy.cut_connections()
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        flow.assert_mirrored(topics, fences=0, harness=harness)
        assert harness.snapshot.events == ()


@pytest.mark.parametrize("age_ms", [0, TWO_DAYS_MS], ids=["young", "two-days-old"])
def test_batches_without_a_response_arrive_once(
    proxied_flow: tuple[CopyFlow, BrokerProxy, BatchWriter], topic: str, age_ms: int
) -> None:
    flow, proxy, writer = proxied_flow
    flow.create_topic(topic)
    old = now_ms() - age_ms
    records = numbered_records(range(2000), size=1000, timestamp=old)
    writer.write_batches(TopicPartition(topic, 0), records, batch=25)
    with flow.harness(flow.job({topic: 1}, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        proxy.drop_produce_responses()
        wait_until(lambda: proxy.dropped_responses > 0, "a dropped response")
        if age_ms:
            wait_until(lambda: _is_forgotten(flow, topic), "the broker to forget our producer")
        proxy.drops_produce_responses = False
        proxy.cut_connections()
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        kinds = [one.kind for one in harness.snapshot.events]
        takeovers = kinds.count("takeover")
        assert bool(takeovers) == bool(age_ms)
        assert kinds == ["ambiguous", "takeover"] * takeovers
        flow.assert_mirrored({topic: 1}, fences=takeovers, harness=harness)


def test_a_restarted_broker_that_knows_only_the_last_batch_duplicates_none(
    proxied: tuple[Cluster, BrokerProxy],
    proxied_flow: tuple[CopyFlow, BrokerProxy, BatchWriter],
    topic: str,
) -> None:
    """The broker refuses the sequence of a batch that it has: its log must be checked."""
    flow, proxy, writer = proxied_flow
    flow.create_topic(topic)
    records = numbered_records(range(2000), size=1000)
    writer.write_batches(TopicPartition(topic, 0), records, batch=25)
    with flow.harness(flow.job({topic: 1}, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        proxy.drop_produce_responses()
        wait_until(lambda: proxy.dropped_responses > 1, "dropped responses")
        proxied[0].kill_broker(1)
        proxied[0].start_broker(1)
        proxy.drops_produce_responses = False
        proxy.cut_connections()
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        kinds = [one.kind for one in harness.snapshot.events]
        # On a busy computer the broker may start for longer than a task waits for its answers.
        takeovers = kinds.count("takeover")
        assert kinds in ([], ["ambiguous", "takeover"], ["takeover"])
        flow.assert_mirrored({topic: 1}, fences=takeovers, harness=harness)


def test_old_batches_without_a_response_arrive_once_although_our_clock_is_behind(
    proxied_flow: tuple[CopyFlow, BrokerProxy, BatchWriter], topic: str
) -> None:
    """The broker forgets producers by its own clock; our clock, a day behind, must not matter."""
    flow, proxy, writer = proxied_flow
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(600), size=1000, timestamp=now_ms() - 30 * HOUR_MS)
    writer.write_batches(partition, records, batch=25)
    job = flow.job({topic: 1}, settings=SLOW_COPY)
    with HarnessProcess(job, clock_ahead_ms=-24 * HOUR_MS) as behind:
        behind.wait_until_copied(100)
        proxy.drop_produce_responses()
        wait_until(lambda: proxy.dropped_responses > 0, "a dropped response")
        wait_until(lambda: _is_forgotten(flow, topic), "the broker to forget our producer")
        proxy.drops_produce_responses = False
        proxy.cut_connections()
        behind.wait_until_copied(len(records))
    assert_copied(records, flow.partition_logs(partition)[1], fences=1)


def test_batches_are_pipelined_on_a_slow_connection(
    proxied_flow: tuple[CopyFlow, BrokerProxy, BatchWriter], topic: str
) -> None:
    """Batches are sent before earlier ones are answered."""
    flow, proxy, writer = proxied_flow
    partition, batches = TopicPartition(topic, 0), 60
    flow.create_topic(topic)
    for number in range(batches):
        first = 100 * number
        writer.write_batch(partition, numbered_records(range(first, first + 100), size=1000))
    proxy.delay_s = SLOW_CONNECTION_S
    proxy.reset_counts()
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_until_caught_up({str(partition): 100 * batches})
        harness.drain()
        assert proxy.produce_requests >= batches
        assert proxy.pipelined_requests > batches / 2
        proxy.delay_s = 0.0
        flow.assert_mirrored({topic: 1}, fences=0, harness=harness)
        assert harness.snapshot.events == ()


def test_a_throttled_client_waits(
    proxied_flow: tuple[CopyFlow, BrokerProxy, BatchWriter], topic: str
) -> None:
    """One flow has a quota for what it writes, the other one for what it reads."""
    flow, _, writer = proxied_flow
    topics = {direction: {f"{topic}.{direction}": 1} for direction in ("producer", "consumer")}
    flows = {direction: replace(flow, name=f"{flow.name}.{direction}") for direction in topics}
    for direction, (name,) in topics.items():
        flows[direction].create_topic(name)
        writer.write_batches(TopicPartition(name, 0), numbered_records(range(4000), size=1000))
        quota = f"{direction}_byte_rate"
        set_client_quota(flow.target, flows[direction].name, quota, QUOTA_BYTES_S)

    def copy_throttled(direction: str) -> None:
        own, copied = flows[direction], topics[direction]
        with own.harness(own.job(copied, settings={"client_id": own.name})) as harness:
            began = time.monotonic()
            harness.wait_until_caught_up(own.source_end_offsets(copied))
            assert time.monotonic() - began > 1.5, "four seconds' worth, of which the first is free"
            harness.drain()
            own.assert_mirrored(copied, fences=0, harness=harness)
            assert harness.snapshot.events == ()

    with ThreadPoolExecutor() as pool:
        list(pool.map(copy_throttled, flows))


def _is_forgotten(flow: CopyFlow, topic: str) -> bool:
    """Whether the target broker has no producer state for the remote topic."""
    partition, router = TopicPartition(remote_topic_name(topic), 0), make_router(flow.target)
    try:
        return describe_producers(router, [partition])[partition].value == {}
    finally:
        router.close()
