"""`sparkmirror copy` between two real clusters, with the copy harness in the place of Spark."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sparkmirror.cli.copy.command import copy_command
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topic_contents import ProducerRecord, produce_records, read_topic
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.errors import BadRequest, ClusterError, ClusterUnavailable
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.cli.harness_engine import HarnessEngine
from tests.support.kafka.admin_operations import delete_records
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.clusters import (
    SharedCluster,
    UniqueName,
    create_topic,
    read_values,
    write_values,
)


class CopyCommand:
    """The command between the two clusters, under an alias of this test alone."""

    def __init__(self, primary: SharedCluster, backup: SharedCluster, alias: str) -> None:
        self.alias = alias
        self._ends = ("--from", primary.bootstrap, "--to", backup.bootstrap)

    def run(self, *arguments: str) -> Result:
        options = (*self._ends, "--source-alias", self.alias, *arguments)
        return CliRunner().invoke(copy_command(HarnessEngine), options, catch_exceptions=True)


@pytest.fixture
def copying(primary: SharedCluster, backup: SharedCluster, unique_name: UniqueName) -> CopyCommand:
    return CopyCommand(primary, backup, unique_name("a")[-40:])


def _rows(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def _topics(cluster: SharedCluster) -> set[str]:
    with Admin(cluster.access) as admin:
        return set(admin.describe_topics())


def test_topics_are_created_as_they_are_and_everything_is_copied(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    settings = {"retention.ms": "7200000", "cleanup.policy": "compact,delete"}
    with Admin(primary.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=3, configs=settings))
    writer = BatchWriter(primary.access)
    for index in range(3):  # one batch each: how many a producer makes depends on its pace
        writer.write_batch(TopicPartition(topic, index), numbered_records(range(100)))
    writer.close()
    result = copying.run("--topics", topic, "--until-caught-up")
    assert result.exit_code == 0, result.output
    assert f"Everything that {copying.alias} held at the start is on target." in result.output
    summary = re.compile(rf"{topic} {topic} 3 300 [0-9.]+ kB 0 plain 3")
    assert [row for row in _rows(result.output) if summary.fullmatch(row)]
    assert "Copied 300 records" in result.output
    source, target = read_topic(primary.access, topic), read_topic(backup.access, topic)
    assert [(r.partition, r.key, r.value) for r in target] == [
        (r.partition, r.key, r.value) for r in source
    ]
    with Admin(backup.access) as admin:
        found = admin.describe_configs([topic])[topic]
        assert not isinstance(found, ClusterError)
        entries = {entry.name: entry.value for entry in found}
    assert {name: entries[name] for name in settings} == settings


def test_exactly_once_is_an_option_of_the_same_command(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    """Each run continues where the one before ended, with and without the option."""
    create_topic(primary.access, topic)
    for number, options in enumerate([[], ["--exactly-once"], [], ["--exactly-once"]]):
        write_values(primary.access, topic, b"%d" % number)
        result = copying.run("--topics", topic, "--until-caught-up", *options)
        assert result.exit_code == 0, result.output
        assert ("isolation.level=read_committed" in result.output) == bool(options)
    seen = read_topic(backup.access, topic, committed_only=True)
    assert [record.value for record in seen] == [b"0", b"1", b"2", b"3"]
    assert seen[-1].offset == 4, "one commit lies between them"


def test_the_same_command_continues_where_it_ended(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"1", b"2")
    assert copying.run("--topics", topic, "--until-caught-up").exit_code == 0
    write_values(primary.access, topic, b"3")
    again = copying.run("--topics", topic, "--until-caught-up")
    assert f"{topic} {topic} 1 exists stored position 1" in _rows(again.output)
    assert "Copied 1 record," in again.output
    assert read_values(backup.access, topic) == [b"1", b"2", b"3"]
    (key,) = {
        json.dumps(json.loads(record.key or b""))
        for record in read_topic(backup.access, f"mm2-offsets.{copying.alias}.internal")
    }
    assert json.loads(key) == [
        "MirrorSourceConnector",
        {"cluster": copying.alias, "partition": 0, "topic": topic},
    ]


def test_a_dry_run_shows_the_plan_and_changes_nothing(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic, partitions=2)
    write_values(primary.access, topic, b"1")
    before = _topics(backup)
    result = copying.run("--topics", topic, "--policy", "default", "--dry-run")
    assert result.exit_code == 0
    row = f"{topic} {copying.alias}.{topic} 2 to be created: 1 replica earliest 1"
    assert row in _rows(result.output)
    assert "Nothing was changed: --dry-run." in result.output
    assert _topics(backup) == before


def test_a_copy_that_is_too_small_grows(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic, partitions=3)
    create_topic(backup.access, topic, partitions=1)
    produce_records(primary.access, topic, [ProducerRecord(value=b"x", partition=2)])
    assert copying.run("--topics", topic, "--until-caught-up").exit_code == 0
    assert [record.partition for record in read_topic(backup.access, topic)] == [2]


def test_other_records_are_appended_to_only_with_yes(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    for cluster, value in ((primary, b"ours"), (backup, b"theirs")):
        create_topic(cluster.access, topic)
        write_values(cluster.access, topic, value)
    refused = copying.run("--topics", topic, "--until-caught-up")
    assert isinstance(refused.exception, BadRequest)
    assert f"already holds records in {topic}" in str(refused.exception)
    assert read_values(backup.access, topic) == [b"theirs"]
    assert copying.run("--topics", topic, "--until-caught-up", "--yes").exit_code == 0
    assert read_values(backup.access, topic) == [b"theirs", b"ours"]


def test_data_loss_halts_until_the_operator_decides(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"1", b"2")
    assert copying.run("--topics", topic, "--until-caught-up").exit_code == 0
    write_values(primary.access, topic, b"3", b"4")
    delete_records(primary.access, TopicPartition(topic, 0), 3)
    halted = copying.run("--topics", topic, "--until-caught-up")
    assert halted.exit_code == 2
    assert f"{topic}-0 is halted: the source deleted offsets 2 to 2 before" in halted.output
    assert "--on-loss skip continues with the first record" in halted.output
    skipped = copying.run("--topics", topic, "--until-caught-up", "--on-loss", "skip")
    assert skipped.exit_code == 0, skipped.output
    assert "Events: 1 retention." in skipped.output
    assert read_values(backup.access, topic) == [b"1", b"2", b"4"]


def test_a_recreated_source_topic_does_not_count_as_caught_up(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"1", b"2")
    assert copying.run("--topics", topic, "--until-caught-up").exit_code == 0
    with Admin(primary.access) as admin:
        assert not admin.delete_topics([topic])
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"3")
    halted = copying.run("--topics", topic, "--until-caught-up")
    assert halted.exit_code == 2, halted.output
    assert f"{topic}-0 is halted: the source topic was deleted and created again" in halted.output
    restarted = copying.run("--topics", topic, "--until-caught-up", "--on-loss", "restart")
    assert restarted.exit_code == 0, restarted.output
    assert "Copied 1 record," in restarted.output
    assert read_values(backup.access, topic) == [b"1", b"2", b"3"]


def test_new_partitions_start_at_the_offsets_of_the_file(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"1", b"2", b"3")
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({f"{topic}-0": 9}))
    start = ("--topics", topic, "--until-caught-up", "--start", f"offsets:{file}")
    refused = copying.run(*start)
    assert "cannot begin at offset 9: the source holds 0 to 3" in str(refused.exception)
    file.write_text(json.dumps({topic: {"0": 2}}))
    assert copying.run(*start).exit_code == 0
    assert read_values(backup.access, topic) == [b"3"]


@pytest.mark.parametrize("start", ["latest", "time"])
def test_new_partitions_start_at_the_end_or_at_a_time(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str, start: str
) -> None:
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    an_hour_ago_ms = int(an_hour_ago.timestamp() * 1000)
    create_topic(primary.access, topic)
    old = ProducerRecord(value=b"old", partition=0, timestamp_ms=an_hour_ago_ms - 60_000)
    produce_records(primary.access, topic, [old, ProducerRecord(value=b"young", partition=0)])
    text = an_hour_ago.isoformat() if start == "time" else start
    command = ("--topics", topic, "--until-caught-up", "--start", text)
    first = copying.run(*command)
    assert first.exit_code == 0, first.output
    copied_first = [] if start == "latest" else [b"young"]
    assert read_values(backup.access, topic) == copied_first
    write_values(primary.access, topic, b"new")
    assert copying.run(*command).exit_code == 0
    assert read_values(backup.access, topic) == [*copied_first, b"new"], (
        "it continues where it ended"
    )


@pytest.mark.parametrize(
    ("options", "values"),
    [((), [b"kept"]), (("--read-uncommitted",), [b"kept", b"given up"])],
    ids=["committed", "uncommitted"],
)
def test_aborted_transactions_are_copied_only_with_read_uncommitted(
    copying: CopyCommand,
    primary: SharedCluster,
    backup: SharedCluster,
    topic: str,
    options: tuple[str, ...],
    values: list[bytes],
) -> None:
    create_topic(primary.access, topic)
    writer = BatchWriter(primary.access)
    transaction = writer.begin_transaction(topic)
    transaction.write_batch(TopicPartition(topic, 0), [Record(0, now_ms(), None, b"kept")])
    transaction.commit()
    transaction.write_batch(TopicPartition(topic, 0), [Record(0, now_ms(), None, b"given up")])
    transaction.abort()
    writer.close()
    copied = copying.run("--topics", topic, "--until-caught-up", *options)
    assert copied.exit_code == 0, copied.output
    assert read_values(backup.access, topic) == values


def test_an_offsets_topic_without_compaction_is_rejected(
    copying: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    create_topic(backup.access, f"mm2-offsets.{copying.alias}.internal")
    refused = copying.run("--topics", topic)
    assert "cleanup.policy=delete, so the" in str(refused.exception)


def test_an_unreachable_cluster_is_reported_within_seconds(copying: CopyCommand) -> None:
    refused = copying.run("--from", "127.0.0.1:1", "--topics", "x")
    assert isinstance(refused.exception, ClusterUnavailable)
    assert "127.0.0.1:1" in str(refused.exception)
    waiting = f"Waiting for cluster {copying.alias}: PLAINTEXT 127.0.0.1:1: connection refused"
    assert waiting in refused.output
