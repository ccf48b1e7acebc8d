"""The files and the command of a ZooKeeper, without starting it."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.zookeeper.zookeeper_process import ZooKeeperProcess, zookeeper_command
from sparkmirror.wire.net.address import Address


def test_it_listens_on_the_loopback_address_and_writes_only_into_its_directory(
    tmp_path: Path,
) -> None:
    zookeeper = ZooKeeperProcess(
        "west/zookeeper", tmp_path, command=lambda: ["false"], reaper=ProcessReaper.detached()
    )
    zookeeper.prepare_and_launch(Address("127.0.0.1", 20001))
    zookeeper.kill()
    lines = (tmp_path / "zookeeper.properties").read_text().splitlines()
    assert {"clientPort=20001", "clientPortAddress=127.0.0.1"} <= set(lines)
    assert f"dataDir={tmp_path / 'data'}" in lines
    assert "admin.enableServer=false" in lines, "it would listen on port 8080"


def test_its_heap_is_bounded_and_its_command_names_its_file() -> None:
    command = zookeeper_command(Path("java"), "jars/*", "2.8.2", Path("/labs/west/zookeeper"))
    assert "-Xmx128m" in command
    assert "-Djava.io.tmpdir=/labs/west/zookeeper/tmp" in command
    assert command[-1] == "/labs/west/zookeeper/zookeeper.properties"
