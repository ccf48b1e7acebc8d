"""Checkpoints on real clusters: exact translation, groups written on the target, and why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sparkmirror.client import MirrorClient
from sparkmirror.cluster.groups import commit_offsets, committed_offsets
from sparkmirror.cluster.records import read_topic
from sparkmirror.connect.connectors.checkpoint import CheckpointConnector
from sparkmirror.connect.connectors.checkpoint_config import CheckpointConfig
from sparkmirror.connect.connectors.checkpoint_groups import why_not_followed
from sparkmirror.connect.connectors.checkpoint_task import CheckpointWork
from sparkmirror.connect.connectors.explanations import Explanation, Explanations
from sparkmirror.connect.connectors.hands import Hands
from sparkmirror.connect.connectors.topic_making import ensure_internal_topic
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.checkpoints import Outcome
from sparkmirror.mirror.group_offsets import WriteOutcome
from sparkmirror.mirror.records import OffsetSync, RecordBytes
from sparkmirror.mirror.translation import Found
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from tests.support.clusters import Reachable, UniqueName
from tests.support.connecting import Context, has_a_plan
from tests.support.members import commit, member
from tests.support.mirroring import Mirroring
from tests.support.waiting import wait_until
from tests.support.writing import MIXED, Writer, numbered, write_mixed


@pytest.fixture
def mirroring(primary: Reachable, backup: Reachable, topic: str) -> Mirroring:
    return Mirroring(name=topic, source=primary, target=backup, topics=topic)


@pytest.fixture
def writer(primary: Reachable) -> Iterator[Writer]:
    made = Writer(primary.access)
    yield made
    made.close()


def _commit(cluster: Reachable, group: str, offsets: dict[TopicPartition, int]) -> None:
    router = cluster.access.router()
    try:
        codes = commit_offsets(
            router, group, {p: OffsetAndMetadata(offset, "note") for p, offset in offsets.items()}
        )
    finally:
        router.close()
    assert set(codes.values()) == {0}


def _committed(cluster: Reachable, group: str) -> dict[TopicPartition, int]:
    router = cluster.access.router()
    try:
        found = committed_offsets(router, [group])[group]
    finally:
        router.close()
    assert not isinstance(found, ClusterError)
    return {partition: offset.offset for partition, offset in found.items() if offset}


@contextmanager
def working(
    mirroring: Mirroring, *groups: str, **more: str
) -> Iterator[tuple[CheckpointWork, Explanations]]:
    """A checkpoint task that has read all it needs."""
    explanations = Explanations()
    config = mirroring.config("Checkpoint", **more)
    config |= {"task.assigned.groups": ",".join(groups), "task.index": "0"}
    hands = Hands.on(mirroring.target.access, timeout_s=30)
    ensure_internal_topic(hands, CheckpointConfig.parse(config).checkpoints_topic, 1)
    hands.close()
    work = CheckpointWork(config, mirroring.worker, explanations)
    try:
        work.begin()
        yield work, explanations
    finally:
        work.end()


def _of(explanations: Explanations, mirroring: Mirroring, group: str) -> list[Explanation]:
    return list(explanations.of(f"checkpoint.{mirroring.name}", group))


def test_offsets_are_translated_exactly_across_gaps_and_restarts(
    mirroring: Mirroring, writer: Writer, topic: str, unique_name: UniqueName, backup: Reachable
) -> None:
    mirroring.prepare({topic: MIXED})
    write_mixed(writer, topic, records=300)
    mirroring.copy()
    write_mixed(writer, topic, first=300, records=300)
    mirroring.copy()
    positions = (0, 1, 17, 100, 299, 400, 600, 10_000)
    partitions = [TopicPartition(topic, number) for number in range(MIXED)]
    groups = {unique_name(f"g{position}"): position for position in positions}
    for group, position in groups.items():
        _commit(mirroring.source, group, dict.fromkeys(partitions, position))
    with working(mirroring, *groups) as (work, explanations):
        work.turn()
        assert work.remark() == ""
        assert work.topics() == {"A.checkpoints.internal"}
        for group, position in groups.items():
            expected = {
                partition._replace(topic=f"A.{topic}"): mirroring.truth(partition, position)
                for partition in partitions
            }
            found = _of(explanations, mirroring, group)
            assert {one.remote: one.downstream for one in found} == expected, group
            assert {one.translated for one in found} == {Found.RUN_MAP.value}
            assert {one.checkpoint for one in found} == {Outcome.EMITTED.value}
            with MirrorClient(backup.properties) as client:
                offsets = client.remote_consumer_offsets(group, "A")
            assert {p: one.offset for p, one in offsets.items()} == expected
            assert {one.metadata for one in offsets.values()} == {"note"}


def test_after_a_task_was_killed_nobody_is_sent_ahead(
    mirroring: Mirroring, writer: Writer, topic: str
) -> None:
    mirroring.prepare({topic: MIXED})
    write_mixed(writer, topic, records=300)
    job = mirroring.job(sparkmirror_bytes_per_second="400000")
    with mirroring.stage(job) as stage:
        stage.wait("something to be copied", lambda seen: seen.records > 0)
        for task in stage.tasks:
            stage.kill(task)
        stage.wait_for_attempts(1)
        write_mixed(writer, topic, first=300, records=500)
        stage.wait_until_caught_up(mirroring.ends(job))
        stage.drain()
    known = mirroring.known_runs()
    for number in range(MIXED):
        partition = TopicPartition(topic, number)
        source, target = mirroring.logs(partition)
        places = {
            one.offset: copy.offset for one, copy in zip(source.wanted, target.records, strict=True)
        }
        answers = {offset: known[partition].downstream(offset) for offset in places}
        ahead = {o: a for o, a in answers.items() if a is not None and a > places[o]}
        assert not ahead
        exact = sum(answer == places[offset] for offset, answer in answers.items())
        assert exact > len(places) / 2, "what is known is known exactly"


def test_offset_syncs_tell_where_records_went(
    mirroring: Mirroring, writer: Writer, topic: str, primary: Reachable
) -> None:
    mirroring.prepare({topic: 1})
    partition = TopicPartition(topic, 0)
    writer.write_many(partition, numbered(range(350)), batch=50)
    mirroring.copy()
    records = read_topic(primary.access, "mm2-offset-syncs.B.internal")
    syncs = [OffsetSync.decode(RecordBytes(one.key, one.value)) for one in records]
    ours = [sync for sync in syncs if sync.partition == partition]
    source, target = mirroring.logs(partition)
    places = {
        one.offset: copy.offset for one, copy in zip(source.records, target.records, strict=True)
    }
    assert all(places[sync.upstream] == sync.downstream for sync in ours)
    assert ours[-1].upstream == 349, "the last record has a sync once positions were remembered"


def test_without_maps_translation_goes_by_offset_syncs(
    mirroring: Mirroring, writer: Writer, topic: str, unique_name: UniqueName
) -> None:
    """As where Java MirrorMaker 2 mirrors, and for what was mirrored before us."""
    mirroring.prepare({topic: 1})
    partition, group = TopicPartition(topic, 0), unique_name("group")
    writer.write_many(partition, numbered(range(100)), batch=50)
    mirroring.copy()
    _commit(mirroring.source, group, {partition: 100})
    elsewhere = Mirroring(
        name=unique_name("other-worker"),
        source=mirroring.source,
        target=mirroring.target,
        topics=topic,
    )
    elsewhere.prepare({})
    with working(elsewhere, group) as (work, explanations):
        work.turn()
        (found,) = _of(explanations, elsewhere, group)
    assert (found.translated, found.downstream) == (Found.OFFSET_SYNC.value, 100)


def test_what_cannot_be_translated_says_why(
    mirroring: Mirroring, writer: Writer, topic: str, unique_name: UniqueName
) -> None:
    other = unique_name("unmirrored")
    mirroring.prepare({topic: 2, other: 1})
    writer.write(TopicPartition(topic, 0), numbered(range(10)))
    mirroring.copy()
    group = unique_name("group")
    _commit(
        mirroring.source,
        group,
        {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 0, TopicPartition(other, 0): 0},
    )
    with working(mirroring, group) as (work, explanations):
        work.turn()
        work.turn()
        found = {one.partition: one for one in _of(explanations, mirroring, group)}
        assert found[TopicPartition(topic, 0)].checkpoint == Outcome.EMITTED.value
        assert found[TopicPartition(topic, 1)].checkpoint == Outcome.NO_SYNC.value
        assert found[TopicPartition(other, 0)].checkpoint == Outcome.TOPIC_FILTERED.value
    assert _of(explanations, mirroring, group) == [], "nobody follows the group any more"


def _synced(work: CheckpointWork) -> None:
    """Let both intervals pass, which are the shortest there are."""
    for _ in range(3):
        wait_until(lambda: work.pause_s() == 0, "something to be due")
        work.turn()


def test_groups_on_the_target_go_forward_and_only_while_nobody_is_in_them(
    mirroring: Mirroring, writer: Writer, topic: str, unique_name: UniqueName, backup: Reachable
) -> None:
    mirroring.prepare({topic: 1})
    partition, remote = TopicPartition(topic, 0), TopicPartition(f"A.{topic}", 0)
    writer.write_many(partition, numbered(range(100)), batch=20)
    mirroring.copy()
    group, busy, ahead = unique_name("group"), unique_name("busy"), unique_name("ahead")
    for one in (group, busy, ahead):
        _commit(mirroring.source, one, {partition: 50})
    _commit(backup, ahead, {remote: 70})
    intervals = {
        "sync_group_offsets_enabled": "true",
        "sync_group_offsets_interval_seconds": "0",
        "emit_checkpoints_interval_seconds": "0",
    }
    with working(mirroring, group, busy, ahead, **intervals) as (work, explanations):
        with member(backup, busy, remote.topic) as consumer:
            commit(consumer, remote.topic, 10)
            _synced(work)
            assert _committed(backup, group) == {remote: 50}
            assert _committed(backup, busy) == {remote: 10}
            assert _committed(backup, ahead) == {remote: 70}
            written = {
                one.group: one.written
                for name in (group, busy, ahead)
                for one in _of(explanations, mirroring, name)
            }
            assert written == {
                group: WriteOutcome.TARGET_AHEAD.value,  # by then; it was written before
                busy: WriteOutcome.GROUP_IN_USE.value,
                ahead: WriteOutcome.TARGET_AHEAD.value,
            }
            commit(consumer, remote.topic, 90)
        _commit(mirroring.source, group, {partition: 80})
        _synced(work)
        assert _committed(backup, group) == {remote: 80}
        assert _committed(backup, busy) == {remote: 90}, "it went further itself"
        _commit(mirroring.source, group, {partition: 20})
        _synced(work)
        assert _committed(backup, group) == {remote: 80}, "never set back"


def _assigned(connector: CheckpointConnector, tasks_max: int) -> list[str]:
    """The groups of each task."""
    return [task["task.assigned.groups"] for task in connector.task_configs(tasks_max)]


def test_groups_are_found_by_filter_and_by_what_they_committed(
    mirroring: Mirroring, writer: Writer, topic: str, unique_name: UniqueName
) -> None:
    other = unique_name("unmirrored")
    mirroring.prepare({topic: 1, other: 1})
    prefix = unique_name("groups")
    _commit(mirroring.source, f"{prefix}.b", {TopicPartition(topic, 0): 0})
    _commit(mirroring.source, f"{prefix}.elsewhere", {TopicPartition(other, 0): 0})
    context = Context()
    connector = CheckpointConnector("c", context)
    config = mirroring.config("Checkpoint", groups=f"{prefix}.*", groups_exclude=".*no")
    try:
        connector.start(config)
        wait_until(lambda: has_a_plan(connector), "a first look at the clusters")
        assert _assigned(connector, 4) == [f"{prefix}.b"]
        before = context.requests
        for name in ("a", "c", "no", "with,comma"):
            _commit(mirroring.source, f"{prefix}.{name}", {TopicPartition(topic, 0): 0})
        wanted = [f"{prefix}.a,{prefix}.b", f"{prefix}.c"]
        wait_until(lambda: _assigned(connector, 2) == wanted, "new groups to be found")
        wait_until(lambda: context.requests > before, "tasks to be dealt anew")
    finally:
        connector.stop()
    reasons = {
        "no": "groups and groups.exclude leave it out",
        "with,comma": "its id holds a comma, so it cannot be assigned to a task",
        "elsewhere": f"it has committed offsets only on topics that are not mirrored: {other}",
        "never": "no such group has committed an offset on A",
        "a": "it is about to be followed",
    }
    parsed, router = CheckpointConfig.parse(config), mirroring.source.access.router()
    for name, reason in reasons.items():
        assert why_not_followed(parsed, router, f"{prefix}.{name}") == reason
    router.close()


def test_a_task_follows_other_groups_without_beginning_anew(
    mirroring: Mirroring, writer: Writer, topic: str, unique_name: UniqueName
) -> None:
    mirroring.prepare({topic: 1})
    partition = TopicPartition(topic, 0)
    writer.write(partition, numbered(range(10)))
    mirroring.copy()
    one, two = unique_name("one"), unique_name("two")
    for group in (one, two):
        _commit(mirroring.source, group, {partition: 5})
    with working(mirroring, one) as (work, explanations):
        work.turn()
        config = mirroring.config("Checkpoint")
        config |= {"task.assigned.groups": two, "task.index": "0"}
        assert work.take(config)
        assert not work.take({**config, "emit.checkpoints.interval.seconds": "7"})
        work.turn()
        assert [found.downstream for found in _of(explanations, mirroring, two)] == [5]
        assert _of(explanations, mirroring, one) == []
