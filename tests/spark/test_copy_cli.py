"""`sparkmirror copy` as people type it: Spark, Ctrl-C, and the same command again."""

from __future__ import annotations

import secrets
import signal
from pathlib import Path

import pytest

from sparkmirror.cluster.topic_contents import ProducerRecord, produce_records, read_topic
from sparkmirror.lab.cluster.cluster import Cluster
from tests.support.cli.command_line import CommandLine
from tests.support.kafka.clusters import create_topic

RECORDS = 5_000
KILOBYTE = b"x" * 1000
INTERRUPTED = 130
INCOMPLETE_TEXT = "ot everything was"
TASK_LOST_TEXT = "is lost: no message for"
"""What is said of drains and tasks on a computer that stands still; a takeover follows."""


@pytest.fixture
def sparkmirror(tmp_path: Path) -> CommandLine:
    return CommandLine({"XDG_STATE_HOME": str(tmp_path)})


def logs_below(directory: Path) -> str:
    """All that drivers have said."""
    return "".join(file.read_text("utf-8", "replace") for file in directory.rglob("*.log"))


def test_an_interrupted_copy_goes_on_where_it_stood(
    pair: tuple[Cluster, Cluster], sparkmirror: CommandLine, tmp_path: Path
) -> None:
    source, target = (cluster.access() for cluster in pair)
    topic = f"orders-{secrets.token_hex(3)}"
    create_topic(source, topic, partitions=2)
    produce_records(
        source, topic, [ProducerRecord(value=KILOBYTE, partition=n % 2) for n in range(RECORDS)]
    )
    copy = (
        *("copy", "--from", pair[0].bootstrap_servers(), "--to", pair[1].bootstrap_servers()),
        *("--topics", topic, "--until-caught-up", "--ledger", str(tmp_path / "receipts")),
    )
    # So slowly that it cannot be over before it is interrupted.
    with sparkmirror.start(*copy, "--rate", "50kB") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "  running  " in line and "  0 records" not in line:
                break
        running.send_signal(signal.SIGINT)
        said = running.stdout.read()
        assert running.wait(180) == INTERRUPTED, said
    assert "Interrupted. The same command continues from there." in said
    before = len(read_topic(target, topic))
    assert 0 < before < RECORDS
    done = sparkmirror.run(*copy)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert f"Copied {RECORDS - before:,} records" in done.stdout
    was_unclean = INCOMPLETE_TEXT in said or TASK_LOST_TEXT in logs_below(tmp_path)
    assert "Events: none." in done.stdout or was_unclean, done.stdout
    assert len(read_topic(target, topic)) == RECORDS
    assert list((tmp_path / "receipts").rglob("*.parquet"))
