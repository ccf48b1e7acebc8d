"""Clusters of the lab: start, kill, pause, wipe, attach and remove."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin, ListOffsetsSpec
from sparkmirror.cluster.describe_topics import TopicPartitionInfo
from sparkmirror.cluster.probe import probe
from sparkmirror.cluster.produce_and_consume import ProducerRecord
from sparkmirror.errors import (
    AlreadyExists,
    BrokerFailed,
    ClusterTimeout,
    ClusterUnavailable,
    NotFound,
    TopicMissing,
)
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol, TopicSpec
from sparkmirror.lab.processes.port_registry import HOST, PortRegistry, is_port_free
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.model import TopicPartition
from tests.support.kafka.clusters import (
    SharedCluster,
    StartCluster,
    create_topic,
    read_values,
    write_values,
)
from tests.support.waiting import wait_until

RECORDS = tuple(
    ProducerRecord(key=b"k%d" % n, value=b"v%d" % n, partition=n % 2) for n in range(10)
)


# A killed broker cannot restart before its session ends: nine seconds by default.
SHORT_SESSIONS = {"broker.session.timeout.ms": "5000", "broker.heartbeat.interval.ms": "500"}


@pytest.fixture(scope="module")
def one_broker_cluster(start_module_cluster: StartCluster) -> Cluster:
    topic = TopicSpec(name="of-the-spec", partitions=2, records=RECORDS)
    return start_module_cluster(
        ClusterSpec(name="one-broker", fast_start=True, properties=SHORT_SESSIONS, topics=(topic,))
    )


@pytest.fixture
def one_broker(one_broker_cluster: Cluster) -> Cluster:
    """A running cluster of one broker; tests may kill, pause and restart the broker."""
    one_broker_cluster.start_brokers()
    return one_broker_cluster


@pytest.fixture(scope="module")
def three_broker_cluster(start_module_cluster: StartCluster) -> Cluster:
    return start_module_cluster(
        ClusterSpec(
            name="three-brokers",
            brokers=3,
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_SSL),
            users={"alice": "alice-secret"},
            properties=SHORT_SESSIONS,
        )
    )


@pytest.fixture
def three_brokers(three_broker_cluster: Cluster) -> Cluster:
    """A running cluster of three brokers; the brokers authenticate, as one listener has users."""
    three_broker_cluster.start_brokers()
    return three_broker_cluster


def test_new_cluster_has_the_topics_and_records_of_its_spec(one_broker: Cluster) -> None:
    with Admin(one_broker.access()) as admin:
        assert admin.describe_cluster().cluster_id == one_broker.cluster_id
        (topic,) = admin.describe_topics(["of-the-spec"]).values()
        both = [TopicPartition("of-the-spec", number) for number in (0, 1)]
        assert len(topic.partitions) == 2
        assert admin.list_offsets(both, ListOffsetsSpec.LATEST) == dict.fromkeys(both, 5)
        assert admin.list_offsets(both, ListOffsetsSpec.EARLIEST) == dict.fromkeys(both, 0)
    assert sorted(read_values(one_broker.access(), "of-the-spec"), key=str) == [
        b"v%d" % n for n in range(10)
    ]


def test_shared_clusters_have_separate_topics(
    primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"only here")
    assert read_values(primary.access, topic) == [b"only here"]
    with pytest.raises(TopicMissing):
        read_values(backup.access, topic)


def test_killed_broker_restarts_with_its_records(one_broker: Cluster, topic: str) -> None:
    create_topic(one_broker.access(), topic)
    write_values(one_broker.access(), topic, b"before")
    before = one_broker.broker(1).pid
    one_broker.kill_broker(1)
    assert not one_broker.broker(1).is_running()
    with pytest.raises(ClusterUnavailable):
        Admin(one_broker.access(), timeout_s=0.5).describe_cluster()
    one_broker.start_broker(1)
    assert one_broker.broker(1).pid != before
    write_values(one_broker.access(), topic, b"after")
    assert read_values(one_broker.access(), topic) == [b"before", b"after"]


def test_admin_reconnects_after_a_restart(one_broker: Cluster, topic: str) -> None:
    with Admin(one_broker.access()) as admin:
        admin.describe_cluster()
        one_broker.restart_broker(1)
        assert topic not in admin.describe_topics()


def test_paused_broker_does_not_answer_until_it_is_resumed(one_broker: Cluster) -> None:
    (address,) = one_broker.access().bootstrap_servers
    with Admin(one_broker.access(), timeout_s=1.5) as admin:
        wait_until(lambda: _has_answered(admin, one_broker), "the first answer")
        one_broker.pause_broker(1)
        try:
            with pytest.raises(ClusterTimeout):
                admin.describe_cluster()
            with pytest.raises(ClusterTimeout):
                probe(one_broker.access(), address, timeout_s=0.5)
            assert one_broker.broker(1).is_running()
        finally:
            one_broker.resume_broker(1)
        wait_until(lambda: _has_answered(admin, one_broker), "an answer after the resume")


def _has_answered(admin: Admin, cluster: Cluster) -> bool:
    """Whether the cluster answers before the timeout; a busy computer may need several calls."""
    try:
        return admin.describe_cluster().cluster_id == cluster.cluster_id
    except ClusterTimeout:
        return False


def test_wiped_broker_keeps_cluster_id_and_users_and_has_no_topics(
    start_cluster: StartCluster, topic: str
) -> None:
    cluster = start_cluster(
        ClusterSpec(
            name="wiped",
            fast_start=True,
            listeners=(ListenerProtocol.SASL_PLAINTEXT,),
            users={"alice": "alice-secret"},
        )
    )
    create_topic(cluster.access(), topic)
    cluster.wipe_broker(1)
    with Admin(cluster.access()) as admin:
        assert admin.describe_topics() == {}
        assert admin.describe_cluster().cluster_id == cluster.cluster_id


def test_attach_finds_a_cluster_by_its_description(one_broker: Cluster, topic: str) -> None:
    again = Cluster.attach(json.loads(json.dumps(one_broker.describe())))
    assert again.broker(1).pid == one_broker.broker(1).pid
    assert again.client_properties() == one_broker.client_properties()
    create_topic(again.access(), topic)
    with Admin(one_broker.access()) as admin:
        assert topic in admin.describe_topics()


def test_unknown_broker_and_used_directory_are_rejected(
    one_broker: Cluster, reaper: ProcessReaper
) -> None:
    with pytest.raises(NotFound, match="one-broker has no broker 2: it has 1"):
        one_broker.kill_broker(2)
    with pytest.raises(AlreadyExists):
        Cluster.start(ClusterSpec(name="one-broker"), one_broker.directory, reaper)


def test_cluster_of_three_brokers_serves_without_one(three_brokers: Cluster, topic: str) -> None:
    with Admin(three_brokers.access()) as admin:
        wait_until(lambda: _live_brokers(admin) == [1, 2, 3], "three live brokers")
        create_topic(three_brokers.access(), topic, partitions=3, replicas=3)
        write_values(three_brokers.access(), topic, b"all three")
        three_brokers.kill_broker(2)
        wait_until(
            lambda: {p.leader for p in _partitions(admin, topic)} in ({1}, {3}, {1, 3}),
            "other leaders for the partitions of broker 2",
        )
        write_values(three_brokers.access(), topic, b"only two")
        three_brokers.start_broker(2)
        wait_until(
            lambda: [len(p.isr) for p in _partitions(admin, topic)] == [3, 3, 3],
            "broker 2 to be in sync",
        )
    sasl_ssl = three_brokers.access(ListenerProtocol.SASL_SSL, "alice")
    assert read_values(sasl_ssl, topic) == [b"all three", b"only two"]


def test_wiped_broker_of_three_replicates_its_records(three_brokers: Cluster, topic: str) -> None:
    create_topic(three_brokers.access(), topic, replicas=3)
    write_values(three_brokers.access(), topic, b"replicated")
    with Admin(three_brokers.access()) as admin:

        def all_in_sync() -> bool:
            return [len(p.isr) for p in _partitions(admin, topic)] == [3]

        wait_until(all_in_sync, "all replicas to be in sync")
        three_brokers.wipe_broker(3)
        wait_until(all_in_sync, "broker 3 to be in sync")
    assert read_values(three_brokers.access(), topic) == [b"replicated"]


def _live_brokers(admin: Admin) -> list[int]:
    return [broker.node_id for broker in admin.describe_cluster().brokers if not broker.fenced]


def _partitions(admin: Admin, topic: str) -> tuple[TopicPartitionInfo, ...]:
    """The partitions in the metadata of a broker; empty if it does not have the topic yet."""
    found = admin.describe_topics([topic]).get(topic)
    return found.partitions if found else ()


class OccupiedPorts(PortRegistry):
    """Another socket occupies the first port after the registry found the port free."""

    def __init__(self, registry: Path) -> None:
        super().__init__(registry, free=self._occupy_first)
        self.occupier: socket.socket | None = None

    def _occupy_first(self, port: int) -> bool:
        if not is_port_free(port):
            return False
        if self.occupier is None:
            self.occupier = socket.create_server((HOST, port))
        return True


@pytest.fixture
def occupied_ports(tmp_path: Path) -> Iterator[OccupiedPorts]:
    ports = OccupiedPorts(tmp_path)
    yield ports
    if ports.occupier is not None:
        ports.occupier.close()


def test_cluster_starts_on_other_ports_if_a_port_is_occupied(
    reaper: ProcessReaper, lab_directory: Path, occupied_ports: OccupiedPorts
) -> None:
    spec = ClusterSpec(name="moved", fast_start=True)
    cluster = Cluster.start(spec, lab_directory / "moved", reaper, ports=occupied_ports)
    try:
        assert occupied_ports.occupier is not None
        occupied = occupied_ports.occupier.getsockname()[1]
        assert cluster.access().bootstrap_servers[0].port != occupied
        with Admin(cluster.access()) as admin:
            assert len(admin.describe_cluster().brokers) == 1
    finally:
        cluster.remove()
    assert not cluster.directory.exists()


def test_error_of_a_broker_that_cannot_start_names_the_reason_and_no_files_are_left(
    reaper: ProcessReaper, lab_directory: Path
) -> None:
    spec = ClusterSpec(name="broken", properties={"log.segment.bytes": "many"})
    with pytest.raises(BrokerFailed, match="many for configuration log.segment.bytes"):
        Cluster.start(spec, lab_directory / "broken", reaper)
    assert not (lab_directory / "broken").exists()


def test_clusters_share_no_ports_and_stop_separately(
    reaper: ProcessReaper, lab_directory: Path
) -> None:
    specs = [ClusterSpec(name=name, fast_start=True) for name in ("left", "right")]
    left, right = Cluster.start_all(specs, lab_directory / "side-by-side", reaper)
    try:
        assert not _ports(left) & _ports(right)
        assert left.cluster_id != right.cluster_id
        left.stop()
        assert not left.broker(1).is_running()
        assert right.broker(1).is_running()
        left.start_brokers()
        with Admin(left.access()) as admin:
            assert admin.describe_cluster().cluster_id == left.cluster_id
    finally:
        left.remove()
        right.remove()


def _ports(cluster: Cluster) -> set[int]:
    return {port for node in cluster.describe()["nodes"] for port in node["ports"].values()}
