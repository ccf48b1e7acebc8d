"""Topics that change during the copy: deleted, recreated, emptied, compacted, grown."""

from __future__ import annotations

import itertools
from dataclasses import replace

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.admin_operations import delete_records
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.partition_log import assert_copied
from tests.support.waiting import wait_until

DAY_MS = 24 * 3600 * 1000
MINIMAL_RATE = {"bytes_per_s": 1}
"""After the first fetch the copy stands still."""


def copy_all(flow: CopyFlow, topic: str) -> None:
    """Copy what is there, and end cleanly."""
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()


def recreate(flow: CopyFlow, name: str, *, on_source: bool) -> None:
    """Delete a topic and create another one of the same name."""
    with Admin(flow.source if on_source else flow.target) as admin:
        assert not admin.delete_topics([name])
        admin.create_topic(NewTopic(name=name, partitions=1, replication_factor=1))


def test_a_recreated_source_topic_halts_the_partition(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    old, new = numbered_records(range(30)), numbered_records(range(100, 120))
    writer.write_batch(partition, old)
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_until_caught_up({str(partition): 30})
        recreate(flow, topic, on_source=True)
        writer.write_batch(partition, new)
        event = harness.wait_for_event("recreated")
        assert (event.lost_from, event.lost_to) == (30, -1), "what came after them is unknown"
        harness.wait_for_snapshot(
            "the partition to halt", lambda seen: "created again" in reason(seen, partition)
        )
        halted = harness.snapshot.partitions[str(partition)]
        assert halted.end == -1, "the new topic says nothing about the position in the old one"
        assert "sparkmirror.on.loss=skip" in halted.reason
        harness.drain()
    assert_copied(old, flow.partition_logs(partition)[1])


def test_a_deleted_topic_is_reported_and_the_others_are_copied(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    gone, stays = TopicPartition(f"{topic}.gone", 0), TopicPartition(topic, 0)
    flow.create_topics({gone.topic: (1, {}, {}), stays.topic: (1, {}, {})})
    for partition in (gone, stays):
        writer.write_batch(partition, numbered_records(range(20)))
    with flow.harness(flow.job({gone.topic: 1, stays.topic: 1})) as harness:
        harness.wait_until_caught_up({str(gone): 20, str(stays): 20})
        with Admin(flow.source) as admin:
            assert not admin.delete_topics([gone.topic])
        harness.wait_for_snapshot("the reason to be shown", lambda seen: reason(seen, gone) != "")
        writer.write_batch(stays, numbered_records(range(20, 40)))
        harness.wait_until_caught_up({str(stays): 40})
        harness.drain()
    flow.assert_mirrored({stays.topic: 1})


def test_a_recreated_remote_topic_halts_the_partition(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    old, new = numbered_records(range(30)), numbered_records(range(100, 120))
    writer.write_batch(partition, old)
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_until_caught_up({str(partition): 30})
        recreate(flow, remote_topic_name(topic), on_source=False)
        writer.write_batch(partition, new)
        event = harness.wait_for_event("remote-recreated")
        assert (event.lost_from, event.lost_to) == (0, 30)
        harness.wait_for_snapshot(
            "the partition to halt", lambda seen: "created again" in reason(seen, partition)
        )
        harness.drain()
    assert_copied([], flow.partition_logs(partition)[1])


def test_records_deleted_while_no_task_copies_halt_the_partition(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(60))
    writer.write_batch(partition, records[:30])
    copy_all(flow, topic)
    writer.write_batches(partition, records[30:], batch=10)
    delete_records(flow.source, partition, 45)
    with flow.harness(flow.job({topic: 1})) as harness:
        event = harness.wait_for_event("retention")
        assert (event.lost_from, event.lost_to) == (30, 45)
        harness.wait_for_snapshot(
            "the partition to halt", lambda seen: "30 to 44" in reason(seen, partition)
        )
        harness.drain()
    assert_copied(records[:30], flow.partition_logs(partition)[1])


def test_records_deleted_during_the_copy_are_reported_exactly(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(60))
    writer.write_batches(partition, records, batch=10)
    job = flow.job({topic: 1}, on_loss=DataLossPolicy.SKIP, settings=MINIMAL_RATE)
    with flow.harness(job) as harness:
        harness.wait_for_snapshot(
            "the first batch", lambda seen: seen.partitions[str(partition)].position == 10
        )
        delete_records(flow.source, partition, 35)
        harness.conductor.set_rate(0)
        event = harness.wait_for_event("retention")
        assert (event.lost_from, event.lost_to) == (10, 35)
        harness.wait_until_caught_up({str(partition): 60})
        harness.drain()
        target = flow.partition_logs(partition)[1]
        assert_copied(records[:10] + records[35:], target)
        assert harness.conductor.runs(partition) == (OffsetRun(35, 10, 25),)


def test_records_deleted_after_a_crash_are_no_loss_if_they_were_copied(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(80))
    writer.write_batches(partition, records[:60], batch=10)
    with HarnessProcess(flow.job({topic: 1})) as killed:
        killed.wait_until_copied(60)
    delete_records(flow.source, partition, 30)
    writer.write_batch(partition, records[60:])
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_until_caught_up({str(partition): 80})
        harness.drain()
        assert [one.kind for one in harness.snapshot.events] == ["takeover"]
    assert_copied(records, flow.partition_logs(partition)[1], fences=1)


def test_a_topic_recreated_after_a_crash_is_copied_whole_even_if_it_looks_the_same(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(30))
    writer.write_batches(partition, records, batch=10)
    with HarnessProcess(flow.job({topic: 1})) as killed:
        killed.wait_until_copied(30)
    recreate(flow, topic, on_source=True)
    writer.write_batches(partition, records, batch=10)
    with flow.harness(flow.job({topic: 1}, on_loss=DataLossPolicy.RESTART)) as harness:
        harness.wait_for_event("recreated")
        harness.wait_until_caught_up({str(partition): 30})
        harness.drain()
    assert_copied(records + records, flow.partition_logs(partition)[1], fences=1)


def test_a_topic_that_is_compacted_during_the_copy_loses_and_duplicates_nothing(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    compacted = {"cleanup.policy": "compact", "segment.ms": "50"}
    flow.create_topic(topic, source={**compacted, "min.cleanable.dirty.ratio": "0.001"})

    def write(turn: int) -> None:
        writer.write_batch(
            partition,
            [Record(0, now_ms(), b"key %d" % n, b"%06d" % (100 * turn + n)) for n in range(100)],
        )

    for turn in range(20):
        write(turn)
    settings = {"bytes_per_s": 6000}
    with flow.harness(flow.job({topic: 1}, settings=settings)) as harness:
        harness.wait_for_snapshot("copying to begin", lambda seen: seen.records > 0)
        turns = itertools.count(20)

        def is_compacted() -> bool:
            write(next(turns))
            return len(flow.partition_logs(partition)[0].records) < 1000

        wait_until(is_compacted, "the broker to compact", 120)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        source, target = flow.partition_logs(partition)
        values = [one.value for one in target.records]
        assert values == sorted(set(values), key=values.index), "no record twice"
        assert values == sorted(values, key=lambda value: value or b""), "in order"
        assert {one.value for one in source.records} <= set(values), "no record missing"


def test_partitions_added_later_are_copied_from_their_start(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow.create_topic(topic, 2)
    for number in range(2):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(20)))
    with flow.harness(flow.job({topic: 2})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
    for access, name in ((flow.source, topic), (flow.target, remote_topic_name(topic))):
        with Admin(access) as admin:
            assert not admin.create_partitions({name: 4})
    for number in range(4):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(20, 50)))
    with flow.harness(flow.job({topic: 4}, tasks=2)) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 4}))
        harness.drain()
        flow.assert_mirrored({topic: 4}, fences=0, harness=harness)


