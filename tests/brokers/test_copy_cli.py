"""`sparkmirror copy` between two real clusters, with the copy harness in the place of Spark.

A run starts processes, so one run serves several checks. `tests/pure/cli/copy` proves options,
texts and the plan.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sparkmirror.cli.copy.command import copy_command
from sparkmirror.cli.copy.engine import EngineFactory
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records, read_topic
from sparkmirror.engine.supervisor.driver_status import DriverStatus
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


class InterruptedEngine(HarnessEngine):
    """Presses Ctrl-C once, when the first records are copied."""

    def statuses(self) -> Iterator[DriverStatus]:
        is_pressed = False
        for status in super().statuses():
            if status.snapshot.records and not is_pressed:
                is_pressed = True
                os.kill(os.getpid(), signal.SIGINT)
            yield status


class CopyCommand:
    """Runs the command from `primary` to `backup`; the source has an alias of its own."""

    def __init__(self, primary: SharedCluster, backup: SharedCluster, alias: str) -> None:
        self.alias = alias
        self._clusters = ("--from", primary.bootstrap, "--to", backup.bootstrap)

    def run(self, *arguments: str, engine: EngineFactory = HarnessEngine) -> Result:
        options = (*self._clusters, "--source-alias", self.alias, *arguments)
        return CliRunner().invoke(copy_command(engine), options, catch_exceptions=True)

    def run_until_caught_up(self, *arguments: str) -> Result:
        """Run it with `--until-caught-up`; the exit code must be 0."""
        result = self.run("--until-caught-up", *arguments)
        assert result.exit_code == 0, result.output
        return result


@pytest.fixture
def copy(primary: SharedCluster, backup: SharedCluster, unique_name: UniqueName) -> CopyCommand:
    return CopyCommand(primary, backup, unique_name("a")[-40:])


def _rows(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def _topics(cluster: SharedCluster) -> set[str]:
    with Admin(cluster.access) as admin:
        return set(admin.describe_topics())


def _configs(cluster: SharedCluster, topic: str) -> dict[str, str | None]:
    with Admin(cluster.access) as admin:
        found = admin.describe_configs([topic])[topic]
    assert not isinstance(found, ClusterError)
    return {entry.name: entry.value for entry in found}


def _write_transactions(cluster: SharedCluster, topic: str) -> None:
    """Write one committed and one aborted record to partition 0."""
    partition = TopicPartition(topic, 0)
    writer = BatchWriter(cluster.access)
    transaction = writer.begin_transaction(topic)
    transaction.write_batch(partition, [Record(0, now_ms(), None, b"committed")])
    transaction.commit()
    transaction.write_batch(partition, [Record(0, now_ms(), None, b"aborted")])
    transaction.abort()
    writer.close()


def test_copy_creates_topics_adds_partitions_and_copies_all_committed_records(
    copy: CopyCommand,
    primary: SharedCluster,
    backup: SharedCluster,
    topic: str,
    unique_name: UniqueName,
) -> None:
    """The dry run before it shows the plan and changes nothing."""
    settings = {"retention.ms": "7200000", "cleanup.policy": "compact,delete"}
    larger, transactions = unique_name("larger"), unique_name("transactions")
    create_topic(primary.access, topic, partitions=3, configs=settings)
    create_topic(primary.access, larger, partitions=3)
    create_topic(backup.access, larger, partitions=1)
    create_topic(primary.access, transactions)
    writer = BatchWriter(primary.access)
    for index in range(3):  # one batch each: how many a producer makes depends on its pace
        writer.write_batch(TopicPartition(topic, index), numbered_records(range(100)))
    writer.close()
    produce_records(primary.access, larger, [ProducerRecord(value=b"x", partition=2)])
    _write_transactions(primary, transactions)
    before = _topics(backup)

    dry_run = copy.run_until_caught_up(
        "--topics", f"{topic},{transactions}", "--policy", "default", "--dry-run"
    )
    row = f"{transactions} {copy.alias}.{transactions} 1 to be created: 1 replica earliest 4"
    assert row in _rows(dry_run.output)
    assert "Nothing was changed: --dry-run." in dry_run.output
    assert _topics(backup) == before

    result = copy.run_until_caught_up("--topics", f"{topic},{larger},{transactions}")
    assert f"Everything that {copy.alias} held at the start is on target." in result.output
    summary = re.compile(rf"{topic} {topic} 3 300 [0-9.]+ kB 0 plain 3")
    assert [row for row in _rows(result.output) if summary.fullmatch(row)]
    assert "Copied 302 records" in result.output
    source, target = read_topic(primary.access, topic), read_topic(backup.access, topic)
    assert [(r.partition, r.key, r.value) for r in target] == [
        (r.partition, r.key, r.value) for r in source
    ]
    configs = _configs(backup, topic)
    assert {name: configs[name] for name in settings} == settings
    assert [record.partition for record in read_topic(backup.access, larger)] == [2]
    assert read_values(backup.access, transactions) == [b"committed"]


def test_next_run_continues_with_and_without_exactly_once(
    copy: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    for number, options in enumerate([[], ["--exactly-once"], []]):
        write_values(primary.access, topic, b"%d" % number)
        result = copy.run_until_caught_up("--topics", topic, *options)
        assert ("isolation.level=read_committed" in result.output) == bool(options)
        row = f"{topic} {topic} 1 exists stored position 1"
        assert (row in _rows(result.output)) == (number > 0)
        assert "Copied 1 record," in result.output
    seen = read_topic(backup.access, topic, committed_only=True)
    assert [record.value for record in seen] == [b"0", b"1", b"2"]
    assert seen[-1].offset == 3, "one commit marker precedes the last record"
    (key,) = {
        json.dumps(json.loads(record.key or b""))
        for record in read_topic(backup.access, f"mm2-offsets.{copy.alias}.internal")
    }
    assert json.loads(key) == [
        "MirrorSourceConnector",
        {"cluster": copy.alias, "partition": 0, "topic": topic},
    ]


def test_an_interrupted_copy_ends_with_130_and_the_same_command_continues(
    copy: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    writer = BatchWriter(primary.access)
    records = numbered_records(range(1000), size=1000)
    writer.write_batches(TopicPartition(topic, 0), records, batch=20)
    writer.close()
    options = ("--topics", topic, "--until-caught-up")
    interrupted = copy.run(*options, "--rate", "50kB", engine=InterruptedEngine)
    assert interrupted.exit_code == 130, interrupted.output
    assert "Finishing batches in flight; Ctrl-C again ends at once." in interrupted.output
    assert "Interrupted. The same command continues from there." in interrupted.output
    copied = len(read_topic(backup.access, topic))
    assert 0 < copied < len(records)
    result = copy.run_until_caught_up("--topics", topic)
    assert f"Copied {len(records) - copied:,} record" in result.output
    assert "Events: none." in result.output
    seen = [record.value for record in read_topic(backup.access, topic)]
    assert seen == [record.value for record in records]


def test_start_option_decides_only_where_new_partitions_start(
    copy: CopyCommand,
    primary: SharedCluster,
    backup: SharedCluster,
    unique_name: UniqueName,
    tmp_path: Path,
) -> None:
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    old_ms = int(an_hour_ago.timestamp() * 1000) - 60_000
    records = [
        ProducerRecord(value=b"0", partition=0, timestamp_ms=old_ms),
        ProducerRecord(value=b"1", partition=0),
        ProducerRecord(value=b"2", partition=0),
    ]
    latest, at_time, at_offset = unique_name("latest"), unique_name("time"), unique_name("offset")
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({at_offset: {"0": 2}}))
    copied: dict[str, list[bytes]] = {latest: [], at_time: [b"1", b"2"], at_offset: [b"2"]}
    starts = {latest: "latest", at_time: an_hour_ago.isoformat(), at_offset: f"offsets:{file}"}
    for topic, start in starts.items():
        create_topic(primary.access, topic)
        produce_records(primary.access, topic, records)
        copy.run_until_caught_up("--topics", topic, "--start", start)
        assert read_values(backup.access, topic) == copied[topic]
        write_values(primary.access, topic, b"new")
    copy.run_until_caught_up("--topics", ",".join(starts), "--start", "latest")
    for topic, values in copied.items():
        assert read_values(backup.access, topic) == [*values, b"new"], "it continues"


def test_partitions_with_data_loss_are_halted_until_on_loss_decides(
    copy: CopyCommand, primary: SharedCluster, backup: SharedCluster, unique_name: UniqueName
) -> None:
    shortened, recreated = unique_name("shortened"), unique_name("recreated")
    both = f"{shortened},{recreated}"
    for topic in (shortened, recreated):
        create_topic(primary.access, topic)
        write_values(primary.access, topic, b"1", b"2")
    copy.run_until_caught_up("--topics", both)
    write_values(primary.access, shortened, b"3", b"4")
    delete_records(primary.access, TopicPartition(shortened, 0), 3)
    with Admin(primary.access) as admin:
        assert not admin.delete_topics([recreated])
    create_topic(primary.access, recreated)
    write_values(primary.access, recreated, b"3")

    halted = copy.run("--topics", both, "--until-caught-up")
    assert halted.exit_code == 2, halted.output
    assert f"{shortened}-0 is halted: the source deleted offsets 2 to 2 before" in halted.output
    reason = "is halted: the source topic was deleted and created again"
    assert f"{recreated}-0 {reason}" in halted.output
    assert "--on-loss skip continues with the first record" in halted.output

    skipped = copy.run_until_caught_up("--topics", shortened, "--on-loss", "skip")
    assert "Events: 1 retention." in skipped.output
    assert read_values(backup.access, shortened) == [b"1", b"2", b"4"]
    restarted = copy.run_until_caught_up("--topics", recreated, "--on-loss", "restart")
    assert "Copied 1 record," in restarted.output
    assert read_values(backup.access, recreated) == [b"1", b"2", b"3"]


def test_yes_appends_to_other_records_and_read_uncommitted_copies_aborted_records(
    copy: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    for cluster in (primary, backup):
        create_topic(cluster.access, topic)
    write_values(backup.access, topic, b"other")
    _write_transactions(primary, topic)
    rejected = copy.run("--topics", topic, "--until-caught-up")
    assert isinstance(rejected.exception, BadRequest)
    assert f"already holds records in {topic}" in str(rejected.exception)
    assert read_values(backup.access, topic) == [b"other"]
    copy.run_until_caught_up("--topics", topic, "--yes", "--read-uncommitted")
    assert read_values(backup.access, topic) == [b"other", b"committed", b"aborted"]


def test_start_offset_out_of_range_and_offsets_topic_without_compaction_are_rejected(
    copy: CopyCommand, primary: SharedCluster, backup: SharedCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"1", b"2", b"3")
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({f"{topic}-0": 9}))
    rejected = copy.run("--topics", topic, "--until-caught-up", "--start", f"offsets:{file}")
    assert "cannot begin at offset 9: the source holds 0 to 3" in str(rejected.exception)
    create_topic(backup.access, f"mm2-offsets.{copy.alias}.internal")
    rejected = copy.run("--topics", topic, "--until-caught-up")
    assert "cleanup.policy=delete, so the" in str(rejected.exception)
    assert topic not in _topics(backup)


def test_unreachable_cluster_is_reported_within_seconds(copy: CopyCommand) -> None:
    rejected = copy.run("--from", "127.0.0.1:1", "--topics", "x")
    assert isinstance(rejected.exception, ClusterUnavailable)
    assert "127.0.0.1:1" in str(rejected.exception)
    notice = f"Waiting for cluster {copy.alias}: PLAINTEXT 127.0.0.1:1: connection refused"
    assert notice in rejected.output
