"""Java MirrorMaker 2 and sparkmirror take turns with the same files and topics."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.lab.kafka.java_reference import JavaReference, JavaReferenceOptions
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.mirror.offsets.records import Checkpoint, Heartbeat, RecordBytes
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    connector_path,
    running_mirror_maker,
    running_worker,
)
from tests.support.cli.property_files import connector_configs, flow_properties, worker_properties
from tests.support.rest.json_requests import get_json
from tests.support.spark.mirrored_clusters import MirroredClusters
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


def test_a_java_worker_continues_our_connectors_and_our_worker_continues_its(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    mirrors = AlternatingMirrors(mirrored_clusters)
    file = worker_properties(mirrored_clusters.target, f"workers-{mirrors.topic}")
    connectors = connector_configs(mirrored_clusters, mirrors.aliases, mirrors.topic, mirrors.group)
    mirrors.write()
    with running_worker(file, tmp_path / "first") as ours:
        for name, config in connectors.items():
            ours.call_json("PUT", f"{connector_path(name)}/config", config)
        mirrors.wait_until_mirrored(exactly=True)
        ours.stop()
    mirrors.write()
    with JavaReference.start_connect_worker(file, setup=JAVA_SETUP) as java:
        mirrors.wait_until_mirrored(exactly=False)
        theirs = _running_connectors(java.rest_url, connectors)
        assert java.stop(STOP_S)
    assert {name: one["info"]["config"] for name, one in theirs.items()} == connectors
    assert {one["status"]["connector"]["state"] for one in theirs.values()} == {"RUNNING"}
    mirrors.write()
    with running_worker(file, tmp_path / "second") as ours:
        mirrors.wait_until_mirrored(exactly=True)
        mine = _running_connectors(ours.address, connectors)
        source = f"{mirrors.aliases[0]}-Source"
        listed = ours.get_json(f"{connector_path(source)}/offsets")["offsets"]
        ours.stop()
    assert {name: one["info"] for name, one in mine.items()} == {
        name: one["info"] for name, one in theirs.items()
    }
    assert {one["partition"]["topic"] for one in listed} == {mirrors.topic}
    mirrors.assert_copied(FENCES)


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
