"""Topics that change under the copying: deleted, recreated, emptied, compacted, grown."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.copy.job import OnLoss
from sparkmirror.copy.ledger import Entry
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.records import Record
from tests.support.flows import Flow, remote_name
from tests.support.logs import assert_copied
from tests.support.operator import delete_records, set_topic
from tests.support.stage_process import StageProcess
from tests.support.waiting import wait_until
from tests.support.writing import Writer, now_ms, numbered

POLICIES = pytest.mark.parametrize("policy", list(OnLoss), ids=[one.value for one in OnLoss])
DAY_MS = 24 * 3600 * 1000
NEARLY_STILL = {"bytes_per_s": 1}
"""After the first fetch there is time for anything."""


def copy_all(flow: Flow, topic: str) -> None:
    """Copy what is there, and end cleanly."""
    with flow.stage(flow.job({topic: 1})) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()


def recreate(flow: Flow, name: str, *, at_the_source: bool) -> None:
    """Delete a topic and create another one of the same name."""
    with Admin(flow.source if at_the_source else flow.target) as admin:
        assert not admin.delete_topics([name])
        admin.create_topic(NewTopic(name=name, partitions=1, replication_factor=1))


@POLICIES
def test_a_recreated_source_topic_is_noticed(
    flow: Flow, topic: str, writer: Writer, policy: OnLoss
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    old, new = numbered(range(30)), numbered(range(100, 120))
    writer.write(partition, old)
    with flow.stage(flow.job({topic: 1}, on_loss=policy)) as stage:
        stage.wait_until_caught_up({str(partition): 30})
        recreate(flow, topic, at_the_source=True)
        writer.write(partition, new)
        stage.wait_for_event("recreated")
        if policy is OnLoss.HALT:
            stage.wait("it to be held", lambda seen: "created again" in reason(seen, partition))
            wanted = old
        else:
            stage.wait("all of it", lambda seen: seen.partitions[str(partition)].position == 20)
            wanted = old + new
        stage.drain()
    assert_copied(wanted, flow.logs(partition)[1])


def test_a_deleted_topic_is_told_and_the_others_go_on(
    flow: Flow, topic: str, writer: Writer
) -> None:
    gone, stays = TopicPartition(f"{topic}.gone", 0), TopicPartition(topic, 0)
    flow.create_many({gone.topic: (1, {}, {}), stays.topic: (1, {}, {})})
    for partition in (gone, stays):
        writer.write(partition, numbered(range(20)))
    with flow.stage(flow.job({gone.topic: 1, stays.topic: 1})) as stage:
        stage.wait_until_caught_up({str(gone): 20, str(stays): 20})
        with Admin(flow.source) as admin:
            assert not admin.delete_topics([gone.topic])
        stage.wait("it to be told", lambda seen: reason(seen, gone) != "")
        writer.write(stays, numbered(range(20, 40)))
        stage.wait_until_caught_up({str(stays): 40})
        stage.drain()
    flow.assert_mirrored({stays.topic: 1})


@POLICIES
def test_a_recreated_remote_topic_is_noticed(
    flow: Flow, topic: str, writer: Writer, policy: OnLoss
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    old, new = numbered(range(30)), numbered(range(100, 120))
    writer.write(partition, old)
    with flow.stage(flow.job({topic: 1}, on_loss=policy)) as stage:
        stage.wait_until_caught_up({str(partition): 30})
        recreate(flow, remote_name(topic), at_the_source=False)
        writer.write(partition, new)
        event = stage.wait_for_event("remote-recreated")
        assert (event.lost_from, event.lost_to) == (0, 30)
        wanted = {OnLoss.HALT: [], OnLoss.SKIP: new, OnLoss.RESTART: old + new}[policy]
        if wanted:
            stage.wait_until_caught_up({str(partition): 50})
            stage.wait("the new end", lambda seen: expected(seen, partition) == len(wanted))
        stage.drain()
    assert_copied(wanted, flow.logs(partition)[1])


@POLICIES
def test_records_deleted_while_nobody_copied_are_told(
    flow: Flow, topic: str, writer: Writer, policy: OnLoss
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    records = numbered(range(60))
    writer.write(partition, records[:30])
    copy_all(flow, topic)
    writer.write_many(partition, records[30:], batch=10)
    delete_records(flow.source, partition, 45)
    with flow.stage(flow.job({topic: 1}, on_loss=policy)) as stage:
        event = stage.wait_for_event("retention")
        assert (event.lost_from, event.lost_to) == (30, 45)
        wanted = records[:30]
        if policy is OnLoss.HALT:
            stage.wait("it to be held", lambda seen: "30 to 44" in reason(seen, partition))
        else:
            stage.wait_until_caught_up({str(partition): 60})
            wanted += records[45:]
        stage.drain()
    assert_copied(wanted, flow.logs(partition)[1])


@pytest.mark.parametrize("deleted_by", ["operator", "age"])
def test_retention_that_overtakes_the_copying_is_told_to_the_record(
    flow: Flow, topic: str, writer: Writer, deleted_by: str
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic, source={"segment.ms": str(DAY_MS // 2), "retention.ms": "-1"})
    old, young = numbered(range(35), timestamp=now_ms() - 2 * DAY_MS), numbered(range(35, 60))
    writer.write_many(partition, old, batch=10)
    writer.write_many(partition, young, batch=10)
    job = flow.job({topic: 1}, on_loss=OnLoss.SKIP, settings=NEARLY_STILL)
    with flow.stage(job) as stage:
        stage.wait("the first batch", lambda seen: seen.partitions[str(partition)].position == 10)
        if deleted_by == "operator":
            delete_records(flow.source, partition, 35)
        else:
            set_topic(flow.source, topic, {"retention.ms": str(DAY_MS)})
            wait_until(lambda: flow.logs(partition)[0].start == 35, "what is old to be deleted")
        stage.conductor.set_rate(0)
        event = stage.wait_for_event("retention")
        assert (event.lost_from, event.lost_to) == (10, 35)
        stage.wait_until_caught_up({str(partition): 60})
        stage.drain()
        target = flow.logs(partition)[1]
        assert_copied(old[:10] + young, target)
        assert stage.conductor.runs(partition) == (Run(35, 10, 25),)


def test_records_deleted_after_a_crash_are_no_loss_if_they_were_copied(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    records = numbered(range(80))
    writer.write_many(partition, records[:60], batch=10)
    with StageProcess(flow.job({topic: 1})) as doomed:
        doomed.wait_until_copied(60)
    delete_records(flow.source, partition, 30)
    writer.write(partition, records[60:])
    with flow.stage(flow.job({topic: 1})) as stage:
        stage.wait_until_caught_up({str(partition): 80})
        stage.drain()
        assert [one.kind for one in stage.snapshot.events] == ["takeover"]
    assert_copied(records, flow.logs(partition)[1], fences=1)


def test_a_topic_recreated_after_a_crash_is_copied_whole_even_if_it_looks_the_same(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    records = numbered(range(30))
    writer.write_many(partition, records, batch=10)
    with StageProcess(flow.job({topic: 1})) as doomed:
        doomed.wait_until_copied(30)
    recreate(flow, topic, at_the_source=True)
    writer.write_many(partition, records, batch=10)
    with flow.stage(flow.job({topic: 1}, on_loss=OnLoss.RESTART)) as stage:
        stage.wait_for_event("recreated")
        stage.wait_until_caught_up({str(partition): 30})
        stage.drain()
    assert_copied(records + records, flow.logs(partition)[1], fences=1)


def test_a_topic_that_is_compacted_meanwhile_loses_and_doubles_nothing(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    compacted = {"cleanup.policy": "compact", "segment.ms": "50"}
    flow.create(topic, source={**compacted, "min.cleanable.dirty.ratio": "0.001"})

    def write(turn: int) -> None:
        writer.write(
            partition,
            [Record(0, now_ms(), b"key %d" % n, b"%06d" % (100 * turn + n)) for n in range(100)],
        )

    for turn in range(20):
        write(turn)
    settings = {"bytes_per_s": 6000}
    with flow.stage(flow.job({topic: 1}, settings=settings)) as stage:
        stage.wait("copying to begin", lambda seen: seen.records > 0)
        turns = itertools.count(20)

        def is_compacted() -> bool:
            write(next(turns))
            return len(flow.logs(partition)[0].records) < 1000

        wait_until(is_compacted, "the broker to compact", 120)
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
        source, target = flow.logs(partition)
        values = [one.value for one in target.records]
        assert values == sorted(set(values), key=values.index), "nothing comes twice"
        assert values == sorted(values, key=lambda value: value or b""), "everything is in order"
        assert {one.value for one in source.records} <= set(values), "nothing is missing"


def test_partitions_added_later_are_copied_from_their_beginning(
    flow: Flow, topic: str, writer: Writer
) -> None:
    flow.create(topic, 2)
    for number in range(2):
        writer.write(TopicPartition(topic, number), numbered(range(20)))
    with flow.stage(flow.job({topic: 2})) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 2}))
        stage.drain()
    for access, name in ((flow.source, topic), (flow.target, remote_name(topic))):
        with Admin(access) as admin:
            assert not admin.grow_topics({name: 4})
    for number in range(4):
        writer.write(TopicPartition(topic, number), numbered(range(20, 50)))
    with flow.stage(flow.job({topic: 4}, tasks=2)) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 4}))
        stage.drain()
        flow.assert_mirrored({topic: 4}, fences=0, stage=stage)


def test_a_target_that_lost_its_end_is_told(flow: Flow, topic: str, writer: Writer) -> None:
    """The ledger says more than the target holds, as after an unclean election there."""
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    records = numbered(range(50))
    writer.write(partition, records[:30])
    copy_all(flow, topic)
    job = flow.job({topic: 1})
    ledger = OffsetsTopicLedger.of(job)
    entry = ledger.load()[partition]
    assert entry.ours
    ledger.save({partition: replace(entry, ours=replace(entry.ours, expected=40))})
    ledger.close()
    writer.write(partition, records[30:])
    with flow.stage(job) as stage:
        assert "ends at offset 30, not at 40" in stage.wait_for_event("remote-truncated").text
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
    assert_copied(records, flow.logs(partition)[1], fences=1)


def test_an_offset_that_somebody_else_wrote_is_taken_at_its_word(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    records = numbered(range(30))
    writer.write(partition, records)
    job = flow.job({topic: 1})
    ledger = OffsetsTopicLedger.of(job)
    ledger.save({partition: Entry(position=10)})
    ledger.close()
    with flow.stage(job) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
    assert_copied(records[10:], flow.logs(partition)[1])


def reason(seen: Snapshot, partition: TopicPartition) -> str:
    return seen.partitions[str(partition)].reason


def expected(seen: Snapshot, partition: TopicPartition) -> int:
    return seen.partitions[str(partition)].expected
