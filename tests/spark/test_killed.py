"""`sparkmirror copy` under kill -9: of its driver, of everything; then the same command again."""

from __future__ import annotations

import secrets
from pathlib import Path

from sparkmirror.engine.supervisor import DRIVER
from sparkmirror.lab.cluster import Cluster
from sparkmirror.model import TopicPartition
from sparkmirror.wire.offsets import LATEST, list_offsets
from tests.support.clusters import create_topic
from tests.support.commandline import CommandLine
from tests.support.logs import assert_copied, read_log
from tests.support.processes import Seen, all_processes, of_session
from tests.support.raw_copy import router_of
from tests.support.waiting import wait_until
from tests.support.writing import Writer, numbered

RECORDS = 3000
PARTITIONS = 2
FENCES = 5
"""One for each takeover, and some for a busy computer."""


def driver_of(parent: int) -> Seen | None:
    """The driver that works for a command."""
    every = [one for one in all_processes() if one.parent == parent and DRIVER in one.command]
    return every[0] if every else None


def test_a_copy_outlives_its_driver_and_goes_on_after_everything_was_killed(
    pair: tuple[Cluster, Cluster], writer: Writer, tmp_path: Path
) -> None:
    source, target = (cluster.access() for cluster in pair)
    topic = f"killed-{secrets.token_hex(3)}"
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    create_topic(source, topic, partitions=PARTITIONS)
    for partition in partitions:
        writer.write_many(partition, numbered(range(RECORDS), size=1000), batch=20)
    router = router_of(target)
    sparkmirror = CommandLine({"XDG_STATE_HOME": str(tmp_path)})
    copy = (
        *("copy", "--from", pair[0].bootstrap(), "--to", pair[1].bootstrap()),
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
        for process in of_session(second.pid):
            process.kill()
    assert before < copied() < PARTITIONS * RECORDS
    sessions = (first.pid, second.pid)
    wait_until(lambda: not any(of_session(pid) for pid in sessions), "nobody to be left")
    done = sparkmirror.run(*copy)
    assert done.code == 0, done.out + done.err
    sources = router_of(source)
    for partition in partitions:
        wanted = read_log(sources, partition).records
        assert_copied(wanted, read_log(router, partition), fences=FENCES)
    for one in (router, sources):
        one.close()
