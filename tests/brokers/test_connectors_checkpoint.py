"""Checkpoints on real clusters: exact translation, group offsets on the target, and reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.client import MirrorClient
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.connectors.checkpoint.checkpoint_groups import (
    NEW_GROUP_S,
    OFFSETS_QUERY_INTERVAL_S,
    CheckpointGroups,
)
from sparkmirror.connect.connectors.checkpoint.group_report import (
    GroupPartitionReport,
    GroupReports,
)
from sparkmirror.mirror.offsets.checkpoints import CheckpointOutcome
from sparkmirror.mirror.offsets.group_offset_sync import GroupOffsetOutcome
from sparkmirror.mirror.offsets.offset_translation import TranslationOutcome
from sparkmirror.mirror.offsets.records import OffsetSync, RecordBytes
from sparkmirror.model import TopicPartition
from tests.support.connect.checkpoint_task import (
    commit_group_offsets,
    committed_group_offsets,
    run_until_synced,
    running_checkpoint_task,
)
from tests.support.connect.connector_context import RecordingContext, can_plan_tasks
from tests.support.connect.connector_flow import ConnectorFlow
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    BatchWriter,
    numbered_records,
    write_mixed_batches,
)
from tests.support.kafka.clusters import SharedCluster, UniqueName
from tests.support.kafka.group_members import commit_as_member, group_member
from tests.support.waiting import wait_until


@pytest.fixture
def mirroring(primary: SharedCluster, backup: SharedCluster, topic: str) -> ConnectorFlow:
    return ConnectorFlow(name=topic, source=primary, target=backup, topics=topic)


@pytest.fixture
def writer(primary: SharedCluster) -> Iterator[BatchWriter]:
    writer = BatchWriter(primary.access)
    yield writer
    writer.close()


def _explanations_for(
    explanations: GroupReports, mirroring: ConnectorFlow, group: str
) -> list[GroupPartitionReport]:
    return list(explanations.reports_for(f"checkpoint.{mirroring.name}", group))


def test_offsets_are_translated_exactly_across_gaps_and_restarts(
    mirroring: ConnectorFlow,
    writer: BatchWriter,
    topic: str,
    unique_name: UniqueName,
    backup: SharedCluster,
) -> None:
    mirroring.create_topics({topic: MIXED_PARTITIONS})
    write_mixed_batches(writer, topic, records=300)
    mirroring.copy_to_end()
    write_mixed_batches(writer, topic, first=300, records=300)
    mirroring.copy_to_end()
    positions = (0, 1, 17, 100, 299, 400, 600, 10_000)
    partitions = [TopicPartition(topic, number) for number in range(MIXED_PARTITIONS)]
    groups = {unique_name(f"g{position}"): position for position in positions}
    for group, position in groups.items():
        commit_group_offsets(mirroring.source, group, dict.fromkeys(partitions, position))
    with running_checkpoint_task(mirroring, *groups) as (work, explanations):
        work.run_due()
        assert work.current_problem() == ""
        assert work.written_topics() == {"A.checkpoints.internal"}
        for group, position in groups.items():
            expected = {
                partition._replace(topic=f"A.{topic}"): mirroring.expected_offset(
                    partition, position
                )
                for partition in partitions
            }
            found = _explanations_for(explanations, mirroring, group)
            assert {one.remote: one.downstream for one in found} == expected, group
            assert {one.translated for one in found} == {TranslationOutcome.RUN_MAP.value}
            assert {one.checkpoint for one in found} == {CheckpointOutcome.EMITTED.value}
            with MirrorClient(backup.properties) as client:
                offsets = client.remote_consumer_offsets(group, "A")
            assert {p: one.offset for p, one in offsets.items()} == expected
            assert {one.metadata for one in offsets.values()} == {"note"}


def test_after_a_task_was_killed_no_group_is_translated_ahead_of_the_copy(
    mirroring: ConnectorFlow, writer: BatchWriter, topic: str
) -> None:
    mirroring.create_topics({topic: MIXED_PARTITIONS})
    write_mixed_batches(writer, topic, records=300)
    job = mirroring.job(sparkmirror_bytes_per_second="400000")
    with mirroring.harness(job) as harness:
        harness.wait_for_snapshot("something to be copied", lambda seen: seen.records > 0)
        for task in harness.tasks:
            harness.kill(task)
        harness.wait_for_attempts(1)
        write_mixed_batches(writer, topic, first=300, records=500)
        harness.wait_until_caught_up(mirroring.source_end_offsets(job))
        harness.drain()
    known = mirroring.known_runs()
    for number in range(MIXED_PARTITIONS):
        partition = TopicPartition(topic, number)
        source, target = mirroring.partition_logs(partition)
        positions = {
            one.offset: copy.offset
            for one, copy in zip(source.expected_records, target.records, strict=True)
        }
        answers = {offset: known[partition].translate_downstream(offset) for offset in positions}
        ahead = {o: a for o, a in answers.items() if a is not None and a > positions[o]}
        assert not ahead
        exact = sum(answer == positions[offset] for offset, answer in answers.items())
        assert exact > len(positions) / 2, "most offsets are translated exactly"


def test_offset_syncs_point_to_the_copied_records(
    mirroring: ConnectorFlow, writer: BatchWriter, topic: str, primary: SharedCluster
) -> None:
    mirroring.create_topics({topic: 1})
    partition = TopicPartition(topic, 0)
    writer.write_batches(partition, numbered_records(range(350)), batch=50)
    mirroring.copy_to_end()
    records = read_topic(primary.access, "mm2-offset-syncs.B.internal")
    syncs = [OffsetSync.decode(RecordBytes(one.key, one.value)) for one in records]
    ours = [sync for sync in syncs if sync.partition == partition]
    source, target = mirroring.partition_logs(partition)
    positions = {
        one.offset: copy.offset for one, copy in zip(source.records, target.records, strict=True)
    }
    assert all(positions[sync.upstream] == sync.downstream for sync in ours)
    assert ours[-1].upstream == 349, "the last record has a sync once positions were remembered"


def test_without_run_maps_offsets_are_translated_with_offset_syncs(
    mirroring: ConnectorFlow, writer: BatchWriter, topic: str, unique_name: UniqueName
) -> None:
    """Java MirrorMaker 2 writes no run maps; older mirrors have none either."""
    mirroring.create_topics({topic: 1})
    partition, group = TopicPartition(topic, 0), unique_name("group")
    writer.write_batches(partition, numbered_records(range(100)), batch=50)
    mirroring.copy_to_end()
    commit_group_offsets(mirroring.source, group, {partition: 100})
    elsewhere = ConnectorFlow(
        name=unique_name("other-worker"),
        source=mirroring.source,
        target=mirroring.target,
        topics=topic,
    )
    elsewhere.create_topics({})
    with running_checkpoint_task(elsewhere, group) as (work, explanations):
        work.run_due()
        (found,) = _explanations_for(explanations, elsewhere, group)
    assert (found.translated, found.downstream) == (TranslationOutcome.OFFSET_SYNC.value, 100)


def test_a_report_says_why_an_offset_cannot_be_translated(
    mirroring: ConnectorFlow, writer: BatchWriter, topic: str, unique_name: UniqueName
) -> None:
    other = unique_name("unmirrored")
    mirroring.create_topics({topic: 2, other: 1})
    writer.write_batch(TopicPartition(topic, 0), numbered_records(range(10)))
    mirroring.copy_to_end()
    group = unique_name("group")
    commit_group_offsets(
        mirroring.source,
        group,
        {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 0, TopicPartition(other, 0): 0},
    )
    with running_checkpoint_task(mirroring, group) as (work, explanations):
        work.run_due()
        work.run_due()
        found = {one.partition: one for one in _explanations_for(explanations, mirroring, group)}
        assert found[TopicPartition(topic, 0)].checkpoint == CheckpointOutcome.EMITTED.value
        assert found[TopicPartition(topic, 1)].checkpoint == CheckpointOutcome.NO_SYNC.value
        assert found[TopicPartition(other, 0)].checkpoint == CheckpointOutcome.TOPIC_FILTERED.value
    assert _explanations_for(explanations, mirroring, group) == [], (
        "the task no longer follows the group"
    )


def test_target_groups_move_only_forward_and_only_without_members(
    mirroring: ConnectorFlow,
    writer: BatchWriter,
    topic: str,
    unique_name: UniqueName,
    backup: SharedCluster,
) -> None:
    mirroring.create_topics({topic: 1})
    partition, remote = TopicPartition(topic, 0), TopicPartition(f"A.{topic}", 0)
    writer.write_batches(partition, numbered_records(range(100)), batch=20)
    mirroring.copy_to_end()
    group, busy, ahead = unique_name("group"), unique_name("busy"), unique_name("ahead")
    for one in (group, busy, ahead):
        commit_group_offsets(mirroring.source, one, {partition: 50})
    commit_group_offsets(backup, ahead, {remote: 70})
    intervals = {
        "sync_group_offsets_enabled": "true",
        "sync_group_offsets_interval_seconds": "0",
        "emit_checkpoints_interval_seconds": "0",
    }
    with running_checkpoint_task(mirroring, group, busy, ahead, **intervals) as (
        work,
        explanations,
    ):
        with group_member(backup, busy, remote.topic) as consumer:
            commit_as_member(consumer, remote.topic, 10)
            run_until_synced(work)
            assert committed_group_offsets(backup, group) == {remote: 50}
            assert committed_group_offsets(backup, busy) == {remote: 10}
            assert committed_group_offsets(backup, ahead) == {remote: 70}
            written = {
                one.group: one.written
                for name in (group, busy, ahead)
                for one in _explanations_for(explanations, mirroring, name)
            }
            assert written == {
                group: GroupOffsetOutcome.TARGET_AHEAD.value,  # by then; it was written before
                busy: GroupOffsetOutcome.GROUP_IN_USE.value,
                ahead: GroupOffsetOutcome.TARGET_AHEAD.value,
            }
            commit_as_member(consumer, remote.topic, 90)
        commit_group_offsets(mirroring.source, group, {partition: 80})
        run_until_synced(work)
        assert committed_group_offsets(backup, group) == {remote: 80}
        assert committed_group_offsets(backup, busy) == {remote: 90}, "it went further itself"
        commit_group_offsets(mirroring.source, group, {partition: 20})
        run_until_synced(work)
        assert committed_group_offsets(backup, group) == {remote: 80}, "never set back"


def _assigned(connector: MirrorCheckpointConnector, tasks_max: int) -> list[str]:
    """The groups of each task."""
    return [task["task.assigned.groups"] for task in connector.task_configs(tasks_max)]


def test_groups_are_selected_by_filter_and_by_committed_topics(
    mirroring: ConnectorFlow, writer: BatchWriter, topic: str, unique_name: UniqueName
) -> None:
    other = unique_name("unmirrored")
    mirroring.create_topics({topic: 1, other: 1})
    prefix = unique_name("groups")
    commit_group_offsets(mirroring.source, f"{prefix}.b", {TopicPartition(topic, 0): 0})
    commit_group_offsets(mirroring.source, f"{prefix}.elsewhere", {TopicPartition(other, 0): 0})
    reasons = {
        "no": "groups and groups.exclude exclude it",
        "with,comma": "its id contains a comma, so it cannot be assigned to a task",
        "elsewhere": f"it has committed offsets only on topics that are not mirrored: {other}",
        "never": "A lists no such group: it has not committed an offset there, or the mirror lacks"
        " the right Describe on it",
        "a": "its first checkpoints follow soon",
    }
    context = RecordingContext()
    reports = GroupReports()
    connector = MirrorCheckpointConnector("c", context, reports)
    config = mirroring.connector_config("Checkpoint", groups=f"{prefix}.*", groups_exclude=".*no")
    try:
        connector.start(config)
        wait_until(lambda: can_plan_tasks(connector), "the first refresh")
        assert _assigned(connector, 4) == [f"{prefix}.b"]
        before = context.reconfiguration_requests
        for name in ("a", "c", "no", "with,comma"):
            commit_group_offsets(
                mirroring.source, f"{prefix}.{name}", {TopicPartition(topic, 0): 0}
            )
        expected = [f"{prefix}.a,{prefix}.b", f"{prefix}.c"]
        wait_until(lambda: _assigned(connector, 2) == expected, "new groups to be found")
        wait_until(
            lambda: context.reconfiguration_requests > before, "a request for new task configs"
        )
        for name, reason in reasons.items():
            assert reports.exclusion_reason("c", f"{prefix}.{name}") == reason
    finally:
        connector.stop()
    assert reports.exclusion_reason("c", f"{prefix}.no") == ""


def test_a_task_follows_other_groups_without_a_restart(
    mirroring: ConnectorFlow, writer: BatchWriter, topic: str, unique_name: UniqueName
) -> None:
    mirroring.create_topics({topic: 1})
    partition = TopicPartition(topic, 0)
    writer.write_batch(partition, numbered_records(range(10)))
    mirroring.copy_to_end()
    one, two = unique_name("one"), unique_name("two")
    for group in (one, two):
        commit_group_offsets(mirroring.source, group, {partition: 5})
    with running_checkpoint_task(mirroring, one) as (work, explanations):
        work.run_due()
        config = mirroring.connector_config("Checkpoint")
        config |= {"task.assigned.groups": two, "task.index": "0"}
        assert work.reconfigure(config)
        assert not work.reconfigure({**config, "emit.checkpoints.interval.seconds": "7"})
        work.run_due()
        assert [found.downstream for found in _explanations_for(explanations, mirroring, two)] == [
            5
        ]
        assert _explanations_for(explanations, mirroring, one) == []


def test_the_first_commit_of_a_new_group_is_seen_with_the_next_refresh(
    mirroring: ConnectorFlow, topic: str, unique_name: UniqueName
) -> None:
    mirroring.create_topics({topic: 1})
    group, idle = unique_name("new"), unique_name("idle")
    config = MirrorCheckpointConfig.parse(
        mirroring.connector_config("Checkpoint", groups=f"{group},{idle}")
    )
    router = mirroring.source.access.new_router()
    now = 0.0
    try:
        groups = CheckpointGroups(config, router, clock=lambda: now)
        with group_member(mirroring.source, group, topic) as consumer:
            wait_until(groups.refresh, "the first refresh")
            groups.refresh()
            assert not groups.groups
            commit_as_member(consumer, topic, 1)
            assert now < OFFSETS_QUERY_INTERVAL_S
            assert groups.refresh()
            assert list(groups.groups or ()) == [group]
        with group_member(mirroring.source, idle, topic) as consumer:
            groups.refresh()
            now = NEW_GROUP_S - 1
            groups.refresh()
            now = NEW_GROUP_S
            commit_as_member(consumer, topic, 1)
            assert not groups.refresh()  # not new any more: seen when all offsets are listed again
            now += OFFSETS_QUERY_INTERVAL_S
            assert groups.refresh()
            assert list(groups.groups or ()) == [idle, group]
    finally:
        router.close()
