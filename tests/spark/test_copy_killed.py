"""`sparkmirror copy` on Spark: kill -9 of its driver, kill -9 of all processes, then Ctrl-C."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.engine.supervisor.idle_driver import DRIVER_MODULE
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from tests.support.cli.command_line import CommandLine
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import create_topic
from tests.support.kafka.partition_log import assert_copied, read_partition_log
from tests.support.kafka.wire_copier import make_router
from tests.support.processes import RunningProcess, all_processes, session_processes
from tests.support.waiting import wait_until

RECORDS = 3000
PARTITIONS = 2
FENCES = 6
"""One for each takeover, and some for a busy computer."""
SLOW_RATE = ("--rate", "50kB")
"""A rate at which the copy does not end before it is killed or interrupted."""
INTERRUPTED = 130
INCOMPLETE_TEXT = "ot everything was"
"""Part of the message about an incomplete drain, which a very slow computer may cause."""


def driver_of(parent: int) -> RunningProcess | None:
    """Return the driver process of a command."""
    drivers = [
        one for one in all_processes() if one.parent == parent and DRIVER_MODULE in one.command
    ]
    return drivers[0] if drivers else None


class CopiedTopic:
    """A topic with records on the source, and the command that copies it."""

    def __init__(self, clusters: tuple[Cluster, Cluster], writer: BatchWriter) -> None:
        source, target = (cluster.access() for cluster in clusters)
        self.topic = f"killed-{secrets.token_hex(3)}"
        self.partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        create_topic(source, self.topic, partitions=PARTITIONS)
        for partition in self.partitions:
            writer.write_batches(partition, numbered_records(range(RECORDS), size=1000), batch=20)
        self._source, self._target = make_router(source), make_router(target)
        addresses = [cluster.bootstrap_servers() for cluster in clusters]
        self.command = (
            *("copy", "--from", addresses[0], "--to", addresses[1]),
            *("--topics", self.topic, "--until-caught-up"),
        )

    def end_offsets(self) -> int:
        """The sum of the end offsets on the target, control records included."""
        ends = list_offsets(self._target, dict.fromkeys(self.partitions, LATEST)).values()
        return sum(end.value.offset for end in ends if end.value)

    def record_count(self) -> int:
        """The number of records on the target."""
        logs = [read_partition_log(self._target, partition) for partition in self.partitions]
        return sum(len(log.records) for log in logs)

    def assert_copied(self) -> None:
        """Assert that every record is on the target once, in order."""
        for partition in self.partitions:
            wanted = read_partition_log(self._source, partition).records
            assert_copied(wanted, read_partition_log(self._target, partition), fences=FENCES)

    def close(self) -> None:
        """Close the connections."""
        self._source.close()
        self._target.close()


@pytest.fixture
def copied(copy_clusters: tuple[Cluster, Cluster], writer: BatchWriter) -> Iterator[CopiedTopic]:
    created = CopiedTopic(copy_clusters, writer)
    yield created
    created.close()


@pytest.mark.soak
def test_a_copy_continues_after_a_killed_driver_after_killed_processes_and_after_ctrl_c(
    copied: CopiedTopic, tmp_path: Path
) -> None:
    receipts = tmp_path / "receipts"
    sparkmirror = CommandLine({"XDG_STATE_HOME": str(tmp_path)})
    command = (*copied.command, "--ledger", str(receipts))

    with sparkmirror.start(*command, *SLOW_RATE) as running:
        wait_until(lambda: copied.end_offsets() > 0, "the first records", 400)
        first = driver_of(running.pid)
        assert first
        first.kill()
        wait_until(lambda: driver_of(running.pid) not in (first, None), "another driver", 400)
        before = copied.end_offsets()
        wait_until(lambda: copied.end_offsets() > before + PARTITIONS, "more records", 400)
        second = driver_of(running.pid)
        assert second
        running.kill()
        for process in session_processes(second.pid):
            process.kill()
    assert before < copied.end_offsets() < PARTITIONS * RECORDS
    sessions = (first.pid, second.pid)
    wait_until(lambda: not any(map(session_processes, sessions)), "all processes to end")

    with sparkmirror.start(*command, *SLOW_RATE) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "  running  " in line and "  0 records" not in line:
                break
        running.send_signal(signal.SIGINT)
        output = running.stdout.read()
        assert running.wait(180) == INTERRUPTED, output
    assert "Interrupted. The same command continues from there." in output
    before = copied.record_count()
    assert 0 < before < PARTITIONS * RECORDS

    done = sparkmirror.run(*command)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert f"Copied {PARTITIONS * RECORDS - before:,} records" in done.stdout
    assert "Events: none." in done.stdout or INCOMPLETE_TEXT in output, done.stdout
    copied.assert_copied()
    assert list(receipts.rglob("*.parquet"))
