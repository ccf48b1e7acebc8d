"""Topics that change under the copying: deleted, recreated, emptied, compacted, grown."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.admin_operations import delete_records, set_topic_config
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.partition_log import assert_copied
from tests.support.waiting import wait_until

POLICIES = pytest.mark.parametrize(
    "policy", list(DataLossPolicy), ids=[one.value for one in DataLossPolicy]
)
DAY_MS = 24 * 3600 * 1000
MINIMAL_RATE = {"bytes_per_s": 1}
"""After the first fetch there is time for anything."""


def copy_all(flow: CopyFlow, topic: str) -> None:
    """Copy what is there, and end cleanly."""
    with flow.harness(flow.job({topic: 1})) as stage:
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        stage.drain()


def recreate(flow: CopyFlow, name: str, *, at_the_source: bool) -> None:
    """Delete a topic and create another one of the same name."""
    with Admin(flow.source if at_the_source else flow.target) as admin:
        assert not admin.delete_topics([name])
        admin.create_topic(NewTopic(name=name, partitions=1, replication_factor=1))


@POLICIES
def test_a_recreated_source_topic_is_noticed(
    flow: CopyFlow, topic: str, writer: BatchWriter, policy: DataLossPolicy
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    old, new = numbered_records(range(30)), numbered_records(range(100, 120))
    writer.write_batch(partition, old)
    with flow.harness(flow.job({topic: 1}, on_loss=policy)) as stage:
        stage.wait_until_caught_up({str(partition): 30})
        recreate(flow, topic, at_the_source=True)
        writer.write_batch(partition, new)
        stage.wait_for_event("recreated")
        if policy is DataLossPolicy.HALT:
            stage.wait_for_snapshot(
                "it to be held", lambda seen: "created again" in reason(seen, partition)
            )
            wanted = old
        else:
            stage.wait_for_snapshot(
                "all of it", lambda seen: seen.partitions[str(partition)].position == 20
            )
            wanted = old + new
        stage.drain()
    assert_copied(wanted, flow.partition_logs(partition)[1])


def test_a_deleted_topic_is_told_and_the_others_go_on(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    gone, stays = TopicPartition(f"{topic}.gone", 0), TopicPartition(topic, 0)
    flow.create_topics({gone.topic: (1, {}, {}), stays.topic: (1, {}, {})})
    for partition in (gone, stays):
        writer.write_batch(partition, numbered_records(range(20)))
    with flow.harness(flow.job({gone.topic: 1, stays.topic: 1})) as stage:
        stage.wait_until_caught_up({str(gone): 20, str(stays): 20})
        with Admin(flow.source) as admin:
            assert not admin.delete_topics([gone.topic])
        stage.wait_for_snapshot("it to be told", lambda seen: reason(seen, gone) != "")
        writer.write_batch(stays, numbered_records(range(20, 40)))
        stage.wait_until_caught_up({str(stays): 40})
        stage.drain()
    flow.assert_mirrored({stays.topic: 1})


@POLICIES
def test_a_recreated_remote_topic_is_noticed(
    flow: CopyFlow, topic: str, writer: BatchWriter, policy: DataLossPolicy
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    old, new = numbered_records(range(30)), numbered_records(range(100, 120))
    writer.write_batch(partition, old)
    with flow.harness(flow.job({topic: 1}, on_loss=policy)) as stage:
        stage.wait_until_caught_up({str(partition): 30})
        recreate(flow, remote_topic_name(topic), at_the_source=False)
        writer.write_batch(partition, new)
        event = stage.wait_for_event("remote-recreated")
        assert (event.lost_from, event.lost_to) == (0, 30)
        wanted = {
            DataLossPolicy.HALT: [],
            DataLossPolicy.SKIP: new,
            DataLossPolicy.RESTART: old + new,
        }[policy]
        if wanted:
            stage.wait_until_caught_up({str(partition): 50})
            stage.wait_for_snapshot(
                "the new end", lambda seen: expected(seen, partition) == len(wanted)
            )
        stage.drain()
    assert_copied(wanted, flow.partition_logs(partition)[1])


@POLICIES
def test_records_deleted_while_nobody_copied_are_told(
    flow: CopyFlow, topic: str, writer: BatchWriter, policy: DataLossPolicy
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(60))
    writer.write_batch(partition, records[:30])
    copy_all(flow, topic)
    writer.write_batches(partition, records[30:], batch=10)
    delete_records(flow.source, partition, 45)
    with flow.harness(flow.job({topic: 1}, on_loss=policy)) as stage:
        event = stage.wait_for_event("retention")
        assert (event.lost_from, event.lost_to) == (30, 45)
        wanted = records[:30]
        if policy is DataLossPolicy.HALT:
            stage.wait_for_snapshot(
                "it to be held", lambda seen: "30 to 44" in reason(seen, partition)
            )
        else:
            stage.wait_until_caught_up({str(partition): 60})
            wanted += records[45:]
        stage.drain()
    assert_copied(wanted, flow.partition_logs(partition)[1])


@pytest.mark.parametrize("deleted_by", ["operator", "age"])
def test_retention_that_overtakes_the_copying_is_told_to_the_record(
    flow: CopyFlow, topic: str, writer: BatchWriter, deleted_by: str
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic, source={"segment.ms": str(DAY_MS // 2), "retention.ms": "-1"})
    old, young = (
        numbered_records(range(35), timestamp=now_ms() - 2 * DAY_MS),
        numbered_records(range(35, 60)),
    )
    writer.write_batches(partition, old, batch=10)
    writer.write_batches(partition, young, batch=10)
    job = flow.job({topic: 1}, on_loss=DataLossPolicy.SKIP, settings=MINIMAL_RATE)
    with flow.harness(job) as stage:
        stage.wait_for_snapshot(
            "the first batch", lambda seen: seen.partitions[str(partition)].position == 10
        )
        if deleted_by == "operator":
            delete_records(flow.source, partition, 35)
        else:
            set_topic_config(flow.source, topic, {"retention.ms": str(DAY_MS)})
            wait_until(
                lambda: flow.partition_logs(partition)[0].start == 35, "what is old to be deleted"
            )
        stage.conductor.set_rate(0)
        event = stage.wait_for_event("retention")
        assert (event.lost_from, event.lost_to) == (10, 35)
        stage.wait_until_caught_up({str(partition): 60})
        stage.drain()
        target = flow.partition_logs(partition)[1]
        assert_copied(old[:10] + young, target)
        assert stage.conductor.runs(partition) == (OffsetRun(35, 10, 25),)


def test_records_deleted_after_a_crash_are_no_loss_if_they_were_copied(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(80))
    writer.write_batches(partition, records[:60], batch=10)
    with HarnessProcess(flow.job({topic: 1})) as doomed:
        doomed.wait_until_copied(60)
    delete_records(flow.source, partition, 30)
    writer.write_batch(partition, records[60:])
    with flow.harness(flow.job({topic: 1})) as stage:
        stage.wait_until_caught_up({str(partition): 80})
        stage.drain()
        assert [one.kind for one in stage.snapshot.events] == ["takeover"]
    assert_copied(records, flow.partition_logs(partition)[1], fences=1)


def test_a_topic_recreated_after_a_crash_is_copied_whole_even_if_it_looks_the_same(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    records = numbered_records(range(30))
    writer.write_batches(partition, records, batch=10)
    with HarnessProcess(flow.job({topic: 1})) as doomed:
        doomed.wait_until_copied(30)
    recreate(flow, topic, at_the_source=True)
    writer.write_batches(partition, records, batch=10)
    with flow.harness(flow.job({topic: 1}, on_loss=DataLossPolicy.RESTART)) as stage:
        stage.wait_for_event("recreated")
        stage.wait_until_caught_up({str(partition): 30})
        stage.drain()
    assert_copied(records + records, flow.partition_logs(partition)[1], fences=1)


def test_a_topic_that_is_compacted_meanwhile_loses_and_doubles_nothing(
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
    with flow.harness(flow.job({topic: 1}, settings=settings)) as stage:
        stage.wait_for_snapshot("copying to begin", lambda seen: seen.records > 0)
        turns = itertools.count(20)

        def is_compacted() -> bool:
            write(next(turns))
            return len(flow.partition_logs(partition)[0].records) < 1000

        wait_until(is_compacted, "the broker to compact", 120)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        stage.drain()
        source, target = flow.partition_logs(partition)
        values = [one.value for one in target.records]
        assert values == sorted(set(values), key=values.index), "nothing comes twice"
        assert values == sorted(values, key=lambda value: value or b""), "everything is in order"
        assert {one.value for one in source.records} <= set(values), "nothing is missing"


def test_partitions_added_later_are_copied_from_their_beginning(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow.create_topic(topic, 2)
    for number in range(2):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(20)))
    with flow.harness(flow.job({topic: 2})) as stage:
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        stage.drain()
    for access, name in ((flow.source, topic), (flow.target, remote_topic_name(topic))):
        with Admin(access) as admin:
            assert not admin.create_partitions({name: 4})
    for number in range(4):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(20, 50)))
    with flow.harness(flow.job({topic: 4}, tasks=2)) as stage:
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 4}))
        stage.drain()
        flow.assert_mirrored({topic: 4}, fences=0, stage=stage)


def test_a_target_that_lost_its_end_is_told(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
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
    with flow.harness(job) as stage:
        assert "ends at offset 30, not at 40" in stage.wait_for_event("remote-truncated").text
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        stage.drain()
    assert_copied(records, flow.partition_logs(partition)[1], fences=1)


def test_an_offset_that_somebody_else_wrote_is_taken_at_its_word(
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
    with flow.harness(job) as stage:
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        stage.drain()
    assert_copied(records[10:], flow.partition_logs(partition)[1])


def reason(seen: CopySnapshot, partition: TopicPartition) -> str:
    return seen.partitions[str(partition)].reason


def expected(seen: CopySnapshot, partition: TopicPartition) -> int:
    return seen.partitions[str(partition)].expected
