"""A partition whose records the target refuses is held with the reason until the cause is gone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from kafka.admin import ACLOperation, ResourceType

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.errors import NotAuthorized
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.brokers.conftest import COPY_PROPERTIES
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import CopyHarness
from tests.support.copy.fault_scenario import SLOW_COPY, has_copied_records
from tests.support.kafka.admin_operations import grant_acls, set_topic_config
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.clusters import StartCluster, UniqueName

FOREVER = str(2**63 - 1)
TWO_DAYS_MS = 2 * 24 * 3600 * 1000
SHORT_CONNECTIONS = {"connections.max.idle.ms": "3000", "connections.max.reauth.ms": "5000"}
"""How long the strict cluster keeps an idle connection and a login."""
SILENT_S = 4.0
MIRROR = "mirror"
UNFENCED = "unfenced"
"""Users of the strict cluster; only the first may use transactional ids."""


def wait_until_held(harness: CopyHarness, partition: TopicPartition, reason: str) -> None:
    """Wait until a partition is held with a reason."""

    def held(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(partition)]
        return view.state == "held" and reason in view.reason

    harness.wait_for_snapshot(f"{partition} to be held: {reason}", held)


@pytest.mark.parametrize(
    ("bad", "narrow", "wide", "reason"),
    [
        pytest.param(
            Record(0, now_ms(), b"k", bytes(50_000)),
            {"max.message.bytes": "20000"},
            {"max.message.bytes": "200000"},
            "raise its max.message.bytes",
            id="too-large",
        ),
        pytest.param(
            Record(0, now_ms() - TWO_DAYS_MS, b"k", b"old"),
            {"message.timestamp.before.max.ms": "3600000"},
            {"message.timestamp.before.max.ms": FOREVER},
            "INVALID_TIMESTAMP",
            id="too-old",
        ),
    ],
)
def test_a_refused_record_holds_its_partition_until_the_target_accepts_it(
    flow: CopyFlow,
    topic: str,
    writer: BatchWriter,
    bad: Record,
    narrow: Mapping[str, str],
    wide: Mapping[str, str],
    reason: str,
) -> None:
    flow.create_topic(topic, 2, source={"message.timestamp.after.max.ms": FOREVER}, remote=narrow)
    stuck, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    writer.write_batch(stuck, numbered_records(range(10)))
    writer.write_batch(stuck, [bad])
    writer.write_batch(stuck, numbered_records(range(10, 20)))
    writer.write_batch(free, numbered_records(range(20)))
    with flow.harness(flow.job({topic: 2})) as harness:
        wait_until_held(harness, stuck, reason)
        assert harness.snapshot.partitions[str(stuck)].position == 10, "all before it are there"
        writer.write_batch(free, numbered_records(range(20, 40)))
        harness.wait_until_caught_up({str(free): 40})
        before = len(harness.snapshot.events)
        wait_until_held(harness, stuck, reason)
        set_topic_config(flow.target, remote_topic_name(topic), wide)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
        flow.assert_mirrored({topic: 2}, fences=0, harness=harness)
        assert before == 1, "one event, however often it is tried"


def test_a_foreign_writer_is_reported_and_no_record_is_lost(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition, remote = TopicPartition(topic, 0), TopicPartition(remote_topic_name(topic), 0)
    flow.create_topic(topic)
    records = numbered_records(range(3000), size=1000)
    foreign_writer = BatchWriter(flow.target)
    foreign = [Record(0, now_ms(), b"foreign", b"foreign")]
    writer.write_batches(partition, records[:1500], batch=30)
    with flow.harness(flow.job({topic: 1}, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        foreign_writer.write_batch(remote, foreign)
        writer.write_batches(partition, records[1500:], batch=30)
        assert "ACL" in harness.wait_for_event("foreign-writer").text
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up({str(partition): 3000})
        harness.drain()
    foreign_writer.close()
    target = flow.partition_logs(partition)[1]
    ours = [one for one in target.records if one.key != b"foreign"]
    assert [one.value for one in ours] == [one.value for one in records]
    assert len(target.records) == len(ours) + 1
    assert len(target.marker_offsets) == 1


# -- rights ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(start_module_cluster: StartCluster) -> Cluster:
    """A cluster on which only granted operations are allowed."""
    return start_module_cluster(
        ClusterSpec(
            name="strict",
            fast_start=True,
            listeners=(ListenerProtocol.SASL_PLAINTEXT,),
            authorizer=True,
            users={MIRROR: "a password", UNFENCED: "a word", "root": "another"},
            super_users=("root",),
            properties={**COPY_PROPERTIES, **SHORT_CONNECTIONS},
        )
    )


@pytest.fixture
def guarded(source: Cluster, strict: Cluster, unique_name: UniqueName) -> CopyFlow:
    """A flow to the strict cluster; the test itself connects as root."""
    return CopyFlow(
        name=unique_name("flow"),
        source=source.access(),
        target=strict.access(user="root"),
        source_properties=source.client_properties(),
        target_properties=strict.client_properties(user=MIRROR),
    )


def grant(flow: CopyFlow, topic: str, *operations: ACLOperation, user: str = MIRROR) -> None:
    """Grant the offsets topic, and operations on a remote topic."""
    ledger = (ACLOperation.READ, ACLOperation.WRITE)
    grant_acls(flow.target, user, ResourceType.TOPIC, flow.offsets_topic, *ledger)
    grant_acls(flow.target, user, ResourceType.TOPIC, remote_topic_name(topic), *operations)


def grant_fences(flow: CopyFlow) -> None:
    """Let the mirror use transactional ids, and thereby fence."""
    grant_acls(flow.target, MIRROR, ResourceType.TRANSACTIONAL_ID, "*", ACLOperation.WRITE)


def test_a_missing_right_holds_a_partition_until_it_is_granted(
    guarded: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, partition = guarded, TopicPartition(topic, 0)
    flow.create_topic(topic)
    grant_fences(flow)
    grant(flow, topic, ACLOperation.DESCRIBE_CONFIGS, ACLOperation.DESCRIBE)
    writer.write_batches(partition, numbered_records(range(100)), batch=10)
    with flow.harness(flow.job({topic: 1})) as harness:
        wait_until_held(harness, partition, "grant Write on the topic")
        grant(flow, topic, ACLOperation.WRITE)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        flow.assert_mirrored({topic: 1}, fences=0, harness=harness)


def test_without_the_right_to_read_the_source_the_end_of_its_log_is_unknown(
    source: Cluster, strict: Cluster, topic: str, unique_name: UniqueName
) -> None:
    flow = CopyFlow(
        name=unique_name("flow"),
        source=strict.access(user="root"),
        target=source.access(),
        source_properties=strict.client_properties(user=MIRROR),
        target_properties=source.client_properties(),
    )
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    grant_acls(flow.source, MIRROR, ResourceType.TOPIC, topic, ACLOperation.DESCRIBE)
    with flow.harness(flow.job({topic: 1})) as harness:
        wait_until_held(harness, partition, "grant Read on the topic")
        assert harness.snapshot.partitions[str(partition)].end == -1
        grant_acls(flow.source, MIRROR, ResourceType.TOPIC, topic, ACLOperation.READ)
        harness.wait_for_snapshot(
            "the end to be known", lambda seen: seen.partitions[str(partition)].end == 0
        )
        harness.drain()


def test_a_takeover_without_the_right_to_fence_is_reported_and_exact(
    guarded: CopyFlow, strict: Cluster, topic: str, writer: BatchWriter
) -> None:
    unfenced = strict.client_properties(user=UNFENCED)
    flow, partition = replace(guarded, target_properties=unfenced), TopicPartition(topic, 0)
    flow.create_topic(topic)
    operations = (ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DESCRIBE_CONFIGS)
    grant(flow, topic, *operations, user=UNFENCED)
    writer.write_batches(partition, numbered_records(range(2000), size=1000), batch=30)
    settings = {**SLOW_COPY, "lease_timeout_s": 2.0}  # so long the takeover waits for the owner
    with flow.harness(flow.job({topic: 1}, settings=settings)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        harness.kill(0)
        assert "without a fence" in harness.wait_for_event("unfenced").text
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        flow.assert_mirrored({topic: 1}, fences=0, harness=harness)


def test_exactly_once_without_the_right_to_transactional_ids_does_not_start(
    guarded: CopyFlow, strict: Cluster, topic: str
) -> None:
    unfenced = strict.client_properties(user=UNFENCED)
    flow = replace(guarded, target_properties=unfenced)
    flow.create_topic(topic)
    operations = (ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DESCRIBE_CONFIGS)
    grant(flow, topic, *operations, user=UNFENCED)
    job = flow.job({topic: 1}, delivery=DeliveryMode.EXACTLY_ONCE)
    conductor = Conductor(job, OffsetsTopicLedger.for_job(job))
    try:
        with pytest.raises(NotAuthorized, match="grant Describe on the transactional id") as found:
            conductor.start()
    finally:
        conductor.stop()
    assert not found.value.retriable, "the driver ends, and its tasks are FAILED"


def test_without_the_right_to_read_a_takeover_waits_and_fences_only_once(
    guarded: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, partition = guarded, TopicPartition(topic, 0)
    flow.create_topic(topic)
    grant_fences(flow)
    grant(flow, topic, ACLOperation.WRITE, ACLOperation.DESCRIBE_CONFIGS)
    writer.write_batches(partition, numbered_records(range(1000), size=1000), batch=30)
    with flow.harness(flow.job({topic: 1}, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        harness.kill(0)
        wait_until_held(harness, partition, "grant Read")
        time.sleep(1.5)  # several tries
        grant(flow, topic, ACLOperation.READ)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        flow.assert_mirrored({topic: 1}, fences=1, harness=harness)


def test_idle_connections_and_expired_logins_lose_nothing(
    guarded: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow, partition = guarded, TopicPartition(topic, 0)
    flow.create_topic(topic)
    grant_fences(flow)
    grant(flow, topic, ACLOperation.WRITE, ACLOperation.READ, ACLOperation.DESCRIBE_CONFIGS)
    with flow.harness(flow.job({topic: 1})) as harness:
        for turn in range(3):
            writer.write_batches(
                partition, numbered_records(range(50 * turn, 50 * turn + 50)), batch=10
            )
            harness.wait_until_caught_up({str(partition): 50 * turn + 50})
            time.sleep(SILENT_S)
        harness.drain()
        flow.assert_mirrored({topic: 1}, fences=0, harness=harness)
        assert harness.snapshot.events == ()
