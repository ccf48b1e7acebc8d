"""Clusters of the lab: they start, they obey, they keep or lose what they should."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin, ListOffsetsSpec
from sparkmirror.cluster.probe import probe
from sparkmirror.cluster.topic_contents import ProducerRecord
from sparkmirror.cluster.topics import TopicPartitionInfo
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


# A killed broker may not come back before its session has ended: nine seconds, if nobody says so.
SHORT_SESSIONS = {"broker.session.timeout.ms": "5000", "broker.heartbeat.interval.ms": "500"}


@pytest.fixture(scope="module")
def one_broker(start_module_cluster: StartCluster) -> Cluster:
    begins_with = TopicSpec(name="begins-with", partitions=2, records=RECORDS)
    return start_module_cluster(
        ClusterSpec(name="solo", fast_start=True, properties=SHORT_SESSIONS, topics=(begins_with,))
    )


@pytest.fixture
def solo(one_broker: Cluster) -> Cluster:
    """One broker that tests may mistreat; it runs, whatever the test before did to it."""
    one_broker.start_brokers()
    return one_broker


@pytest.fixture(scope="module")
def three_brokers(start_module_cluster: StartCluster) -> Cluster:
    return start_module_cluster(
        ClusterSpec(
            name="trio",
            brokers=3,
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_SSL),
            users={"alice": "alice-secret"},
            properties=SHORT_SESSIONS,
        )
    )


@pytest.fixture
def trio(three_brokers: Cluster) -> Cluster:
    """Three brokers and a quorum that know each other by login, because one listener has users.

    All of them run and know each other, whatever the test before did to them.
    """
    three_brokers.start_brokers()
    return three_brokers


def test_a_cluster_begins_with_its_topics_and_records(solo: Cluster) -> None:
    with Admin(solo.access()) as admin:
        assert admin.describe_cluster().cluster_id == solo.cluster_id
        (topic,) = admin.describe_topics(["begins-with"]).values()
        both = [TopicPartition("begins-with", number) for number in (0, 1)]
        assert len(topic.partitions) == 2
        assert admin.list_offsets(both, ListOffsetsSpec.LATEST) == dict.fromkeys(both, 5)
        assert admin.list_offsets(both, ListOffsetsSpec.EARLIEST) == dict.fromkeys(both, 0)
    assert sorted(read_values(solo.access(), "begins-with"), key=str) == [
        b"v%d" % n for n in range(10)
    ]


def test_two_shared_clusters_are_two(
    primary: SharedCluster, backup: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    write_values(primary.access, topic, b"only here")
    assert read_values(primary.access, topic) == [b"only here"]
    with pytest.raises(TopicMissing):
        read_values(backup.access, topic)


def test_a_killed_broker_comes_back_with_its_records(solo: Cluster, topic: str) -> None:
    create_topic(solo.access(), topic)
    write_values(solo.access(), topic, b"before")
    before = solo.broker(1).pid
    solo.kill_broker(1)
    assert not solo.broker(1).is_running()
    with pytest.raises(ClusterUnavailable):
        Admin(solo.access(), timeout_s=0.5).describe_cluster()
    solo.start_broker(1)
    assert solo.broker(1).pid != before
    write_values(solo.access(), topic, b"after")
    assert read_values(solo.access(), topic) == [b"before", b"after"]


def test_one_admin_survives_a_restart(solo: Cluster, topic: str) -> None:
    with Admin(solo.access()) as admin:
        admin.describe_cluster()
        solo.restart_broker(1)
        assert topic not in admin.describe_topics()


def test_a_paused_broker_does_not_answer_until_it_is_resumed(solo: Cluster) -> None:
    (address,) = solo.access().bootstrap_servers
    with Admin(solo.access(), timeout_s=1.5) as admin:
        wait_until(lambda: _answers(admin, solo), "a first answer")
        solo.pause_broker(1)
        try:
            with pytest.raises(ClusterTimeout):
                admin.describe_cluster()
            with pytest.raises(ClusterTimeout):
                probe(solo.access(), address, timeout_s=0.5)
            assert solo.broker(1).is_running()
        finally:
            solo.resume_broker(1)
        wait_until(lambda: _answers(admin, solo), "it to answer again")


def _answers(admin: Admin, cluster: Cluster) -> bool:
    """Whether somebody answers in time, which on a busy computer may take some tries."""
    try:
        return admin.describe_cluster().cluster_id == cluster.cluster_id
    except ClusterTimeout:
        return False


def test_a_wiped_broker_is_the_same_cluster_with_users_and_without_topics(
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


def test_a_cluster_is_found_again_by_its_description(solo: Cluster, topic: str) -> None:
    again = Cluster.attach(json.loads(json.dumps(solo.describe())))
    assert again.broker(1).pid == solo.broker(1).pid
    assert again.client_properties() == solo.client_properties()
    create_topic(again.access(), topic)
    with Admin(solo.access()) as admin:
        assert topic in admin.describe_topics()


def test_there_is_no_other_broker_and_no_second_use_of_a_directory(
    solo: Cluster, reaper: ProcessReaper
) -> None:
    with pytest.raises(NotFound, match="solo has no broker 2: it has 1"):
        solo.kill_broker(2)
    with pytest.raises(AlreadyExists):
        Cluster.start(ClusterSpec(name="solo"), solo.directory, reaper)


def test_three_brokers_know_each_other_and_outlive_one(trio: Cluster, topic: str) -> None:
    with Admin(trio.access()) as admin:
        wait_until(lambda: _live_brokers(admin) == [1, 2, 3], "the three to know each other")
        create_topic(trio.access(), topic, partitions=3, replicas=3)
        write_values(trio.access(), topic, b"all three")
        trio.kill_broker(2)
        wait_until(
            lambda: {p.leader for p in _partitions(admin, topic)} in ({1}, {3}, {1, 3}),
            "broker 2 is dead, its partitions need other leaders",
        )
        write_values(trio.access(), topic, b"only two")
        trio.start_broker(2)
        wait_until(
            lambda: [len(p.isr) for p in _partitions(admin, topic)] == [3, 3, 3],
            "broker 2 is back and should catch up",
        )
    everywhere = trio.access(ListenerProtocol.SASL_SSL, "alice")
    assert read_values(everywhere, topic) == [b"all three", b"only two"]


def test_a_wiped_broker_of_three_gets_its_records_back(trio: Cluster, topic: str) -> None:
    create_topic(trio.access(), topic, replicas=3)
    write_values(trio.access(), topic, b"kept by others")
    with Admin(trio.access()) as admin:

        def all_have_it() -> bool:
            return [len(p.isr) for p in _partitions(admin, topic)] == [3]

        wait_until(all_have_it, "the others should have it too")
        trio.wipe_broker(3)
        wait_until(all_have_it, "broker 3 should copy what it lost from the others")
    assert read_values(trio.access(), topic) == [b"kept by others"]


def _live_brokers(admin: Admin) -> list[int]:
    return [broker.node_id for broker in admin.describe_cluster().brokers if not broker.fenced]


def _partitions(admin: Admin, topic: str) -> tuple[TopicPartitionInfo, ...]:
    """The partitions as some broker sees them; none if it has not heard of the topic yet."""
    found = admin.describe_topics([topic]).get(topic)
    return found.partitions if found else ()


class OccupiedPorts(PortRegistry):
    """Ports of which the first one is taken by a stranger right after it was found free."""

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
def stolen_port(tmp_path: Path) -> Iterator[OccupiedPorts]:
    ports = OccupiedPorts(tmp_path)
    yield ports
    if ports.occupier is not None:
        ports.occupier.close()


def test_a_cluster_that_loses_a_port_moves_to_another(
    reaper: ProcessReaper, lab_directory: Path, stolen_port: OccupiedPorts
) -> None:
    spec = ClusterSpec(name="moved", fast_start=True)
    cluster = Cluster.start(spec, lab_directory / "moved", reaper, ports=stolen_port)
    try:
        assert stolen_port.occupier is not None
        stolen = stolen_port.occupier.getsockname()[1]
        assert cluster.access().bootstrap_servers[0].port != stolen
        with Admin(cluster.access()) as admin:
            assert len(admin.describe_cluster().brokers) == 1
    finally:
        cluster.remove()
    assert not cluster.directory.exists()


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing(
    reaper: ProcessReaper, lab_directory: Path
) -> None:
    spec = ClusterSpec(name="broken", properties={"log.segment.bytes": "many"})
    with pytest.raises(BrokerFailed, match="many for configuration log.segment.bytes"):
        Cluster.start(spec, lab_directory / "broken", reaper)
    assert not (lab_directory / "broken").exists()


def test_clusters_side_by_side_share_nothing(reaper: ProcessReaper, lab_directory: Path) -> None:
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
