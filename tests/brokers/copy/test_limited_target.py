"""A target that is not Apache Kafka: no producer ids, small requests, few codecs, idle limits.

The target is a stand-in in front of a broker (`limited_service`). librdkafka reads what arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.driver.fencing.takeover_decisions import SETTLE_S
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.brokers.conftest import COPY_PROPERTIES
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.fault_scenario import has_copied_records
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.bulk_reader import read_partitions
from tests.support.kafka.clusters import StartCluster, UniqueName
from tests.support.kafka.limited_service import (
    EVENT_HUBS,
    TRANSACTIONS,
    LimitedService,
    ServiceLimits,
)
from tests.support.waiting import wait_until

MAX_REQUEST_SIZE = 1_000_000
LARGE_BATCHES = {"max.message.bytes": "4000000"}
SETTINGS: dict[str, Any] = {"lease_timeout_s": 2.0}
"""How long a takeover waits for an owner that did not give its leases back."""
SLOW = {**SETTINGS, "bytes_per_s": 400_000}


@pytest.fixture(scope="module")
def running_service(start_module_cluster: StartCluster) -> Iterator[LimitedService]:
    """A service whose broker names it as its own address."""
    with LimitedService() as service:
        advertised = {"advertised.listeners": f"PLAINTEXT://{service.address}"}
        cluster = start_module_cluster(
            ClusterSpec(
                name="limited", fast_start=True, properties={**COPY_PROPERTIES, **advertised}
            )
        )
        service.forward_to(Address.parse(cluster.bootstrap_servers()))
        yield service


@pytest.fixture
def service(running_service: LimitedService) -> Iterator[LimitedService]:
    """The service with the limits of Event Hubs, and with its counts at 0."""
    running_service.limits = EVENT_HUBS
    running_service.cut_connections()  # those of the test before have the versions of its limits
    running_service.reset_counts()
    yield running_service
    assert running_service.closed_for_absent_api == 0, "an API was requested that is not listed"
    assert running_service.closed_for_size == 0, "a request was larger than max.request.size"


@pytest.fixture
def limited_flow(service: LimitedService, source: Cluster, unique_name: UniqueName) -> CopyFlow:
    """A flow to the service."""
    target = {"bootstrap.servers": service.address}
    return CopyFlow(
        name=unique_name("flow"),
        source=source.access(),
        target=ClusterAccess.from_properties("target", target),
        source_properties=source.client_properties(),
        target_properties=target | {"max.request.size": str(MAX_REQUEST_SIZE)},
    )


def contents(properties: Mapping[str, str], topic: str, partitions: int) -> list[object]:
    """Return what librdkafka reads, in order: partition and content of each record."""
    servers = {"bootstrap.servers": properties["bootstrap.servers"]}
    read = read_partitions(topic, partitions, servers)
    return [(record.partition, record.content) for record in read]


def assert_same_records(flow: CopyFlow, topic: str, partitions: int) -> None:
    """Assert that the target has every source record once, in order."""
    expected = contents(flow.source_properties, topic, partitions)
    assert contents(flow.target_properties, remote_topic_name(topic), partitions) == expected


def write_all_kinds(writer: BatchWriter, topic: str) -> None:
    """Write four partitions: small batches, batches of each codec, and batches of 2.5 MB."""
    small, compressed, large, more = (TopicPartition(topic, number) for number in range(4))
    writer.write_batches(small, numbered_records(range(1500), size=1000), batch=25)
    for number, codec in enumerate([*CompressionType] * 3):
        first = 100 * number
        records = numbered_records(range(first, first + 100), size=2000)
        writer.write_batch(compressed, records, codec)
    for first in range(0, 5000, 2500):
        writer.write_batch(large, numbered_records(range(first, first + 2500), size=1000))
    writer.write_batches(more, numbered_records(range(1200), size=1000), batch=300)


def test_every_record_arrives_through_kills_cuts_lost_answers_and_refused_codecs(
    service: LimitedService, limited_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, topics = limited_flow, {topic: 4}
    flow.create_topic(topic, 4, source=LARGE_BATCHES)
    write_all_kinds(writer, topic)
    job = flow.job(topics, tasks=2, settings=SLOW)
    with HarnessProcess(job) as killed:
        killed.wait_until_copied(300)
        killed.kill()
    with flow.harness(job) as harness:
        harness.wait_for_event("takeover")
        harness.kill(0)
        for _ in range(2):
            harness.wait_for_more_records()
            service.cut_connections()
        service.lose_next_produce()
        wait_until(lambda: service.lost_produce_requests == 1, "an answer to be lost")
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        kinds = [one.kind for one in harness.snapshot.events]
        assert kinds.count("at-least-once") == 1
        assert set(kinds) <= {"at-least-once", "ambiguous", "takeover"}
        views = harness.snapshot.partitions.values()
        assert {view.delivery for view in views} == {DeliveryMode.AT_LEAST_ONCE.value}
    assert_same_records(flow, topic, 4)
    with flow.harness(flow.job(topics, tasks=2, settings=SETTINGS)) as harness:
        writer.write_batch(
            TopicPartition(topic, 1), numbered_records(range(1500, 1600)), CompressionType.LZ4
        )
        writer.write_batch(TopicPartition(topic, 2), numbered_records(range(5000, 7500), size=1000))
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        assert [one.kind for one in harness.snapshot.events] == ["at-least-once"], (
            "a clean end needs no comparison"
        )
        lanes = harness.snapshot.lanes[topic]
        assert lanes["codec-unknown-to-target"] > 0
        assert lanes["larger-than-target-allows"] > 0
    assert 500_000 < service.largest_request <= MAX_REQUEST_SIZE
    assert_same_records(flow, topic, 4)


def test_a_request_that_arrives_late_may_come_twice_and_nothing_is_lost(
    service: LimitedService, limited_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, partition = limited_flow, TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batches(partition, numbered_records(range(500), size=500), batch=100)
    with flow.harness(flow.job({topic: 1}, settings=SLOW)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        service.lose_next_produce(late_after_s=SETTLE_S + 2.0)
        writer.write_batches(partition, numbered_records(range(500, 1000), size=500), batch=100)
        harness.wait_until_caught_up({str(partition): 1000})
        wait_until(lambda: service.lost_produce_requests == 1, "the late request")
        writer.write_batches(partition, numbered_records(range(1000, 1100), size=500))
        harness.wait_until_caught_up({str(partition): 1100})
        harness.drain()
        runs = harness.conductor.runs(partition)
    expected = contents(flow.source_properties, topic, 1)
    arrived = contents(flow.target_properties, remote_topic_name(topic), 1)
    assert len(arrived) > len(expected), "the late request came twice"
    assert list(dict.fromkeys(map(str, arrived))) == list(map(str, expected))
    for source_first, target_first, length in runs:
        copied = arrived[target_first : target_first + length]
        assert copied == expected[source_first : source_first + length]


@pytest.mark.parametrize(
    ("limits", "event", "text", "delivery", "takeovers"),
    [
        (
            replace(
                EVENT_HUBS,
                absent_apis=frozenset(),
                init_producer_id_code=ErrorCode.UNSUPPORTED_VERSION,
            ),
            "at-least-once",
            "refuses producer ids: InitProducerId answered UNSUPPORTED_VERSION",
            DeliveryMode.AT_LEAST_ONCE,
            1,
        ),
        (
            ServiceLimits(absent_apis=TRANSACTIONS),
            "no-fence",
            "does not support AddPartitionsToTxn",
            DeliveryMode.SEQUENCED,
            2,
        ),
    ],
    ids=["refuses-producer-ids", "has-no-transactions"],
)
def test_what_a_service_lacks_is_said_once(
    service: LimitedService,
    limited_flow: CopyFlow,
    topic: str,
    writer: BatchWriter,
    limits: ServiceLimits,
    event: str,
    text: str,
    delivery: DeliveryMode,
    takeovers: int,
) -> None:
    service.limits = limits
    flow = limited_flow
    flow.create_topic(topic, 2)
    for number in range(2):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(50)))
    with flow.harness(flow.job({topic: 2}, settings=SETTINGS)) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.kill(0)
        harness.wait_for_event("takeover", times=takeovers)
        writer.write_batch(TopicPartition(topic, 0), numbered_records(range(50, 60)))
        harness.wait_until_caught_up({f"{topic}-0": 60})
        events = harness.snapshot.events
        assert sum(one.kind == "takeover" for one in events) == takeovers
        said = [one for one in events if one.kind != "takeover"]
        assert [one.kind for one in said] == [event]
        assert text in said[0].text
        views = harness.snapshot.partitions.values()
        assert {view.delivery for view in views} == {delivery.value}
    assert_same_records(flow, topic, 2)


def test_exactly_once_is_refused(limited_flow: CopyFlow, topic: str) -> None:
    flow = limited_flow
    flow.create_topic(topic)
    job = flow.job({topic: 1}, delivery=DeliveryMode.EXACTLY_ONCE)
    conductor = Conductor(job, OffsetsTopicLedger.for_job(job))
    with pytest.raises(UnsupportedByBroker, match=r"set exactly.once.source.support=disabled"):
        conductor.start()
    conductor.stop()


def test_connections_that_are_closed_after_idling_cost_nothing(
    service: LimitedService, limited_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, partition = limited_flow, TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batch(partition, numbered_records(range(10)))

    def is_idle(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(partition)]
        return (view.state, view.lag, view.reason) == ("leased", 0, "")

    with flow.harness(flow.job({topic: 1}, settings=SETTINGS)) as harness:
        harness.wait_until_caught_up({str(partition): 10})
        harness.wait_for_snapshot("nothing to copy", is_idle)
        service.change(idle_s=0.4)
        service.cut_connections()
        harness.wait_for_snapshot("nothing to copy", is_idle)
        before = service.closed_for_idling

        def was_closed_again() -> bool:
            assert is_idle(harness.snapshot), harness.snapshot.partitions
            return service.closed_for_idling >= before + 3

        wait_until(was_closed_again, "idle connections to be closed")
        service.change(idle_s=None)
        service.cut_connections()  # none has a request, so no outcome is unknown
        writer.write_batch(partition, numbered_records(range(10, 20)))
        harness.wait_until_caught_up({str(partition): 20})
        harness.drain()
        assert [one.kind for one in harness.snapshot.events] == ["at-least-once"]
    assert_same_records(flow, topic, 1)


def test_a_record_larger_than_a_request_holds_its_partition(
    limited_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, partition = limited_flow, TopicPartition(topic, 0)
    flow.create_topic(topic, source=LARGE_BATCHES)
    writer.write_batch(partition, numbered_records(range(10)))
    writer.write_batch(partition, [Record(0, now_ms(), b"k", bytes(MAX_REQUEST_SIZE))])
    job = flow.job({topic: 1}, settings=SETTINGS)
    with flow.harness(job) as harness:
        harness.wait_for_snapshot(
            "the record to be named, and those before it to be copied",
            lambda seen: (
                "raise its max.request.size" in seen.partitions[str(partition)].reason
                and seen.partitions[str(partition)].position == 10
            ),
        )
