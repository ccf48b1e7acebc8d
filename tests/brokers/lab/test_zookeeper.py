"""Clusters that need ZooKeeper: what happens to it when brokers stop, crash or are wiped."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_actions import CLUSTER_ACTIONS
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.cluster_status import cluster_status
from sparkmirror.lab.kafka.kafka_tool_table import (
    ToolConnection,
    add_connection_arguments,
    find_tool,
)
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.processes.port_registry import HOST, PortRegistry
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.zookeeper.zookeeper_client import ZooKeeperClient
from sparkmirror.wire.net.address import Address
from tests.support.kafka.clusters import StartCluster, create_topic, read_values, write_values
from tests.support.processes import all_processes
from tests.support.waiting import wait_until

VERSION = "3.0.2"
FETCHING_S = 900
"""The first run on a computer fetches the jars of the version."""

pytestmark = pytest.mark.timeout(FETCHING_S)


@pytest.fixture(scope="module")
def started_cluster(start_module_cluster: StartCluster) -> Cluster:
    """Use `cluster` instead."""
    return start_module_cluster(
        ClusterSpec(
            name="with-zookeeper",
            version=VERSION,
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT),
            users={"alice": "alice-secret"},
            properties={"zookeeper.session.timeout.ms": "3000"},
        )
    )


@pytest.fixture
def cluster(started_cluster: Cluster) -> Cluster:
    """A running cluster of one broker; tests may kill, pause and restart the broker."""
    started_cluster.start_brokers()
    return started_cluster


def zookeeper_of(cluster: Cluster) -> Address:
    address = cluster_status(cluster).zookeeper
    assert address is not None
    return Address.parse(address)


def commands_of(cluster: Cluster) -> list[str]:
    """The commands of all processes that run in its directory."""
    return [one.command for one in all_processes() if str(cluster.directory) in one.command]


def test_killed_broker_starts_again_when_its_session_has_expired(
    cluster: Cluster, topic: str
) -> None:
    create_topic(cluster.access(), topic)
    write_values(cluster.access(), topic, b"kept")
    cluster.kill_broker(1)
    with ZooKeeperClient(zookeeper_of(cluster)) as client:
        assert client.exists("/brokers/ids/1"), "ZooKeeper runs on and has not noticed the crash"
    cluster.start_broker(1)
    assert read_values(cluster.access(), topic) == [b"kept"]


@pytest.mark.parametrize("action", ["stop", "kill"])
def test_zookeeper_ends_and_starts_with_all_brokers(
    cluster: Cluster, topic: str, action: str, reaper: ProcessReaper
) -> None:
    create_topic(cluster.access(), topic)
    CLUSTER_ACTIONS[action].run_on_cluster(cluster)
    assert commands_of(cluster) == []
    Cluster.attach(cluster.describe(), reaper).start_brokers()
    with Admin(cluster.access(ListenerProtocol.SASL_PLAINTEXT, "alice")) as admin:
        wait_until(lambda: topic in admin.describe_topics(), "the controller to tell the topics")
        assert admin.describe_cluster().cluster_id == cluster.cluster_id


def test_wiped_cluster_keeps_cluster_id_and_users_and_has_no_topics(
    cluster: Cluster, topic: str
) -> None:
    create_topic(cluster.access(), topic)
    cluster.wipe_broker(1)
    with Admin(cluster.access(ListenerProtocol.SASL_PLAINTEXT, "alice")) as admin:
        assert admin.describe_topics() == {}
        assert admin.describe_cluster().cluster_id == cluster.cluster_id


def test_tools_of_the_version_work(cluster: Cluster, topic: str) -> None:
    create_topic(cluster.access(), topic)
    to = ToolConnection(bootstrap_servers=cluster.bootstrap_servers())
    arguments = add_connection_arguments(find_tool("kafka-topics"), ["--list"], to, VERSION)
    assert topic in KafkaToolRunner(VERSION).run("kafka-topics", arguments).splitlines()


class OccupiedPort(PortRegistry):
    """Another socket occupies the port of ZooKeeper, which is claimed after those of brokers."""

    def __init__(self, registry: Path) -> None:
        super().__init__(registry)
        self.occupier: socket.socket | None = None
        self._claims = 0

    def claim(self, count: int, owner: Path) -> list[int]:
        ports = super().claim(count, owner)
        self._claims += 1
        if self._claims == 2:
            self.occupier = socket.create_server((HOST, ports[0]))
        return ports


@pytest.fixture
def occupied_port(tmp_path: Path) -> Iterator[OccupiedPort]:
    ports = OccupiedPort(tmp_path)
    yield ports
    if ports.occupier is not None:
        ports.occupier.close()


def test_zookeeper_starts_on_another_port_if_its_port_is_occupied_and_nothing_is_left(
    reaper: ProcessReaper, lab_directory: Path, occupied_port: OccupiedPort
) -> None:
    spec = ClusterSpec(name="moved-zookeeper", version=VERSION, fast_start=True)
    cluster = Cluster.start(spec, lab_directory / spec.name, reaper, ports=occupied_port)
    try:
        assert occupied_port.occupier is not None
        occupied = occupied_port.occupier.getsockname()[1]
        assert zookeeper_of(cluster).port != occupied
    finally:
        cluster.remove()
    assert not cluster.directory.exists()
    assert commands_of(cluster) == []
