"""`sparkmirror copy` under kill -9: of its driver, of everything; then the same command again."""

from __future__ import annotations

import secrets
from pathlib import Path

from sparkmirror.engine.supervisor.driver_supervisor import DRIVER_MODULE
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.offsets import LATEST, list_offsets
from tests.support.cli.command_line import CommandLine
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import create_topic
from tests.support.kafka.partition_log import assert_copied, read_partition_log
from tests.support.kafka.wire_copier import make_router
from tests.support.processes import RunningProcess, all_processes, session_processes
from tests.support.waiting import wait_until

RECORDS = 3000
PARTITIONS = 2
FENCES = 5
"""One for each takeover, and some for a busy computer."""


def driver_of(parent: int) -> RunningProcess | None:
    """The driver that works for a command."""
    every = [
        one for one in all_processes() if one.parent == parent and DRIVER_MODULE in one.command
    ]
    return every[0] if every else None


def test_a_copy_outlives_its_driver_and_goes_on_after_everything_was_killed(
    pair: tuple[Cluster, Cluster], writer: BatchWriter, tmp_path: Path
) -> None:
    source, target = (cluster.access() for cluster in pair)
    topic = f"killed-{secrets.token_hex(3)}"
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    create_topic(source, topic, partitions=PARTITIONS)
    for partition in partitions:
        writer.write_batches(partition, numbered_records(range(RECORDS), size=1000), batch=20)
    router = make_router(target)
    sparkmirror = CommandLine({"XDG_STATE_HOME": str(tmp_path)})
    copy = (
        *("copy", "--from", pair[0].bootstrap_servers(), "--to", pair[1].bootstrap_servers()),
        *("--topics", topic, "--until-caught-up", "--ledger", str(tmp_path / "receipts")),
    )

    def copied() -> int:
        ends = list_offsets(router, dict.fromkeys(partitions, LATEST)).values()
        return sum(end.value.offset for end in ends if end.value)

    # So slowly that it cannot be over before it is killed.
    with sparkmirror.start(*copy, "--rate", "50kB") as running:
        wait_until(lambda: copied() > 0, "copying to begin", 400)
        first = driver_of(running.pid)
        assert first
        first.kill()
        wait_until(lambda: driver_of(running.pid) not in (first, None), "another driver", 400)
        before = copied()
        wait_until(lambda: copied() > before + PARTITIONS, "it to copy on", 400)
        second = driver_of(running.pid)
        assert second
        running.kill()
        for process in session_processes(second.pid):
            process.kill()
    assert before < copied() < PARTITIONS * RECORDS
    sessions = (first.pid, second.pid)
    wait_until(lambda: not any(session_processes(pid) for pid in sessions), "nobody to be left")
    done = sparkmirror.run(*copy)
    assert done.exit_code == 0, done.stdout + done.stderr
    sources = make_router(source)
    for partition in partitions:
        wanted = read_partition_log(sources, partition).records
        assert_copied(wanted, read_partition_log(router, partition), fences=FENCES)
    for one in (router, sources):
        one.close()
