"""Transformations of records: held and tolerated failures, changed chains, what others read.

And records of one topic that go to different topics, which a transaction has all or none of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.errors import ClusterError
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.exactly_once import assert_ledger_positions, read_committed_records
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic
from tests.support.copy.harness_process import HarnessProcess
from tests.support.copy.transform_chains import (
    DROP_AND_MASK,
    MASK_PRICE,
    ROUTE_MARKED,
    routed_records,
    transformed_records,
)
from tests.support.kafka.admin_operations import set_topic_config
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    now_ms,
    priced_records,
    write_mixed_batches,
)
from tests.support.kafka.clusters import create_topic
from tests.support.kafka.partition_log import PartitionLog, assert_run_map_consistent
from tests.support.kafka.record_batches import without_offsets
from tests.support.waiting import wait_until


@pytest.fixture
def transforms() -> Mapping[str, str]:
    return DROP_AND_MASK


def test_java_reads_what_transformations_leave(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    """A partition in whose last batch everything is dropped is caught up, too."""
    flow.create_topic(topic, 2)
    kept, dropped = TopicPartition(topic, 0), TopicPartition(topic, 1)
    writer.write_batches(kept, priced_records(range(300)), batch=40)
    writer.write_batches(dropped, priced_records(range(0, 300, 3)), batch=40)
    with flow.harness(flow.job({topic: 2})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
        views = harness.snapshot.partitions
        assert [views[str(one)].filtered for one in (kept, dropped)] == [100, 100]
        assert [views[str(one)].records for one in (kept, dropped)] == [200, 0]
        assert harness.snapshot.lanes[topic].keys() == {"transformed", "filtered"}
    flow.assert_mirrored({topic: 2}, harness=harness)
    printed = KafkaToolRunner().run(
        "kafka-console-consumer",
        [
            *("--bootstrap-server", target.client_properties()["bootstrap.servers"]),
            *("--topic", remote_topic_name(topic), "--from-beginning", "--max-messages", "200"),
            *("--formatter-property", "print.headers=true"),
        ],
    )
    lines = printed.split("\n")[:-1]
    assert [line.partition('"number":')[2].partition(",")[0] for line in lines] == [
        str(number) for number in range(300) if number % 3
    ]
    assert all('"price":0.0' in line and "pii" not in line for line in lines)


def test_a_record_that_fails_holds_its_partition_until_errors_are_tolerated(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow.create_topic(topic, 2)
    stuck, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    good = priced_records(range(10))
    for partition in (stuck, free):
        writer.write_batch(partition, good)
    writer.write_batch(stuck, [*good[:5], Record(0, now_ms(), b"k", b"no JSON"), *good])
    ends = flow.source_end_offsets({topic: 2})

    def is_held(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(stuck)]
        return view.state == "held" and "the record at offset 15 failed in TO" in view.reason

    job = flow.job({topic: 2})
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("the partition to be held", is_held)
        assert harness.snapshot.partitions[str(stuck)].position == 15
        harness.wait_until_caught_up({str(free): ends[str(free)]})
        harness.drain()
    tolerant = replace(
        job.settings, transforms={**job.settings.transforms, "errors.tolerance": "all"}
    )
    assert tolerant.chain == job.settings.chain
    with flow.harness(replace(job, settings=tolerant)) as harness:
        harness.wait_until_caught_up(ends)
        harness.drain()
        assert harness.snapshot.partitions[str(stuck)].skipped == 1
    assert_readable_records_mirrored(flow, stuck)


BAD = b"no JSON"
QUEUE = "sparkmirror.errors.deadletterqueue"


def with_letters(failed: str) -> dict[str, str]:
    """The keys of a connector whose failed records go to a topic, with their origin."""
    return {
        **DROP_AND_MASK,
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        f"{QUEUE}.topic.name": failed,
        f"{QUEUE}.context.headers.enable": "true",
    }


def assert_readable_records_mirrored(flow: CopyFlow, partition: TopicPartition) -> None:
    """The target has what the chain leaves of all records that are JSON, once, in order."""
    source = flow.partition_logs(partition)[0]
    readable = [one for one in source.records if not (one.value or b"").startswith(BAD)]
    wanted = transformed_records(DROP_AND_MASK, readable)
    copied = read_committed_records(flow.target, remote_topic_name(partition.topic))
    found = copied[partition.partition]
    assert [(one.key, one.value) for one in found] == [(one.key, one.value) for one in wanted]


def read_letters(flow: CopyFlow, failed: str) -> dict[tuple[bytes | None, int], Record]:
    """The dead letters by source partition and offset. Each comes at least once."""
    letters: dict[tuple[bytes | None, int], Record] = {}
    for record in read_committed_records(flow.target, failed).get(0, []):
        context = dict(record.headers)
        offset = int(context[b"__connect.errors.offset"] or b"")
        letters.setdefault((context[b"__connect.errors.partition"], offset), record)
    return letters


def test_partitions_with_a_failed_record_wait_for_the_topic_of_its_letter(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """The letter is the record as it was, on the target, with its origin in headers."""
    failed = f"{topic}-failed"
    flow.create_topic(topic, 2)
    waits, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    good = priced_records(range(10))
    bad = Record(0, now_ms() - 5000, b"k", BAD, ((b"own", b"1"),))
    writer.write_batch(waits, [*good[:5], bad, *good])
    writer.write_batch(free, good)
    ends = flow.source_end_offsets({topic: 2})

    def is_waiting(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(waits)]
        return f"the topic {failed} does not exist" in view.reason

    job = flow.job({topic: 2}, settings={"transforms": with_letters(failed)})
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("the partition to wait for the topic", is_waiting)
        assert harness.snapshot.partitions[str(waits)].position <= 5
        harness.wait_until_caught_up({str(free): ends[str(free)]})
        create_topic(flow.target, failed)
        harness.wait_until_caught_up(ends)
        harness.drain()
        view = harness.snapshot.partitions[str(waits)]
        assert view.reason == ""
        # A record that is read again, because a lease ended, counts again.
        assert min(view.skipped, view.failures.dead_letters, view.failures.errors_logged) >= 1
    assert_readable_records_mirrored(flow, waits)
    ((at, letter),) = read_letters(flow, failed).items()
    assert at == (b"0", 5)
    assert (letter.key, letter.value, letter.timestamp) == (bad.key, bad.value, bad.timestamp)
    context = dict(letter.headers)
    assert context[b"own"] == b"1"
    assert context[b"__connect.errors.topic"] == topic.encode()
    assert context[b"__connect.errors.stage"] == b"TO_CONNECT_VALUE"


def test_a_letter_that_the_target_refuses_holds_its_partition_and_no_other(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    failed = f"{topic}-failed"
    flow.create_topic(topic, 2)
    create_topic(flow.target, failed, configs={"max.message.bytes": "3000"})
    stuck, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    good = priced_records(range(10))
    writer.write_batch(stuck, good)
    writer.write_batch(stuck, [*good, Record(0, now_ms(), b"k", BAD.ljust(5000, b".")), *good])
    writer.write_batch(free, [*good, Record(0, now_ms(), b"k", BAD), *good])
    ends = flow.source_end_offsets({topic: 2})

    def is_held(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(stuck)]
        return view.state == "held" and f"cannot be written to {failed}" in view.reason

    job = flow.job({topic: 2}, settings={"transforms": with_letters(failed)})
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("the partition to be held", is_held)
        view = harness.snapshot.partitions[str(stuck)]
        assert "the record at offset 20" in view.reason
        assert 10 <= view.position <= 20
        harness.wait_until_caught_up({str(free): ends[str(free)]})
        set_topic_config(flow.target, failed, {"max.message.bytes": "100000"})
        harness.wait_until_caught_up(ends)
        harness.drain()
        assert harness.snapshot.partitions[str(stuck)].failures.dead_letter_failures > 0
    assert set(read_letters(flow, failed)) == {(b"0", 20), (b"1", 10)}
    for partition in (stuck, free):
        assert_readable_records_mirrored(flow, partition)


@pytest.mark.parametrize("delivery", [DeliveryMode.SEQUENCED, DeliveryMode.EXACTLY_ONCE])
def test_after_a_kill_every_failed_record_has_its_letter(
    flow: CopyFlow, topic: str, writer: BatchWriter, delivery: DeliveryMode
) -> None:
    failed, count = f"{topic}-failed", 4000
    flow.create_topic(topic, 2)
    create_topic(flow.target, failed)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    for partition in partitions:
        records = [
            one._replace(value=BAD) if one.offset % 7 < 2 else one
            for one in priced_records(range(count))
        ]
        writer.write_batches(partition, records, batch=40)
    job = flow.job({topic: 2}, delivery=delivery, settings={"transforms": with_letters(failed)})
    slow = replace(job.settings, **SLOW_COPY)
    with HarnessProcess(replace(job, settings=slow)) as killed:
        killed.wait_until_copied(200)
        killed.kill()
    with flow.harness(job) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
    wanted = {(b"%d" % p.partition, n) for p in partitions for n in range(count) if n % 7 < 2}
    assert set(read_letters(flow, failed)) == wanted
    for partition in partitions:
        assert_readable_records_mirrored(flow, partition)


def test_a_chain_that_changes_after_a_kill_repeats_records_and_loses_none(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with HarnessProcess(flow.job(topics, settings=SLOW_COPY)) as killed:
        killed.wait_until_copied(100)
        killed.kill()
    other = replace(flow, transforms=MASK_PRICE)
    with other.harness(other.job(topics)) as harness:
        harness.wait_for_event("repeat")
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        texts = [one.text for one in harness.snapshot.events if one.kind == "repeat"]
        assert all("the transforms of the connector were changed" in text for text in texts)
    for number in range(topics[topic]):
        source, target = flow.partition_logs(TopicPartition(topic, number))
        wanted = [one.key for one in source.expected_records]
        assert [one.key for one in target.records][-len(wanted) :] == wanted


def routing_flow(flow: CopyFlow, topic: str) -> CopyFlow:
    """The flow, with a chain that sends marked records of all topics to `<topic>.marked`."""
    return replace(
        flow, transforms={**ROUTE_MARKED, "transforms.route.replacement": f"{topic}.marked"}
    )


def routing_job(flow: CopyFlow, topics: Mapping[str, int], *, tasks: int, rate: int) -> CopyJob:
    return flow.job(
        topics,
        tasks=tasks,
        settings={"bytes_per_s": rate},
        delivery=DeliveryMode.EXACTLY_ONCE,
        commit_interval_s=0.3,
    )


def assert_routed(flow: CopyFlow, topics: Mapping[str, int]) -> set[str]:
    """Assert that each topic has the records that the chain sends there; return the topics.

    Each once, and those of a source partition in its order. A consumer at read_committed that is
    not ours reads them.
    """
    wanted: dict[TopicPartition, dict[str, list[Record]]] = defaultdict(dict)
    for topic, count in topics.items():
        for number in range(count):
            source, _ = flow.partition_logs(TopicPartition(topic, number))
            routed = routed_records(
                flow.transforms, source.expected_records, remote_topic_name(topic)
            )
            for name, record in routed:
                wanted[TopicPartition(name, number)].setdefault(topic, []).append(record)
    names = {partition.topic for partition in wanted}
    for name in names:
        for number, copied in read_committed_records(flow.target, name).items():
            by_source = wanted.pop(TopicPartition(name, number))
            assert len(copied) == sum(map(len, by_source.values())), (name, number)
            for records in by_source.values():
                values = {record.value for record in records}
                found = [record for record in copied if record.value in values]
                assert without_offsets(found) == without_offsets(records)
    assert not wanted
    return names


def test_records_of_one_topic_go_to_different_topics_whatever_is_killed(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """Topics are created as the remote topic is; two source topics share one of them."""
    flow = routing_flow(flow, topic)
    other = f"{topic}-other"
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    flow.create_topic(other, 1, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, records=600, make_records=flow.make_records)
    writer.write_batches(TopicPartition(other, 0), priced_records(range(9000, 9300)), batch=20)
    topics = {topic: MIXED_PARTITIONS, other: 1}
    with HarnessProcess(routing_job(flow, topics, tasks=2, rate=40_000)) as killed:
        killed.wait_until_copied(100)
        killed.kill()
    with flow.harness(routing_job(flow, topics, tasks=1, rate=40_000)) as harness:
        harness.wait_for_more_records()
        harness.kill(0)
        harness.wait_for_more_records()
        harness.conductor.set_rate(0)
        ends = flow.source_end_offsets(topics)
        harness.wait_until_caught_up(ends)
        harness.drain()
        assert {event.kind for event in harness.snapshot.events} <= {"takeover"}
        names = assert_routed(flow, topics)
        assert_ledger_positions(flow, harness.job, ends)
        for number in range(MIXED_PARTITIONS):
            partition, remote = TopicPartition(topic, number), remote_topic_name(topic)
            source, _ = flow.partition_logs(partition)
            routed = routed_records(flow.transforms, source.expected_records, remote)
            copy = read_committed_records(flow.target, remote).get(number, [])
            assert_run_map_consistent(
                [record for name, record in routed if name == remote],
                PartitionLog(start=0, end=0, records=copy),
                harness.conductor.runs(partition),
            )
    created = f"{topic}.marked"
    assert created in names
    with Admin(flow.target) as admin:
        assert len(admin.describe_topic(created).partitions) == MIXED_PARTITIONS
        configs = admin.describe_configs([created])[created]
    assert not isinstance(configs, ClusterError)
    assert SMALL_MESSAGE_LIMIT.items() <= {one.name: one.value for one in configs}.items()


def test_a_topic_that_was_deleted_is_created_again_for_the_next_record(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow = routing_flow(flow, topic)
    flow.create_topic(topic, 2)
    partition, created = TopicPartition(topic, 0), f"{topic}.marked"
    marked, plain = (Record(0, now_ms(), b"k", b"v", h) for h in (((b"drop", b"1"),), ()))
    writer.write_batch(partition, [plain, marked, plain])
    with flow.harness(routing_job(flow, {topic: 2}, tasks=1, rate=0)) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        assert len(read_committed_records(flow.target, created)[0]) == 1
        with Admin(flow.target) as admin:
            assert not admin.delete_topics([created])
        writer.write_batch(partition, [marked, plain, marked])
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
    wait_until(
        lambda: len(read_committed_records(flow.target, created)[0]) == 2,
        "the records in the new topic",
    )
    assert len(read_committed_records(flow.target, remote_topic_name(topic))[0]) == 3


def test_a_record_that_another_topic_refuses_holds_its_partition_and_no_other(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """The other topics have nothing of its group until the topic takes it."""
    flow = routing_flow(flow, topic)
    flow.create_topic(topic, 2)
    stuck, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    refusing = f"{topic}.marked"
    old, new = now_ms() - 3_600_000, now_ms()
    with Admin(flow.target) as admin:
        made = NewTopic(
            name=refusing,
            partitions=2,
            replication_factor=1,
            configs={"message.timestamp.before.max.ms": "60000"},
        )
        assert not admin.create_topics([made]).failed
    marked = Record(0, new, b"first", b"v", ((b"drop", None),))
    for partition in (stuck, free):
        writer.write_batch(partition, [marked])

    def is_held(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(stuck)]
        return view.state == "held" and "INVALID_TIMESTAMP" in view.reason

    with flow.harness(routing_job(flow, {topic: 2}, tasks=1, rate=0)) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        for partition, time_ms in ((stuck, old), (free, new)):
            plain = [Record(0, time_ms, b"k%d" % n, b"v") for n in range(3)]
            writer.write_batch(partition, [*plain, marked._replace(timestamp=time_ms)])
        ends = flow.source_end_offsets({topic: 2})
        harness.wait_for_snapshot("the partition to be held", is_held)
        harness.wait_until_caught_up({str(free): ends[str(free)]})
        assert read_committed_records(flow.target, remote_topic_name(topic)).keys() == {1}
        with Admin(flow.target) as admin:
            take_all = AlterConfigOp(
                name="message.timestamp.before.max.ms", operation=AlterConfigOpType.DELETE
            )
            assert not admin.incremental_alter_configs({refusing: [take_all]})
        harness.wait_until_caught_up(ends)
        harness.drain()
    assert_routed(flow, {topic: 2})
