"""Java MirrorMaker 2 and sparkmirror take turns with the same files and topics.

Our workers of these turns also show how a worker begins and ends: REST before Spark, two signals.
"""

from __future__ import annotations

import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.lab.kafka.java_reference import JavaReference, JavaReferenceOptions
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.mirror.offsets.records import Checkpoint, Heartbeat, RecordBytes
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_mirror_maker,
    running_worker,
)
from tests.support.cli.property_files import connector_configs, flow_properties, worker_properties
from tests.support.processes import session_processes
from tests.support.rest.json_requests import get_json
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.spark.observed_driver import JVM, PYTHON_WORKER
from tests.support.waiting import wait_until

JAVA_SETUP = JavaReferenceOptions(
    jvm=JvmOptions(heap_mb=256, log_level="INFO"), start_timeout_s=300
)
PARTITIONS = 2
RECORDS = 300
"""Written to each partition before each turn."""
FENCES = 3
"""One for taking over from Java, and some for a busy computer."""
STOP_S = 120.0
START_S = 60
QUICK_S = 5
"""An answer that takes longer may have waited for Spark."""
EXIT_SECOND_SIGNAL = 130


class AlternatingMirrors:
    """One topic and one group, mirrored by Java and sparkmirror in turn."""

    def __init__(self, mirrored_clusters: MirroredClusters) -> None:
        mark = secrets.token_hex(3)
        self.clusters = mirrored_clusters
        self.aliases = (f"east{mark}", f"west{mark}")
        self.topic, self.group = f"orders-{mark}", f"billing-{mark}"
        self.remote = f"{self.aliases[0]}.{self.topic}"
        self.turns = 0
        self.synced_at = 0
        self.heartbeats = 0
        mirrored_clusters.create_topic(self.topic, PARTITIONS)

    def write(self) -> None:
        """Write more records and commit the group's offset in the middle of them."""
        first = self.turns * RECORDS
        self.clusters.write_records(self.topic, range(first, first + RECORDS), PARTITIONS)
        self.clusters.commit_group_offset(self.group, self.topic, first + RECORDS // 2)
        self.turns += 1

    def wait_until_mirrored(self, *, exactly: bool) -> None:
        """Wait until all records are copied, the group is synced, and heartbeats arrive."""
        self.clusters.wait_until_copied(self.topic, self.remote, PARTITIONS, SPARK_TIMEOUT_S)
        truth = self.clusters.expected_offset(self.topic, self.remote, self._group_offset())
        wait_until(
            lambda: self._is_translated(truth, exactly), "the group to be synced", SPARK_TIMEOUT_S
        )
        self.synced_at = self.clusters.synced_group_offset(self.group, self.remote) or 0
        beats = self.heartbeats
        wait_until(lambda: self._count_heartbeats() > beats, "heartbeats to go on", SPARK_TIMEOUT_S)
        self.heartbeats = self._count_heartbeats()

    def assert_copied(self, fences: int) -> None:
        """Assert that every record is on the target once."""
        self.clusters.assert_copied(self.topic, self.remote, PARTITIONS, fences)

    def count_fences(self) -> list[int]:
        """How many markers each partition has on the target."""
        logs = self.clusters.partition_logs(self.topic, self.remote, PARTITIONS)
        return [len(target.marker_offsets) for _, target in logs]

    def has_copied(self) -> bool:
        """Whether the topic is on the target."""
        return bool(self.clusters.reverse.source_end_offsets(self.remote))

    def _group_offset(self) -> int:
        return (self.turns - 1) * RECORDS + RECORDS // 2

    def _is_translated(self, truth: int, exactly: bool) -> bool:
        synced = self.clusters.synced_group_offset(self.group, self.remote)
        if synced is None or synced <= self.synced_at or synced not in self._checkpoints():
            return False
        assert synced <= truth, "the group would miss records"
        return synced == truth or not exactly

    def _checkpoints(self) -> set[int]:
        """The downstream offsets of the group's checkpoints of partition 0."""
        topic = f"{self.aliases[0]}.checkpoints.internal"
        records = read_topic(self.clusters.target.access, topic)
        decoded = [Checkpoint.decode(RecordBytes(one.key, one.value)) for one in records]
        return {
            one.downstream
            for one in decoded
            if one.group == self.group and one.partition.partition == 0
        }

    def _count_heartbeats(self) -> int:
        records = read_topic(self.clusters.target.access, "heartbeats")
        decoded = [Heartbeat.decode(RecordBytes(one.key, one.value)) for one in records]
        return sum((one.source, one.target) == self.aliases for one in decoded)


@pytest.mark.soak
def test_sparkmirror_continues_after_java_and_java_after_sparkmirror(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    mirrors = AlternatingMirrors(mirrored_clusters)
    file = flow_properties(mirrored_clusters, mirrors.aliases, mirrors.topic, mirrors.group)
    only = ("--clusters", mirrors.aliases[1])
    mirrors.write()
    with JavaReference.start_mirror_maker(file, clusters=only[1:], setup=JAVA_SETUP) as java:
        mirrors.wait_until_mirrored(exactly=False)
        assert java.stop(STOP_S)
    mirrors.write()
    with running_mirror_maker(file, tmp_path, *only) as ours:
        mirrors.wait_until_mirrored(exactly=True)
        ours.stop()
    mirrors.write()
    with JavaReference.start_mirror_maker(file, clusters=only[1:], setup=JAVA_SETUP) as java:
        mirrors.wait_until_mirrored(exactly=False)
        assert java.stop(STOP_S)
    mirrors.assert_copied(FENCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What was seen while our worker, Java's and another one of ours took turns."""

    mirrors: AlternatingMirrors
    connectors: dict[str, dict[str, str]]
    first_answer: FirstAnswer
    first_fences: list[int]
    """The markers in each partition after the first turn."""
    theirs: Any
    """The connectors as Java's worker shows them."""
    mine: Any
    """The connectors as our second worker shows them."""
    source_offsets: list[Any]
    """Of the source connector, as our second worker shows them."""
    second_signal: SecondSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAnswer:
    """How our first worker answered while its Spark was not there yet."""

    health_code: int
    after_s: float
    """From the start of the process to its first answer."""
    connectors: list[str]
    """The answer to the first request after the first connector was created."""
    is_quick: bool
    has_copied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondSignal:
    """How our second worker ended while its driver was suspended."""

    had_jvm: bool
    had_python_worker: bool
    exit_code: int


@pytest.fixture(scope="module")
def turns(mirrored_clusters: MirroredClusters, tmp_path_factory: pytest.TempPathFactory) -> Turns:
    """The first worker of ours ends on SIGTERM, the second one on two of them."""
    mirrors = AlternatingMirrors(mirrored_clusters)
    file = worker_properties(mirrored_clusters.target, f"workers-{mirrors.topic}")
    connectors = connector_configs(mirrored_clusters, mirrors.aliases, mirrors.topic, mirrors.group)
    mirrors.write()
    with running_worker(file, tmp_path_factory.mktemp("first")) as ours:
        first_answer = create_connectors(ours, connectors, mirrors)
        mirrors.wait_until_mirrored(exactly=True)
        first_fences = mirrors.count_fences()
        ours.stop()
    mirrors.write()
    with JavaReference.start_connect_worker(file, setup=JAVA_SETUP) as java:
        mirrors.wait_until_mirrored(exactly=False)
        theirs = _running_connectors(java.rest_url, connectors)
        assert java.stop(STOP_S)
    mirrors.write()
    with running_worker(file, tmp_path_factory.mktemp("second")) as ours:
        mirrors.wait_until_mirrored(exactly=True)
        mine = _running_connectors(ours.address, connectors)
        source = f"{mirrors.aliases[0]}-Source"
        source_offsets = ours.get_json(f"{connector_path(source)}/offsets")["offsets"]
        second_signal = end_with_second_signal(ours)
    return Turns(
        mirrors=mirrors,
        connectors=connectors,
        first_answer=first_answer,
        first_fences=first_fences,
        theirs=theirs,
        mine=mine,
        source_offsets=source_offsets,
        second_signal=second_signal,
    )


def create_connectors(
    program: MirrorProcess, connectors: dict[str, dict[str, str]], mirrors: AlternatingMirrors
) -> FirstAnswer:
    """Create connectors in a worker that has just been started."""
    health_code = program.request("GET", "/health").status
    after_s = time.monotonic() - program.started_at
    first, *others = connectors
    program.call_json("PUT", f"{connector_path(first)}/config", connectors[first])
    began_at = time.monotonic()
    listed = program.get_json("/connectors")
    is_quick = time.monotonic() - began_at < QUICK_S
    has_copied = mirrors.has_copied()
    for name in others:
        program.call_json("PUT", f"{connector_path(name)}/config", connectors[name])
    return FirstAnswer(
        health_code=health_code,
        after_s=after_s,
        connectors=listed,
        is_quick=is_quick,
        has_copied=has_copied,
    )


def end_with_second_signal(program: MirrorProcess) -> SecondSignal:
    """Send SIGTERM twice; wait for the end of the worker and of all of its Spark."""
    [driver] = program.drivers()
    had_jvm = bool(session_processes(driver.pid, JVM))
    had_python_worker = bool(session_processes(driver.pid, PYTHON_WORKER))
    driver.send_signal(signal.SIGSTOP)  # it must not drain before the second signal
    try:
        program.send_signal()
        wait_until(lambda: "Kafka Connect stopping" in program.output, "the worker to stop")
        program.send_signal()
        exit_code = program.wait_for_exit(30)
    finally:
        driver.send_signal(signal.SIGCONT)
    # The driver notices the end of its standard input; its JVM and workers end with it.
    wait_until(lambda: not session_processes(driver.pid), "all of Spark to end", SPARK_TIMEOUT_S)
    return SecondSignal(had_jvm=had_jvm, had_python_worker=had_python_worker, exit_code=exit_code)


def test_rest_answers_before_spark_runs(turns: Turns) -> None:
    answer = turns.first_answer
    assert answer.health_code in (200, 503)
    assert answer.after_s < START_S, f"REST answered after {answer.after_s:.1f} s"
    assert answer.connectors == [next(iter(turns.connectors))]
    assert answer.is_quick or not answer.has_copied, "REST waits for Spark"
    assert turns.first_fences == PARTITIONS * [0]


def test_a_second_signal_ends_all_processes(turns: Turns) -> None:
    ended = turns.second_signal
    assert ended.had_jvm
    assert ended.had_python_worker
    assert ended.exit_code == EXIT_SECOND_SIGNAL


def test_a_java_worker_continues_our_connectors_and_our_worker_continues_its(turns: Turns) -> None:
    theirs, mine = turns.theirs, turns.mine
    assert {name: one["info"]["config"] for name, one in theirs.items()} == turns.connectors
    assert {one["status"]["connector"]["state"] for one in theirs.values()} == {"RUNNING"}
    assert {name: one["info"] for name, one in mine.items()} == {
        name: one["info"] for name, one in theirs.items()
    }
    assert {one["partition"]["topic"] for one in turns.source_offsets} == {turns.mirrors.topic}
    turns.mirrors.assert_copied(FENCES)


def _running_connectors(url: str, connectors: dict[str, dict[str, str]]) -> Any:
    """Infos and statuses of all connectors of a worker, once all run."""

    def all_run() -> bool:
        states = [
            get_json(url, f"{connector_path(name)}/status")["connector"]["state"]
            for name in connectors
        ]
        return set(states) == {"RUNNING"}

    wait_until(all_run, "all connectors to run", SPARK_TIMEOUT_S)
    return get_json(url, "/connectors?expand=info&expand=status")
