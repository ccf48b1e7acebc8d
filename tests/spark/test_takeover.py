"""Java's MirrorMaker 2 and we take turns on the same files and topics, on real clusters."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from sparkmirror.cluster.records import read_topic
from sparkmirror.lab.jvm import Jvm
from sparkmirror.lab.yardstick import Setup, Yardstick
from sparkmirror.mirror.records import Checkpoint, Heartbeat, RecordBytes
from tests.support.connect_rest import get
from tests.support.programs import SLOWLY_S, mirror_maker, of, worker
from tests.support.sides import Sides
from tests.support.waiting import wait_until
from tests.support.worker_files import flow_file, three_connectors, worker_file

JAVA = Setup(jvm=Jvm(heap_mb=256, log_level="INFO"), start_s=300)
PARTITIONS = 2
RECORDS = 300
"""Written to each partition before each turn."""
FENCES = 3
"""One for taking over from Java, and some for a busy computer."""
STOP_S = 120.0


class Relay:
    """One topic and one group, and whoever mirrors them takes turns."""

    def __init__(self, sides: Sides) -> None:
        mark = secrets.token_hex(3)
        self.sides = sides
        self.aliases = (f"east{mark}", f"west{mark}")
        self.topic, self.group = f"orders-{mark}", f"billing-{mark}"
        self.remote = f"{self.aliases[0]}.{self.topic}"
        self.turns = 0
        self.synced_at = 0
        self.heartbeats = 0
        sides.create(self.topic, PARTITIONS)

    def write(self) -> None:
        """Write some more, and let the group read on to the middle of it."""
        first = self.turns * RECORDS
        self.sides.write(self.topic, range(first, first + RECORDS), PARTITIONS)
        self.sides.commit(self.group, self.topic, first + RECORDS // 2)
        self.turns += 1

    def wait(self, *, exactly: bool) -> None:
        """Wait until whoever runs now has copied all, translated the group, and beaten."""
        self.sides.wait_until_copied(self.topic, self.remote, PARTITIONS, SLOWLY_S)
        truth = self.sides.truth(self.topic, self.remote, self._group_at())
        wait_until(lambda: self._is_translated(truth, exactly), "the group to be synced", SLOWLY_S)
        self.synced_at = self.sides.synced(self.group, self.remote) or 0
        beats = self.heartbeats
        wait_until(lambda: self._beats() > beats, "heartbeats to go on", SLOWLY_S)
        self.heartbeats = self._beats()

    def assert_copied(self, fences: int) -> None:
        """Every record is there once, whoever copied it."""
        self.sides.assert_copied(self.topic, self.remote, PARTITIONS, fences)

    def _group_at(self) -> int:
        return (self.turns - 1) * RECORDS + RECORDS // 2

    def _is_translated(self, truth: int, exactly: bool) -> bool:
        synced = self.sides.synced(self.group, self.remote)
        if synced is None or synced <= self.synced_at or synced not in self._checkpoints():
            return False
        assert synced <= truth, "the group would miss records"
        return synced == truth or not exactly

    def _checkpoints(self) -> set[int]:
        """Where checkpoints say that the group goes on in partition 0."""
        topic = f"{self.aliases[0]}.checkpoints.internal"
        records = read_topic(self.sides.target.access, topic)
        decoded = [Checkpoint.decode(RecordBytes(one.key, one.value)) for one in records]
        return {
            one.downstream
            for one in decoded
            if one.group == self.group and one.partition.partition == 0
        }

    def _beats(self) -> int:
        records = read_topic(self.sides.target.access, "heartbeats")
        decoded = [Heartbeat.decode(RecordBytes(one.key, one.value)) for one in records]
        return sum((one.source, one.target) == self.aliases for one in decoded)


def test_java_begins_we_go_on_and_java_takes_it_back(sides: Sides, tmp_path: Path) -> None:
    relay = Relay(sides)
    file = flow_file(sides, relay.aliases, relay.topic, relay.group)
    only = ("--clusters", relay.aliases[1])
    relay.write()
    with Yardstick.mirror_maker(file, clusters=only[1:], setup=JAVA) as java:
        relay.wait(exactly=False)
        assert java.stop(STOP_S)
    relay.write()
    with mirror_maker(file, tmp_path, *only) as ours:
        relay.wait(exactly=True)
        ours.stop()
    relay.write()
    with Yardstick.mirror_maker(file, clusters=only[1:], setup=JAVA) as java:
        relay.wait(exactly=False)
        assert java.stop(STOP_S)
    relay.assert_copied(FENCES)


def test_a_java_worker_goes_on_with_our_connectors_and_we_with_its(
    sides: Sides, tmp_path: Path
) -> None:
    relay = Relay(sides)
    file = worker_file(sides.target, f"workers-{relay.topic}")
    connectors = three_connectors(sides, relay.aliases, relay.topic, relay.group)
    relay.write()
    with worker(file, tmp_path / "first") as ours:
        for name, config in connectors.items():
            ours.call("PUT", f"{of(name)}/config", config)
        relay.wait(exactly=True)
        ours.stop()
    relay.write()
    with Yardstick.connect_worker(file, setup=JAVA) as java:
        relay.wait(exactly=False)
        theirs = _everything(java.url, connectors)
        assert java.stop(STOP_S)
    assert {name: one["info"]["config"] for name, one in theirs.items()} == connectors
    assert {one["status"]["connector"]["state"] for one in theirs.values()} == {"RUNNING"}
    relay.write()
    with worker(file, tmp_path / "second") as ours:
        relay.wait(exactly=True)
        mine = _everything(ours.address, connectors)
        source = f"{relay.aliases[0]}-Source"
        listed = ours.get(f"{of(source)}/offsets")["offsets"]
        ours.stop()
    assert {name: one["info"] for name, one in mine.items()} == {
        name: one["info"] for name, one in theirs.items()
    }
    assert {one["partition"]["topic"] for one in listed} == {relay.topic}
    relay.assert_copied(FENCES)


def _everything(url: str, connectors: dict[str, dict[str, str]]) -> Any:
    """What a worker tells of all connectors."""

    def all_run() -> bool:
        states = [get(url, f"{of(name)}/status")["connector"]["state"] for name in connectors]
        return set(states) == {"RUNNING"}

    wait_until(all_run, "all connectors to run", SLOWLY_S)
    return get(url, "/connectors?expand=info&expand=status")