def test_a_truncated_target_is_reported(flow: CopyFlow, topic: str, writer: BatchWriter) -> None:
    """The ledger says more than the target holds, as after an unclean election there."""
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(50))
    writer.write_batch(partition, records[:30])
    copy_all(flow, topic)
    job = flow.job({topic: 1})
    ledger = OffsetsTopicLedger.for_job(job)
    entry = ledger.load()[partition]
    assert entry.extension
    ledger.save({partition: replace(entry, extension=replace(entry.extension, expected=40))})
    ledger.close()
    writer.write_batch(partition, records[30:])
    with flow.harness(job) as harness:
        assert "ends at offset 30, not at 40" in harness.wait_for_event("remote-truncated").text
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
    assert_copied(records, flow.partition_logs(partition)[1], fences=1)


def test_an_offset_written_by_java_or_an_operator_is_used(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(30))
    writer.write_batch(partition, records)
    job = flow.job({topic: 1})
    ledger = OffsetsTopicLedger.for_job(job)
    ledger.save({partition: LedgerEntry(position=10)})
    ledger.close()
    with flow.harness(job) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
    assert_copied(records[10:], flow.partition_logs(partition)[1])


def reason(seen: CopySnapshot, partition: TopicPartition) -> str:
    return seen.partitions[str(partition)].reason
