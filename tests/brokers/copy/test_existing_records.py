"""Remote partitions that hold records while the connector has no position of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.job import CopyJob, ExistingRecordsPolicy, OffsetSyncsTopic
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.exactly_once import assert_exactly_once, assert_same_records
from tests.support.kafka.admin_operations import delete_records
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    now_ms,
    numbered_records,
    write_mixed_batches,
)
from tests.support.kafka.clusters import create_topic

SEQUENCED, EXACTLY_ONCE = DeliveryMode.SEQUENCED, DeliveryMode.EXACTLY_ONCE


@pytest.fixture
def other_flow(flow: CopyFlow) -> CopyFlow:
    """The same clusters with another connector and another offsets topic."""
    return replace(flow, name=f"{flow.name}-other")


@pytest.fixture
def target_writer(flow: CopyFlow) -> Iterator[BatchWriter]:
    """Writes to the target cluster, as another program does."""
    made = BatchWriter(flow.target)
    yield made
    made.close()


def run_flow(flow: CopyFlow, topics: dict[str, int], **more: Any) -> tuple[CopyEvent, ...]:
    """Copy until the target has caught up; return the events."""
    flow.create_topics({topic: (count, {}, {}) for topic, count in topics.items()})
    with flow.harness(flow.job(topics, **more)) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        return harness.snapshot.events


def held_text(flow: CopyFlow, job: CopyJob) -> str:
    """Run a job until its only partition is halted; return the reason."""
    (partition,) = map(str, job.task_of_partition())
    flow.create_topics({topic: (1, {}, {}) for topic in job.remote_topics})
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("a halt", lambda seen: seen.partitions[partition].halted)
        (event,) = harness.snapshot.events
        assert event.kind == "existing-records"
        assert event.text == harness.snapshot.partitions[partition].reason
        return event.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(SEQUENCED, SEQUENCED, marks=pytest.mark.soak),
        (EXACTLY_ONCE, EXACTLY_ONCE),
        (EXACTLY_ONCE, SEQUENCED),
    ],
)
def test_another_connector_goes_on_behind_the_last_copied_record(
    flow: CopyFlow,
    other_flow: CopyFlow,
    topic: str,
    writer: BatchWriter,
    before: DeliveryMode,
    after: DeliveryMode,
) -> None:
    """Plain, transactional, compressed and split batches, and more of them in between."""
    topics = {topic: MIXED_PARTITIONS}
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, records=300)
    assert run_flow(flow, topics, delivery=before) == ()
    write_mixed_batches(writer, topic, first=300, records=300)
    events = run_flow(other_flow, topics, delivery=after)
    assert [event.kind for event in events] == ["adopted"] * MIXED_PARTITIONS
    assert_exactly_once(flow, topics)
    plain = next(event for event in events if event.partition == f"{topic}-0")
    assert "source offset 299 is remote offset" in plain.text
    assert plain.text.endswith("copying goes on at source offset 300")


def test_a_connector_that_was_killed_is_adopted_where_it_stopped(
    flow: CopyFlow, other_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = {topic: 1}
    flow.create_topic(topic)
    writer.write_batches(TopicPartition(topic, 0), numbered_records(range(2000), size=1000), 40)
    with flow.harness(flow.job(topics, settings={"bytes_per_s": 200_000})) as harness:
        harness.wait_for_snapshot("records", lambda seen: seen.records > 0)
    assert [event.kind for event in run_flow(other_flow, topics)] == ["adopted"]
    flow.assert_mirrored(topics, fences=1)


def test_equal_records_in_a_row_are_counted(
    flow: CopyFlow, other_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition, equal = TopicPartition(topic, 0), [Record(0, now_ms(), b"k", b"v")]
    flow.create_topic(topic)
    writer.write_batch(partition, equal * 120)
    run_flow(flow, {topic: 1})
    writer.write_batch(partition, equal * 180)
    assert [event.kind for event in run_flow(other_flow, {topic: 1})] == ["adopted"]
    flow.assert_mirrored({topic: 1})


def test_offset_syncs_decide_between_equal_records(
    flow: CopyFlow, other_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """The target sets the times, and more records are equal than are compared.

    Small batches keep the search from reading them all.
    """
    partition, equal = TopicPartition(topic, 0), [Record(0, now_ms(), b"k", b"v" * 1000)]
    syncs = OffsetSyncsTopic(
        name=f"syncs-{topic}", cluster="target", client=flow.target_properties, offset_lag_max=10
    )
    create_topic(flow.target, syncs.name)
    append_times = {"message.timestamp.type": "LogAppendTime"}
    flow.create_topic(topic, remote={**append_times, **SMALL_MESSAGE_LIMIT})
    writer.write_batches(partition, [*numbered_records(range(10)), *equal * 3000], batch=500)
    run_flow(flow, {topic: 1}, syncs=syncs)
    writer.write_batches(partition, equal * 1000)
    text = held_text(other_flow, other_flow.job({topic: 1}))
    assert "equals several records" in text
    assert "decide with sparkmirror.on.existing: append" in text
    assert [event.kind for event in run_flow(other_flow, {topic: 1}, syncs=syncs)] == ["adopted"]
    source, target = flow.partition_logs(partition)
    assert [one.value for one in target.records] == [one.value for one in source.records]


def test_records_of_other_programs_behind_the_copies_stay(
    flow: CopyFlow,
    other_flow: CopyFlow,
    topic: str,
    writer: BatchWriter,
    target_writer: BatchWriter,
) -> None:
    """As after a failover with IdentityReplicationPolicy: producers wrote to the copy."""
    partition, remote = TopicPartition(topic, 0), TopicPartition(remote_topic_name(topic), 0)
    flow.create_topic(topic)
    first, local = numbered_records(range(50)), numbered_records(range(9000, 9005))
    later = numbered_records(range(50, 80))
    writer.write_batch(partition, first)
    run_flow(flow, {topic: 1})
    target_writer.write_batch(remote, local)
    writer.write_batch(partition, later)
    (event,) = run_flow(other_flow, {topic: 1})
    assert event.kind == "adopted"
    assert "source offset 49 is remote offset 49; 5 records follow it" in event.text
    _, target = flow.partition_logs(partition)
    assert_same_records([*first, *local, *later], target.records)


def test_a_remote_log_of_another_program_is_appended_to_with_a_warning(
    flow: CopyFlow, topic: str, writer: BatchWriter, target_writer: BatchWriter
) -> None:
    partition, remote = TopicPartition(topic, 0), TopicPartition(remote_topic_name(topic), 0)
    flow.create_topic(topic)
    now = now_ms()
    source_records = [
        *numbered_records(range(20), timestamp=now - 2000),
        *numbered_records(range(20, 40), timestamp=now),
    ]
    foreign = numbered_records(range(9000, 9030), timestamp=now - 1000)
    writer.write_batch(partition, source_records)
    target_writer.write_batch(remote, foreign)
    (event,) = run_flow(flow, {topic: 1})
    assert event.kind == "foreign-records"
    assert "copying starts at source offset 0" in event.text
    _, target = flow.partition_logs(partition)
    assert_same_records([*foreign, *source_records], target.records)


def test_halt_waits_for_the_operator_and_append_copies_again(
    flow: CopyFlow, other_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batch(partition, numbered_records(range(30)))
    run_flow(flow, {topic: 1})
    job = other_flow.job({topic: 1})
    text = held_text(other_flow, replace(job, on_existing=ExistingRecordsPolicy.HALT))
    assert "sparkmirror.on.existing=halt" in text
    flow.assert_mirrored({topic: 1})
    (event,) = run_flow(other_flow, {topic: 1}, on_existing=ExistingRecordsPolicy.APPEND)
    assert event.kind == "existing-records"
    source, target = flow.partition_logs(partition)
    assert_same_records([*source.records, *source.records], target.records)


def test_after_retention_copying_starts_where_the_source_begins(
    flow: CopyFlow, other_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition, now = TopicPartition(topic, 0), now_ms()
    flow.create_topic(topic)
    old = numbered_records(range(20), timestamp=now - 5000)
    new = numbered_records(range(40, 60), timestamp=now)
    writer.write_batch(partition, old)
    run_flow(flow, {topic: 1})
    writer.write_batch(partition, numbered_records(range(20, 40), timestamp=now - 4000))
    writer.write_batch(partition, new)
    delete_records(flow.source, partition, 40)
    (event,) = run_flow(other_flow, {topic: 1})
    assert event.kind == "adopted"
    assert "copying starts at source offset 40" in event.text
    _, target = flow.partition_logs(partition)
    assert_same_records([*old, *new], target.records)


def test_an_open_transaction_of_the_target_is_awaited(
    flow: CopyFlow, topic: str, writer: BatchWriter, target_writer: BatchWriter
) -> None:
    partition, remote = TopicPartition(topic, 0), TopicPartition(remote_topic_name(topic), 0)
    flow.create_topic(topic)
    copied = numbered_records(range(10))
    writer.write_batch(partition, copied)
    transaction = target_writer.begin_transaction(f"other-{topic}")
    transaction.write_batch(remote, copied[:5])
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_for_snapshot(
            "a reason",
            lambda seen: "a transaction is open" in seen.partitions[str(partition)].reason,
        )
        transaction.abort()
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        assert harness.snapshot.events == ()
    assert_exactly_once(flow, {topic: 1})


def test_batches_that_are_larger_than_a_read_are_found_in_every_partition(
    flow: CopyFlow, other_flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = {topic: 3}
    flow.create_topic(topic, 3)
    for number in range(3):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(100), size=4000))
    run_flow(flow, topics)
    for number in range(3):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(100, 110)))
    assert [event.kind for event in run_flow(other_flow, topics)] == ["adopted"] * 3
    flow.assert_mirrored(topics)
